"""The layouts by name: how images lie in them, and what is written beside the images."""

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdclust.errors import UserError
from cdclust.formats.plan import Placed, Sorted
from cdclust.run import COLUMNS, write_csv

# What every reader of image folders knows, torchvision's among them; other kinds of files become PNGs.
ENDINGS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


@dataclass(frozen=True)
class Layout:
    """How images are laid out."""

    folder: str | None  # all images, by number; none: a folder a cluster, with their own names
    write: Callable[[Path, Sorted], None]  # what lies beside the images
    apart: bool = False  # uncertain and unreadable images get folders of their own; else they are left out
    endings: tuple[str, ...] = ENDINGS  # none: any
    sizes: bool = False  # whether `write` has to know them


def write_labels(out: Path, found: Sorted) -> None:
    """labels.csv: every image of the run, its cluster, and the file it became."""
    rows = (
        (*image.line.row(), found.names.get(image.line.cluster, "") if image.line.sorted else "", image.file)
        for image in found.images
    )
    with (out / "labels.csv").open("wb") as file:
        write_csv(file, rows, (*COLUMNS, "name", "file"))


def _image_folder(out: Path, found: Sorted) -> None:
    """Nothing but the folders; loaded back, since names may not mean to torchvision what they mean here."""
    from torchvision.datasets import ImageFolder

    write_labels(out, found)
    loaded = ImageFolder(str(out))
    there = {(Path(file).relative_to(out).as_posix(), loaded.classes[code]) for file, code in loaded.samples}
    if there != {(image.file, image.file.partition("/")[0]) for image in found.assigned}:
        raise UserError(f"{out} does not load back as it was written; please report this with the names of the files")


def _hugging_face(out: Path, found: Sorted) -> None:
    """metadata.csv, as load_dataset("imagefolder", data_dir=...) reads it."""
    columns = ("file_name", "cluster", *(("name",) if found.names else ()), "probability", "source")
    with (out / "metadata.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for image in found.assigned:
            name = (found.label(image.line.cluster),) if found.names else ()
            writer.writerow((image.file, image.line.cluster, *name, f"{image.line.probability:.6f}", image.line.key))


def _fiftyone(out: Path, found: Sorted) -> None:
    """labels.json of a FiftyOneImageClassificationDataset; an image is known by its file's name without ending."""
    write_labels(out, found)
    labels = {
        Path(image.file).stem: {"label": image.line.cluster, "confidence": image.line.probability}
        for image in found.assigned
    }
    classes = [found.label(cluster) for cluster in range(found.n_clusters)]
    _write_json(out / "labels.json", {"classes": classes, "labels": labels})


def _coco(out: Path, found: Sorted) -> None:
    """annotations.json: a category a cluster, and for each image one annotation, of the whole image."""
    write_labels(out, found)
    categories = [
        {"id": cluster + 1, "name": found.label(cluster), "supercategory": "cluster", "cluster": cluster}
        for cluster in range(found.n_clusters)
    ]  # from 1 on: to many readers 0 is the background
    images = [_coco_image(number, image) for number, image in enumerate(found.assigned, 1)]
    annotations = [
        {
            "id": number,
            "image_id": number,
            "category_id": image.line.cluster + 1,
            "bbox": [0, 0, about["width"], about["height"]],
            "area": about["width"] * about["height"],
            "iscrowd": 0,
            "score": image.line.probability,
        }
        for number, (image, about) in enumerate(zip(found.assigned, images, strict=True), 1)
    ]
    info = {"description": "Clusters of images, found by cdclust; an annotation stands for its whole image"}
    _write_json(
        out / "annotations.json",
        {"info": info, "licenses": [], "categories": categories, "images": images, "annotations": annotations},
    )


def _coco_image(number: int, image: Placed) -> dict[str, Any]:
    assert image.size is not None
    height, width = image.size
    name = Path(image.file).name
    return {"id": number, "file_name": name, "width": width, "height": height, "source": image.line.key}


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, ensure_ascii=True), encoding="utf-8")


LAYOUTS = {
    "folders": Layout(None, write_labels, apart=True, endings=()),
    "imagefolder": Layout(None, _image_folder),
    "huggingface": Layout("images", _hugging_face),
    "fiftyone": Layout("data", _fiftyone),
    "coco": Layout("images", _coco, sizes=True),
}
