"""Image files: found in folders and manifests as a list, then decoded together.

The list alone is cheap; what has to run in constant memory can walk it instead of calling `decode_files`.
"""

# ruff: noqa: PTH116, PTH118, PTH122, PTH206
# Paths are strings here: there may be millions of them, and a Path is many times the size of a string.
from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cdclust.data.arrays import choose_splits
from cdclust.data.decode import Unreadable, decode, extensions, upright_size
from cdclust.data.imageset import (
    OK,
    UNKNOWN,
    ImageSet,
    Progress,
    check_memory,
    refuse_if_mostly_bad,
)
from cdclust.errors import UserError

T = TypeVar("T")
SPLITS = ("train", "val", "valid", "validation", "test", "unlabeled", "unlabelled")
AHEAD = 256  # images decoded ahead of the one that is stored


@dataclass
class FileList:
    """Image files by path, with the keys they go by; nothing has been opened yet."""

    name: str
    paths: Sequence[str]
    keys: Sequence[str]
    labels: NDArray[np.int64] | None = None
    class_names: list[str] | None = None
    split: str = "all"
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.paths)


def printable(path: str) -> str:
    """A path as text that can always be written: bytes that are no UTF-8 become \\xNN."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def list_paths(paths: Sequence[str | os.PathLike[str]], name: str = "the list of paths") -> FileList:
    """Files as given, each key the path as it was given."""
    given = [os.fspath(p) for p in paths]
    return FileList(name, given, [printable(p) for p in given])


def list_folder(folder: Path, *, split: str | None = None, labels: str | None = None) -> FileList:
    """Every image file below a folder, sorted, keyed by its path from there; hidden ones are left out.

    With `labels="folders"` the class is the first sub-folder of the folder (of its split, where `split` is said).
    """
    name = f"{printable(os.fspath(folder))}/"
    if labels not in (None, "folders"):
        raise UserError(f"labels: {labels!r} means nothing for the folder {name}; say folders, or leave it out")
    here = sorted(folder_splits(folder))
    chosen = choose_splits(split, here, name) if split not in (None, "all") else []
    if labels and not chosen and here:
        raise UserError(f"split: {name} holds the splits {', '.join(here)}, which are no classes; say which split")
    notes: list[str] = []
    relative: list[str] = []
    for part in chosen or [""]:
        found = sorted(_scan(os.path.join(folder, part), notes), key=os.fsencode)
        relative += [os.path.join(part, f) for f in found]
    if not relative:
        raise UserError(f"source: {name} holds no image files{_others(notes)}; give a folder with images")
    files = FileList(name, [os.path.join(folder, r) for r in relative], [printable(r) for r in relative])
    files.split, files.notes = "+".join(chosen) or "all", notes
    if labels:
        depth = 1 if chosen else 0
        classes = [p[depth] if len(p := r.split(os.sep)) > depth + 1 else "" for r in relative]
        files.labels, files.class_names, more = encode_folders(classes)
        files.notes += more
        if not files.class_names:
            raise UserError(f"labels: {name} has no sub-folders to take labels from; leave --labels out")
    return files


def folder_splits(folder: Path) -> list[str]:
    """A folder has splits only if it holds nothing else: among others, `train` may be a class or an album."""
    inside = {entry.name for entry in folder.iterdir() if not entry.name.startswith(".")}
    folders = {name for name in inside if (folder / name).is_dir()}
    images = inside - folders - {name for name in inside if name.lower().endswith((".txt", ".md", ".csv", ".json"))}
    return [split for split in SPLITS if split in folders] if folders <= set(SPLITS) and not images else []


def encode_folders(classes: Sequence[str]) -> tuple[NDArray[np.int64], list[str], list[str]]:
    """Folder names as labels; a folder called 7 is the class "7", in its place in the order of names."""
    names = sorted({c for c in classes if c}, key=os.fsencode)
    code = {c: i for i, c in enumerate(names)} | {"": UNKNOWN}
    labels = np.array([code[c] for c in classes], dtype=np.int64)
    loose = int((labels == UNKNOWN).sum())
    notes = [f"{loose:,} images lie outside the class folders and have no label"] if loose else []
    return labels, [printable(n) for n in names], notes


def _scan(folder: str | os.PathLike[str], notes: list[str]) -> Iterator[str]:
    """Paths, from the folder on, that are called like images; links to folders are followed, once each."""
    known, left_out, seen = extensions(), Counter[str](), set()
    errors: list[OSError] = []
    for base, folders, files in os.walk(folder, followlinks=True, onerror=errors.append):
        info = os.stat(base)
        if (info.st_dev, info.st_ino) in seen:
            folders.clear()
            continue
        seen.add((info.st_dev, info.st_ino))
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for name in files + folders:
            ending = os.path.splitext(name)[1].lower()
            if ending in known and not name.startswith("."):
                yield os.path.relpath(os.path.join(base, name), folder)
            elif name in files and not name.startswith("."):
                left_out[ending or "no ending"] += 1
    if left_out:
        kinds = ", ".join(f"{n:,} {printable(e)}" for e, n in left_out.most_common(5))
        notes.append(f"{left_out.total():,} files are not called like images and were left out ({kinds})")
    notes += [f"the folder {printable(str(e.filename))} cannot be read: {e.strerror}" for e in errors]


def _others(notes: list[str]) -> str:
    return f" ({'; '.join(notes)})" if notes else ""


def decode_files(
    files: FileList,
    size: int | None,
    *,
    max_bytes: int | None = None,
    progress: Progress | None = None,
) -> ImageSet:
    """All files of the list as squares of `size` in one tensor; without `size` they must be of one size already."""
    n = len(files)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's, one an image; what matters becomes a status
        height, width = (size, size) if size else _common_size(files)
        check_memory(n, (3, height, width), files.name, max_bytes)
        images = torch.empty((n, 3, height, width), dtype=torch.uint8)
        status = [OK] * n
        rows: list[int] = []
        for i, result in enumerate(_in_threads(lambda p: decode(p, size), files.paths)):
            if isinstance(result, Unreadable):
                status[i] = f"unreadable: {result}"
            elif result.shape != (3, height, width):
                status[i] = "unreadable: its pixels do not have the size in its header"
            else:
                images[len(rows)] = torch.from_numpy(result)
                rows.append(i)
            if progress:
                progress(i + 1, n)
    refuse_if_mostly_bad(status, files.keys, files.name)
    return from_files(files, images[: len(rows)], status, rows)


def from_files(files: FileList, images: Tensor, status: list[str], rows: list[int]) -> ImageSet:
    """The set that decoding a list has given."""
    return ImageSet(
        files.name,
        images,
        files.keys,
        status,
        np.array(rows, dtype=np.int64),
        files.labels,
        files.class_names,
        files.split,
        list(files.notes),
    )


def _common_size(files: FileList) -> tuple[int, int]:
    found = Counter(s for s in _in_threads(upright_size, files.paths) if not isinstance(s, Unreadable))
    if len(found) > 1:
        some = ", ".join(f"{h} x {w}" for (h, w), _ in found.most_common(3))
        raise UserError(
            f"size: the images of {files.name} differ in size ({some}, {len(found):,} sizes in all); "
            "give one to bring them to, such as 96"
        )
    return next(iter(found), (1, 1))


def _in_threads(work: Callable[[str], T], paths: Sequence[str]) -> Iterator[T | Unreadable]:
    """Results in order, a bounded number ahead; a damaged image gives its reason."""

    def guarded(path: str) -> T | Unreadable:
        try:
            return work(path)
        except Unreadable as reason:
            return reason

    with ThreadPoolExecutor(max_workers=min(16, os.cpu_count() or 1)) as pool:
        for start in range(0, len(paths), AHEAD):
            yield from pool.map(guarded, paths[start : start + AHEAD])
