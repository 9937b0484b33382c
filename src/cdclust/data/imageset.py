"""What every source is turned into: all images as one uint8 tensor, with their keys, statuses and labels."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from cdclust.errors import UserError

OK = "ok"
UNKNOWN = -1  # the label of an image whose class is not known
WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")
MEMORY_SHARE = 0.5  # of the machine's memory, for the images of one set

Progress = Callable[[int, int], None]  # (done, total)


class IndexKeys(Sequence[str]):
    """The keys of an array's images, "0" to str(n - 1), made when asked for."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [str(i) for i in range(self.n)[index]]
        return str(range(self.n)[index])


class Catalogue:
    """What is known of a set's images beside their pixels.

    `keys`, `status` and `labels` have one entry for each image of the source, readable or not; `rows` are the places
    of the readable ones.
    """

    name: str
    keys: Sequence[str]
    status: Sequence[str]  # "ok" or "unreadable: reason"
    rows: NDArray[np.int64]  # (n,)
    labels: NDArray[np.int64] | None  # -1 where unknown
    class_names: list[str] | None
    split: str
    notes: list[str]  # what was converted or left out, one sentence each

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def n_total(self) -> int:
        """How many images the source names, unreadable ones included."""
        return len(self.keys)

    @property
    def n_unreadable(self) -> int:
        """How many of them could not be read."""
        return self.n_total - len(self.rows)

    @property
    def image_labels(self) -> NDArray[np.int64] | None:
        """The labels of the readable images, in their order."""
        return None if self.labels is None else self.labels[self.rows]

    def spread(self, values: ArrayLike, fill: Any = UNKNOWN) -> NDArray[Any]:
        """Values of the readable images as values of all `keys`; `fill` stands for an unreadable one."""
        values = np.asarray(values)
        out = np.full((self.n_total, *values.shape[1:]), fill, dtype=values.dtype)
        out[self.rows] = values
        return out


@dataclass
class ImageSet(Catalogue):
    """A set of images in memory: `images[i]` is the image called `keys[rows[i]]`."""

    name: str
    images: Tensor  # (n, C, H, W) uint8
    keys: Sequence[str]
    status: Sequence[str]
    rows: NDArray[np.int64]
    labels: NDArray[np.int64] | None = None
    class_names: list[str] | None = None
    split: str = "all"
    notes: list[str] = field(default_factory=list)


def encode_labels(values: ArrayLike, name: str) -> tuple[NDArray[np.int64], list[str] | None, list[str]]:
    """Labels of any type as int64, the names of the classes where numbers do not say them, and notes.

    Whole numbers from -1 on stay what they are and -1 means unknown; so do an empty string, None and NaN.
    """
    raw = np.asarray(values).reshape(-1)
    numbers = raw
    if raw.dtype.kind in "OSU":
        words = np.array([v.decode() if isinstance(v, bytes) else "" if v is None else str(v) for v in raw])
        raw = numbers = words
        if len(words) and all(WHOLE_NUMBER.fullmatch(w) for w in words.tolist() if w):
            numbers = np.array([int(w) if w else UNKNOWN for w in words.tolist()])
    if numbers.dtype.kind == "f":
        filled = np.where(np.isnan(numbers), UNKNOWN, numbers)  # a missing number in a table is NaN
        numbers = filled.astype(np.int64) if (filled == np.rint(filled)).all() else numbers
    if numbers.dtype.kind in "iub" and (not len(numbers) or int(numbers.min()) >= UNKNOWN):
        codes = numbers.astype(np.int64)
        n_unknown = int((codes == UNKNOWN).sum())
        return codes, None, [f"{n_unknown:,} images of {name} have no label (-1)"] if n_unknown else []
    classes, codes = np.unique(raw, return_inverse=True)
    names = [str(c) for c in classes]
    codes = codes.reshape(-1).astype(np.int64)
    if names and names[0] == "":
        names, codes = names[1:], codes - 1
    return codes, names, []


def check_memory(n: int, shape: tuple[int, ...], name: str, max_bytes: int | None) -> None:
    """Refuse, before anything is read, a set that would not fit; `max_bytes` None is half the machine's memory."""
    max_bytes = memory_bound(max_bytes)
    need = n * int(np.prod(shape))
    if need > max_bytes:
        raise UserError(
            f"size: {n:,} images of {name} at {shape[-2]} x {shape[-1]} need {need / 2**30:,.1f} GiB of memory "
            f"and {max_bytes / 2**30:,.1f} GiB may be used; give a smaller size or fewer images"
        )


def check_bytes(need: int, name: str, max_bytes: int | None) -> None:
    """Refuse what says of itself that it is larger than the memory that may be used."""
    if need > memory_bound(max_bytes):
        raise UserError(
            f"source: {name} needs {need / 2**30:,.1f} GiB of memory and {memory_bound(max_bytes) / 2**30:,.1f} GiB "
            "may be used; save it uncompressed, with numpy.save or savez"
        )


def memory_bound(max_bytes: int | None) -> int:
    """How much memory one set may use."""
    return int(MEMORY_SHARE * _memory()) if max_bytes is None else max_bytes


def _memory() -> int:
    if not hasattr(os, "sysconf"):
        return 16 * 2**30
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def refuse_if_mostly_bad(status: Sequence[str], keys: Sequence[str], name: str) -> None:
    """More than half unreadable is a wrong source, not bad luck."""
    bad = [i for i, s in enumerate(status) if s != OK]
    if 2 * len(bad) > len(status):
        raise too_many_bad(len(bad), len(status), keys[bad[0]], status[bad[0]], name)


def too_many_bad(n_bad: int, n: int, key: str, status: str, name: str) -> UserError:
    """What is said of a source that is mostly unreadable, with one image as an example."""
    return UserError(
        f"source: {n_bad:,} of the {n:,} images of {name} cannot be read (for instance {key!r}, {status}); "
        "give the folder that holds the images, or mend them"
    )


def refuse_if_strict(strict: bool, key: str, status: str, name: str) -> None:
    """With `strict` the first bad image is fatal."""
    if strict and status != OK:
        reason = status.removeprefix("unreadable: ")
        raise UserError(f"source: {key!r} of {name} cannot be read ({reason}); mend or remove it, or leave strict out")
