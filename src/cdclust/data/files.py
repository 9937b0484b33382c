"""Image files: found in folders and manifests as a list, then decoded together or one by one."""

# ruff: noqa: PTH116, PTH118, PTH122, PTH206
# Paths are strings here: there may be millions of them, and a Path is many times the size of a string.
from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cdclust.data.arrays import choose_splits
from cdclust.data.decode import Unreadable, decode, extensions, upright_size
from cdclust.data.imageset import UNKNOWN, ImageSet, Progress
from cdclust.data.stream import ImageStream, digest, in_threads, load_stream, n_cores
from cdclust.errors import UserError

T = TypeVar("T")
SPLITS = ("train", "val", "valid", "validation", "test", "unlabeled", "unlabelled")


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


class FileStream(ImageStream):
    """Image files, each decoded when it is asked for."""

    def __init__(self, files: FileList) -> None:
        super().__init__(
            files.name,
            files.keys,
            labels=files.labels,
            class_names=files.class_names,
            split=files.split,
            notes=files.notes,
        )
        self.paths = files.paths

    def read(self, row: int, size: int | None) -> NDArray[np.uint8]:
        """The file as it is now; a file that has gone is `Unreadable`."""
        return decode(self.paths[row], size)

    def fingerprint(self) -> str:
        """Keys, sizes and times of the files, none of which is opened."""
        return digest(part for key, path in zip(self.keys, self.paths, strict=True) for part in (key, _state(path)))


def _state(path: str) -> str:
    try:
        info = os.stat(path)
    except (OSError, ValueError):
        return "missing"
    return f"{info.st_size} {info.st_mtime_ns}"


def decode_files(
    files: FileList,
    size: int | None,
    *,
    max_bytes: int | None = None,
    progress: Progress | None = None,
    strict: bool = False,
) -> ImageSet:
    """All files of the list as squares of `size` in one tensor; without `size` they must be of one size already."""
    height, width = (size, size) if size else _common_size(files)
    return load_stream(
        FileStream(files), size, shape=(3, height, width), max_bytes=max_bytes, progress=progress, strict=strict
    )


def _common_size(files: FileList) -> tuple[int, int]:
    found = Counter(
        s for s in in_threads(_guarded(upright_size), files.paths, n_cores()) if not isinstance(s, Unreadable)
    )
    if len(found) > 1:
        some = ", ".join(f"{h} x {w}" for (h, w), _ in found.most_common(3))
        raise UserError(
            f"size: the images of {files.name} differ in size ({some}, {len(found):,} sizes in all); "
            "give one to bring them to, such as 96"
        )
    return next(iter(found), (1, 1))


def _guarded(work: Callable[[str], T]) -> Callable[[str], T | Unreadable]:
    def guarded(path: str) -> T | Unreadable:
        try:
            return work(path)
        except Unreadable as reason:
            return reason

    return guarded
