"""Which splits a source has, without reading its images."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from cdclust.data.files import folder_splits
from cdclust.data.huggingface import PREFIX as HUB
from cdclust.data.huggingface import hub_splits
from cdclust.data.named import DATA_SETS, IMAGENETS, data_root
from cdclust.data.official import OFFICIAL
from cdclust.data.vision import PREFIX as VISION
from cdclust.data.vision import vision_splits


def available_splits(spec: Any, root: str | os.PathLike[str] | None = None) -> list[str]:
    """The names of a source's splits; none where its images are one set, or where it cannot be read."""
    if not isinstance(spec, (str, os.PathLike)):
        return []
    text = os.fspath(spec)
    path = Path(text).expanduser()
    if (name := text.split(":")[0]) in DATA_SETS and not path.is_file():
        return _named(name, data_root(root))
    if text.startswith(VISION):
        return vision_splits(text)
    if text.startswith(HUB):
        return hub_splits(text)
    if path.is_dir():
        return folder_splits(path)
    return _in_arrays(path)


def _named(name: str, root: Path) -> list[str]:
    if name in IMAGENETS:
        return ["train", "val"]
    base = name.removesuffix("-20")
    if base not in OFFICIAL:
        return []
    official = OFFICIAL[base]
    unpacked = any((root / folder).is_dir() for folder in (official.binary, official.pickled) if folder)
    return _in_arrays(root / f"{base}.npz") if not unpacked and (root / f"{base}.npz").exists() else [*official.files]


def _in_arrays(path: Path) -> list[str]:
    if path.suffix.lower() != ".npz" or not path.is_file():
        return []
    try:
        with np.load(path, allow_pickle=False) as file:
            return [key.removeprefix("x_") for key in file.files if key.startswith("x_")]
    except (ValueError, OSError, EOFError):
        return []  # whoever reads it says what is wrong
