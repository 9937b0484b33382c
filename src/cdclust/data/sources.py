"""What a user named or handed over, as one of the few kinds of things that images are read from."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor
from torch.utils.data import IterableDataset

from cdclust.data import manifest
from cdclust.data.arrayfiles import open_array_file
from cdclust.data.arrays import ArrayParts, as_array, choose_splits
from cdclust.data.files import FileList, list_folder, list_paths
from cdclust.data.huggingface import PREFIX as HUB
from cdclust.data.huggingface import open_hub
from cdclust.data.imageset import encode_labels
from cdclust.data.named import DATA_SETS, open_named
from cdclust.data.shards import TarStream, find_shards
from cdclust.data.stream import ImageStream
from cdclust.data.torchset import Items
from cdclust.data.vision import PREFIX as VISION
from cdclust.data.vision import open_vision
from cdclust.errors import UserError

Root = str | os.PathLike[str] | None


@dataclass
class Handed:
    """Items handed over from Python, with labels that were handed over beside them."""

    items: Items
    labels: Any = None
    name: str = "the data set"
    split: str = "all"


Source = FileList | ArrayParts | Handed | ImageStream


def find_source(spec: Any, split: str | None, labels: Any, root: Root, max_bytes: int | None = None) -> Source:
    """Nothing is decoded yet, and of arrays in files only what is compressed is read."""
    if isinstance(spec, (str, os.PathLike)):
        return _from_text(os.fspath(spec), split, labels, root, max_bytes)
    return _from_python(spec, split, labels)


def list_source(
    spec: str | os.PathLike[str] | Sequence[Any], *, split: str | None = None, labels: Any = None
) -> FileList | None:
    """The files of a source that consists of files, none opened; None for every other source."""
    if not isinstance(spec, (str, os.PathLike)):
        return list_paths(spec) if _are_paths(spec) else None
    text = os.fspath(spec)
    path = Path(text).expanduser()
    if text in DATA_SETS or find_shards(text) is not None:
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


def _from_text(text: str, split: str | None, labels: Any, root: Root, max_bytes: int | None) -> Source:
    if labels is not None and not isinstance(labels, str):
        raise UserError(f"labels: {text} carries its own labels; give the name of a column or array, or folders")
    if (name := text.split(":")[0]) in DATA_SETS and not Path(text).is_file():
        if labels is not None:
            raise UserError(f"labels: {labels!r}, but {name} has its own labels; leave it out")
        found = open_named(text, split=split, root=root)
        if Path(text).is_dir():
            found.notes.append(f"{text} is the data set of that name; for the folder here, say ./{text}")
        return found
    if text.startswith(VISION):
        if labels is not None:
            raise UserError(f"labels: {labels!r}, but {text} has its own labels; leave it out")
        items, known, chosen = open_vision(text, split=split, root=root)
        return Handed(items, known, text, chosen)
    if text.startswith(HUB):
        return open_hub(text, split=split, labels=labels)
    if (shards := find_shards(text)) is not None:
        choose_splits(split, [], text)
        return TarStream(shards, text, labels=labels)
    path = Path(text).expanduser()
    if path.suffix.lower() in (".npy", ".npz") and path.is_file():
        return open_array_file(path, split=split, labels=labels, max_bytes=max_bytes)
    files = list_source(text, split=split, labels=labels)
    if files is None:
        raise _unknown(text)
    return files


def _unknown(text: str) -> UserError:
    near = difflib.get_close_matches(text.lower().replace("_", "-"), DATA_SETS, 1)
    meant = f" (did you mean {near[0]}?)" if near else ""
    return UserError(
        f"source: {text!r} is neither a folder or file here nor the name of a data set{meant}; "
        f"the names are {', '.join(DATA_SETS)}, torchvision:NAME and hf:NAME"
    )


def _from_python(spec: Any, split: str | None, labels: Any) -> Source:
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
            return ArrayParts("the array", [("all", spec, labels)])
    if isinstance(spec, IterableDataset) or not (hasattr(spec, "__len__") and hasattr(spec, "__getitem__")):
        raise UserError(
            f"source: {type(spec).__name__} has no length or items by number; give an array, a list of paths, "
            "a folder or a map-style torch Dataset"
        )
    if not _are_paths(spec):
        return Handed(spec, labels)
    files = list_paths(spec)
    if labels is not None:
        files.labels, files.class_names, files.notes = encode_labels(labels, files.name)
        if len(files.labels) != len(files):
            raise UserError(f"labels: {len(files.labels):,} labels for {len(files):,} images; give one an image")
    return files


def _are_paths(spec: Any) -> bool:
    return isinstance(spec, (list, tuple)) and len(spec) > 0 and all(isinstance(p, (str, os.PathLike)) for p in spec)
