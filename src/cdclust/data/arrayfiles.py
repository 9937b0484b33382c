"""Arrays of images in .npy and .npz files, mapped from the file wherever it holds them uncompressed."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from cdclust.data.arrays import Array, ArrayParts, Part, choose_splits
from cdclust.data.imageset import check_bytes
from cdclust.errors import UserError

IMAGE_KEYS = ("x", "images", "X", "data", "arr_0")  # in an .npz without splits
LABEL_KEYS = ("y", "labels")
LOCAL_HEADER = 30  # bytes of a zip member's own header, before its name
DAMAGED = (ValueError, OSError, EOFError, KeyError, MemoryError, RuntimeError, zipfile.BadZipFile, zlib.error)


class NpzFile:
    """The arrays of an .npz by name; one stored as it is gets mapped, a compressed one read when asked for."""

    def __init__(self, path: Path, max_bytes: int | None = None) -> None:
        self.path = path
        self.max_bytes = max_bytes
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.infolist() if m.filename.endswith(".npy")]
        self._members = {m.filename.removesuffix(".npy"): m for m in members}
        self.files = list(self._members)

    def __getitem__(self, name: str) -> Array:
        member = self._members[name]
        with zipfile.ZipFile(self.path) as archive, archive.open(member) as file:
            shape, fortran, dtype = _npy_header(file)
            n_bytes = int(np.prod(shape, dtype=object)) * dtype.itemsize
            start, order = file.tell(), "F" if fortran else "C"
            if member.compress_type != zipfile.ZIP_STORED or n_bytes == 0:
                check_bytes(n_bytes, f"{name} of {self.path.name}", self.max_bytes)
                with archive.open(member) as whole:
                    read: Array = np.lib.format.read_array(whole, allow_pickle=False)
                return read
        if start + n_bytes > member.file_size:
            raise ValueError(f"{name} is cut short")
        offset = self._offset(member) + start
        return np.memmap(self.path, dtype, "r", offset, shape, order)  # type: ignore[call-overload,no-any-return]

    def _offset(self, member: zipfile.ZipInfo) -> int:
        """Where a member's bytes begin; its own header may be longer than the one in the archive's index."""
        with self.path.open("rb") as file:
            file.seek(member.header_offset)
            header = file.read(LOCAL_HEADER)
        name, extra = (int.from_bytes(header[i : i + 2], "little") for i in (26, 28))
        return member.header_offset + LOCAL_HEADER + name + extra


def _npy_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(file)
    if dtype.hasobject:
        raise ValueError("Python objects")
    if any(n < 0 for n in shape):
        raise ValueError(f"an array of the shape {shape}")
    return shape, fortran, dtype


def open_array_file(path: Path, *, split: str | None, labels: str | None, max_bytes: int | None = None) -> ArrayParts:
    """A .npy or .npz file; its pixels are read when they are used."""
    name = path.name
    try:
        if path.suffix.lower() == ".npy":
            array = np.load(path, mmap_mode="r", allow_pickle=False)
            choose_splits(split, [], name)
            if labels is not None:
                raise UserError(f"labels: {labels!r}, but {name} holds images alone; use .npz with x and y")
            return ArrayParts(name, [("all", array, None)])
        parts, class_names = npz_parts(NpzFile(path, max_bytes), name, split=split, labels=labels)
        return ArrayParts(name, parts, class_names)
    except DAMAGED as e:
        reason = (
            "it holds pickled objects"
            if "allow_pickle" in str(e) or "Python objects" in str(e)
            else str(e) or type(e).__name__
        )
        raise UserError(f"source: {path} cannot be read: {reason}; save it again with numpy.save or savez") from e


def npz_parts(
    file: Any, name: str, *, split: str | None, labels: str | None = None, label_stem: str = "y"
) -> tuple[list[Part], list[str] | None]:
    """The arrays of an .npz: x_train, y_train, x_test, y_test; or x and y; or images and labels; or one array.

    `label_stem` picks among several labels (y, y_coarse), `labels` names the array of labels outright.
    """
    keys = list(file.files)
    class_names = [str(c) for c in file["class_names"]] if "class_names" in keys else None
    splits = [k.removeprefix("x_") for k in keys if k.startswith("x_")]
    if splits:
        chosen = choose_splits(split, splits, name)
        stem = labels or label_stem
        if labels is not None and not any(f"{labels}_{s}" in keys for s in chosen):
            raise UserError(f"labels: {name} has no {labels}_{chosen[0]}; its arrays are {', '.join(keys)}")
        return [
            (s, file[f"x_{s}"], file[f"{stem}_{s}"] if f"{stem}_{s}" in keys else None) for s in chosen
        ], class_names
    choose_splits(split, [], name)
    found = [k for k in IMAGE_KEYS if k in keys] or (keys if len(keys) == 1 else [])
    if not found:
        raise UserError(
            f"source: {name} has the arrays {', '.join(keys) or '(none)'}; call the images x_train and x_test, "
            "or x, or images"
        )
    if labels is not None and labels not in keys:
        raise UserError(f"labels: {name} has no array {labels!r}; its arrays are {', '.join(keys)}")
    label_keys = [labels] if labels else [k for k in LABEL_KEYS if k in keys]
    return [("all", file[found[0]], file[label_keys[0]] if label_keys else None)], class_names
