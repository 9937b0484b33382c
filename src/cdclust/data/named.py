"""Data sets by name, under one root: the argument, else the variable CDCLUST_DATA, else ~/.cache/cdclust."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from cdclust.data.arrays import ArrayParts, choose_splits
from cdclust.data.files import FileList, encode_folders, list_folder
from cdclust.data.official import official_parts
from cdclust.errors import UserError

IMAGENETS = ("imagenet", "imagenet-50", "imagenet-100", "imagenet-200")
DATA_SETS = ("digits", "cifar10", "cifar100", "cifar100-20", "stl10", *IMAGENETS)


def data_root(root: str | os.PathLike[str] | None = None) -> Path:
    """Where named data sets lie."""
    return Path(root or os.environ.get("CDCLUST_DATA") or "~/.cache/cdclust").expanduser()


def open_named(
    text: str, *, split: str | None = None, root: str | os.PathLike[str] | None = None
) -> FileList | ArrayParts:
    """The data set called `text`; an ImageNet may carry a list of classes, `imagenet:classes.txt`."""
    name, _, class_list = text.partition(":")
    if name in IMAGENETS:
        return list_imagenet(name, class_list, data_root(root), split)
    if class_list:
        raise UserError(f"source: {text!r}: only an ImageNet takes a list of classes; say {name}")
    if name == "digits":
        return digits(split)
    base = name.removesuffix("-20")
    return ArrayParts(name, *official_parts(base, data_root(root), coarse=base != name, split=split))


def digits(split: str | None) -> ArrayParts:
    """scikit-learn's 1,797 handwritten digits, 8 x 8, their 17 grey levels spread over 0..255."""
    from sklearn.datasets import load_digits

    choose_splits(split, [], "digits")
    pixels, labels = load_digits(return_X_y=True)
    images = np.rint(pixels.reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)
    return ArrayParts("digits", [("all", images, labels)], [str(d) for d in range(10)])


def list_imagenet(name: str, class_list: str, root: Path, split: str | None) -> FileList:
    """`root/NAME/{train,val}/CLASS/*.JPEG`; or `root/imagenet` with the classes named in a text file.

    The file is `class_list`, else `root/NAME.txt`; the first word of a line is a class, as in SCAN's lists.
    """
    wanted = Path(class_list).expanduser() if class_list else root / f"{name}.txt"
    folder = root / name if (root / name).is_dir() else root / "imagenet"
    listed = _class_list(wanted) if class_list or (name != "imagenet" and wanted.is_file()) else None
    whole = name != "imagenet" and folder.name == "imagenet" and listed is None
    if whole or not folder.is_dir():
        lists = "" if name == "imagenet" else f", or imagenet/ and the list of classes {name}.txt,"
        raise UserError(
            f"source: {name} is not under {root}; put the folder {name}/ with train/ and val/, a sub-folder a class"
            f"{lists} there, or name another place with --root or CDCLUST_DATA"
        )
    there = sorted(e.name for e in folder.iterdir() if e.is_dir())
    asked = "+".join("val" if s == "test" and "test" not in there else s for s in (split or "train").split("+"))
    files = list_folder(folder, split="+".join(there) if asked == "all" else asked, labels="folders")
    files.name = name
    return files if listed is None else _only(files, listed, wanted)


def _class_list(path: Path) -> list[str]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as e:
        raise UserError(f"source: the list of classes {path} cannot be read; give a text file, a class a line") from e
    return [line.split()[0] for line in lines if line.strip()]


def _only(files: FileList, classes: list[str], wanted: Path) -> FileList:
    assert files.labels is not None
    assert files.class_names is not None
    missing = [c for c in classes if c not in files.class_names]
    if missing or not classes:
        raise UserError(
            f"source: {len(missing)} of the {len(classes)} classes of {wanted} have no folder in {files.name}"
            f"{f' (the first: {missing[0]})' if missing else ''}; mend the list"
        )
    of_image = [files.class_names[i] if i >= 0 else "" for i in files.labels]
    keep = [i for i, c in enumerate(of_image) if c in set(classes)]
    labels, names, _ = encode_folders([of_image[i] for i in keep])
    paths, keys = [files.paths[i] for i in keep], [files.keys[i] for i in keep]
    return FileList(files.name, paths, keys, labels, names, files.split, files.notes)
