"""`load_source`: whatever a user can name or hand over, as one `ImageSet`."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor
from torch.utils.data import IterableDataset

from cdclust.data import manifest
from cdclust.data.arrays import as_array, image_set_from_parts, load_array_file
from cdclust.data.files import FileList, decode_files, list_folder, list_paths
from cdclust.data.imageset import ImageSet, Progress, encode_labels
from cdclust.data.named import DATA_SETS, load_named
from cdclust.data.torchset import load_items
from cdclust.errors import UserError


def load_source(
    spec: Any,
    *,
    split: str | None = None,
    labels: Any = None,
    root: str | os.PathLike[str] | None = None,
    size: int | None = None,
    max_bytes: int | None = None,
    progress: Progress | None = None,
) -> ImageSet:
    """Load all images of a source into memory.

    `spec`: a data set's name; a folder; a .txt, .csv or .parquet manifest; a .npy or .npz file; one image file;
    an array or tensor; a list of paths or of images; a torch Dataset.
    `split`: train, test, ..., joined by +, or all; None is train where there is one, else all.
    `labels`: "folders" for a folder; a column or array by name for manifests and .npz; the labels themselves for
    arrays and lists. `size`: bring every image to this square. `max_bytes`: None is half the machine's memory.
    """
    if size is not None and size < 2:
        raise UserError(f"size: {size} is too small; give the side of the images in pixels, such as 32")
    if isinstance(spec, (str, os.PathLike)):
        return _from_text(os.fspath(spec), split, labels, root, size, max_bytes, progress)
    return _from_python(spec, split, labels, size, max_bytes, progress)


def list_source(
    spec: str | os.PathLike[str] | Sequence[Any], *, split: str | None = None, labels: Any = None
) -> FileList | None:
    """The files of a source that consists of files, none opened; None for every other source."""
    if not isinstance(spec, (str, os.PathLike)):
        return list_paths(spec) if _are_paths(spec) else None
    text = os.fspath(spec)
    path = Path(text).expanduser()
    if text in DATA_SETS:
        return None
    if path.is_dir():
        return list_folder(path, split=split, labels=labels)
    if not path.is_file() or path.suffix.lower() in (".npy", ".npz"):
        return None
    if split not in (None, "all"):
        raise UserError(f"split: {split!r}, but {path.name} has no splits; leave it out or say all")
    if path.suffix.lower() in manifest.SUFFIXES:
        return manifest.list_manifest(path, labels=labels)
    return list_paths([path], path.name)


def _from_text(
    text: str,
    split: str | None,
    labels: Any,
    root: str | os.PathLike[str] | None,
    size: int | None,
    max_bytes: int | None,
    progress: Progress | None,
) -> ImageSet:
    if labels is not None and not isinstance(labels, str):
        raise UserError(f"labels: {text} carries its own labels; give the name of a column or array, or folders")
    if (name := text.split(":")[0]) in DATA_SETS and not Path(text).is_file():
        if labels is not None:
            raise UserError(f"labels: {labels!r}, but {name} has its own labels; leave it out")
        images = load_named(text, split=split, root=root, size=size, max_bytes=max_bytes, progress=progress)
        if Path(text).is_dir():
            images.notes.append(f"{text} is the data set of that name; for the folder here, say ./{text}")
        return images
    path = Path(text).expanduser()
    if path.suffix.lower() in (".npy", ".npz") and path.is_file():
        return load_array_file(path, split=split, labels=labels, size=size, max_bytes=max_bytes)
    files = list_source(text, split=split, labels=labels)
    if files is None:
        raise _unknown(text)
    return decode_files(files, size, max_bytes=max_bytes, progress=progress)


def _unknown(text: str) -> UserError:
    if text.startswith("hf:"):
        return UserError(f"source: {text!r}: Hugging Face data sets cannot be read yet; save one as a folder of images")
    near = difflib.get_close_matches(text.lower().replace("_", "-"), DATA_SETS, 1)
    meant = f" (did you mean {near[0]}?)" if near else ""
    return UserError(
        f"source: {text!r} is neither a folder or file here nor the name of a data set{meant}; "
        f"the names are {', '.join(DATA_SETS)}"
    )


def _from_python(
    spec: Any, split: str | None, labels: Any, size: int | None, max_bytes: int | None, progress: Progress | None
) -> ImageSet:
    if split not in (None, "all"):
        raise UserError(f"split: {split!r}, but images handed over have no splits; leave it out")
    if isinstance(labels, str):
        raise UserError(f"labels: {labels!r} is for folders and files; for images handed over, give the labels")
    if isinstance(spec, Tensor):
        spec = as_array(spec)
    if isinstance(spec, np.ndarray):
        if spec.dtype.kind in "OSU" and _are_paths(spec.tolist()):
            spec = spec.tolist()
        else:
            parts = [("all", spec, labels)]
            return image_set_from_parts("the array", parts, size=size, max_bytes=max_bytes)
    if isinstance(spec, IterableDataset) or not (hasattr(spec, "__len__") and hasattr(spec, "__getitem__")):
        raise UserError(
            f"source: {type(spec).__name__} has no length or items by number; give an array, a list of paths, "
            "a folder or a map-style torch Dataset"
        )
    if _are_paths(spec):
        images = decode_files(list_paths(spec), size, max_bytes=max_bytes, progress=progress)
    else:
        images = load_items(spec, size=size, max_bytes=max_bytes, progress=progress)
    return images if labels is None else _with_labels(images, labels)


def _with_labels(images: ImageSet, labels: Any) -> ImageSet:
    codes, names, notes = encode_labels(labels, images.name)
    if len(codes) != images.n_total:
        raise UserError(f"labels: {len(codes):,} labels for {images.n_total:,} images; give one an image")
    return replace(images, labels=codes, class_names=names, notes=images.notes + notes)


def _are_paths(spec: Any) -> bool:
    return isinstance(spec, (list, tuple)) and len(spec) > 0 and all(isinstance(p, (str, os.PathLike)) for p in spec)
