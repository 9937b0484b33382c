"""Images read one by one, where they lie: what is larger than memory passes through here.

A stream knows its images by row; only the batches in flight are ever in memory.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ClassVar, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cdclust.data.decode import Unreadable
from cdclust.data.imageset import (
    OK,
    ImageSet,
    Progress,
    check_memory,
    refuse_if_mostly_bad,
    refuse_if_strict,
    too_many_bad,
)
from cdclust.errors import UserError

T = TypeVar("T")
R = TypeVar("R")
Batch = tuple[list[int], Tensor, dict[int, str]]
AHEAD = 8  # images decoded ahead of the one that is asked for, for each thread
LOADED_AT_ONCE = 64


class ImageStream(ABC):
    """The images of a source by row, none of them held in memory.

    `keys` and `labels` (-1 where unknown) have one entry for each image of the source, readable or not.
    """

    thread_safe: ClassVar[bool] = True  # whether several rows may be read at the same time

    def __init__(
        self,
        name: str,
        keys: Sequence[str],
        *,
        labels: NDArray[np.int64] | None = None,
        class_names: list[str] | None = None,
        split: str = "all",
        notes: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.keys = keys
        self.labels = labels
        self.class_names = class_names
        self.split = split
        self.notes = list(notes)

    def __len__(self) -> int:
        return len(self.keys)

    @abstractmethod
    def read(self, row: int, size: int | None) -> NDArray[np.uint8]:
        """The image as RGB (3, size, size): short side resized with antialiasing, centre kept; raises `Unreadable`.

        Without `size` it is (3, H, W), as it was stored.
        """

    @abstractmethod
    def fingerprint(self) -> str:
        """A digest that changes when the source does, made without reading all of it."""


def digest(parts: Iterable[object]) -> str:
    """Hex digest of the parts' texts, or of their bytes; no part can be mistaken for two."""
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        content = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogateescape")
        found.update(len(content).to_bytes(8, "little"))
        found.update(content)
    return found.hexdigest()


def read_batches(
    stream: ImageStream,
    rows: Sequence[int] | NDArray[np.int64],
    size: int,
    batch_size: int,
    threads: int | None = None,
    *,
    strict: bool = False,
) -> Iterator[Batch]:
    """Rows read, their images uint8 (b, 3, size, size), and the status of each row that could not be read.

    A batch stands for the next `batch_size` of `rows`, in their order; b is smaller by those that are bad, down to 0.
    `threads` None is one a core. With `strict` the first bad image is an error; more than half of the stream bad is
    one always.
    """
    _quiet()
    bad_in_all = 0
    threads = threads_for(stream, threads)
    ahead = max(AHEAD * threads, batch_size)  # the next batch is read while this one is worked on
    read = in_threads(lambda row: _read(stream, row, size), (int(r) for r in rows), threads, ahead)
    for start in range(0, len(rows), batch_size):
        asked = min(batch_size, len(rows) - start)
        pixels = np.empty((asked, 3, size, size), dtype=np.uint8)
        good: list[int] = []
        bad: dict[int, str] = {}
        for _ in range(asked):
            row, result = next(read)
            if isinstance(result, str):
                bad[row] = result
                refuse_if_strict(strict, stream.keys[row], result, stream.name)
            else:
                pixels[len(good)] = result
                good.append(row)
        bad_in_all += len(bad)
        if 2 * bad_in_all > len(stream):
            row = next(iter(bad))
            raise too_many_bad(bad_in_all, len(stream), stream.keys[row], bad[row], stream.name)
        yield good, torch.from_numpy(pixels[: len(good)]), bad


def load_stream(
    stream: ImageStream,
    size: int | None,
    *,
    shape: tuple[int, ...] | None = None,
    max_bytes: int | None = None,
    progress: Progress | None = None,
    strict: bool = False,
) -> ImageSet:
    """All images of a stream in memory, of `shape` where it is known; without `size` all must be of one."""
    n = len(stream)
    images = None if shape is None else _room(n, shape, stream.name, max_bytes)
    status, rows = [OK] * n, list[int]()
    _quiet()
    for row, result in in_threads(lambda r: _read(stream, r, size), range(n), threads_for(stream, None)):
        if not isinstance(result, str):
            images = _room(n, result.shape, stream.name, max_bytes) if images is None else images
            if result.shape == images.shape[1:]:
                images[len(rows)].numpy()[:] = result
                rows.append(row)
            elif shape is None:
                raise _several_sizes(stream, row, result.shape, tuple(images.shape[1:]))
            else:
                result = "unreadable: its pixels do not have the size in its header"
        if isinstance(result, str):
            status[row] = result
            refuse_if_strict(strict, stream.keys[row], result, stream.name)
        if progress:
            progress(row + 1, n)
    refuse_if_mostly_bad(status, stream.keys, stream.name)
    assert images is not None
    return _as_set(stream, images[: len(rows)], status, rows)


def _room(n: int, shape: tuple[int, ...], name: str, max_bytes: int | None) -> Tensor:
    check_memory(n, shape, name, max_bytes)
    return torch.empty((n, *shape), dtype=torch.uint8)


def _several_sizes(stream: ImageStream, row: int, here: tuple[int, ...], first: tuple[int, ...]) -> UserError:
    return UserError(
        f"size: the images of {stream.name} differ in size ({first[1]} x {first[2]}, then {here[1]} x {here[2]} at "
        f"{stream.keys[row]!r}); give one to bring them to, such as 96"
    )


def _as_set(stream: ImageStream, images: Tensor, status: list[str], rows: list[int]) -> ImageSet:
    return ImageSet(
        stream.name,
        images,
        stream.keys,
        status,
        np.array(rows, dtype=np.int64),
        stream.labels,
        stream.class_names,
        stream.split,
        stream.notes,
    )


def _quiet() -> None:
    """Pillow warns of odd metadata, once an image; what matters becomes a status.

    For good, since to take the filter back is not safe while other threads decode.
    """
    warnings.filterwarnings("ignore", module=r"PIL\.")


def _read(stream: ImageStream, row: int, size: int | None) -> tuple[int, NDArray[np.uint8] | str]:
    try:
        return row, stream.read(row, size)
    except Unreadable as reason:
        return row, f"unreadable: {reason}"


def threads_for(stream: ImageStream, threads: int | None) -> int:
    """How many threads read a stream."""
    return (threads or n_cores()) if stream.thread_safe else 1


def n_cores() -> int:
    """The processor cores this process may use, 16 at most."""
    return min(16, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def in_threads(work: Callable[[T], R], items: Iterable[T], threads: int, ahead: int | None = None) -> Iterator[R]:
    """Results in the order of the items, a bounded number of them ahead."""
    ahead = AHEAD * threads if ahead is None else ahead
    waiting: deque[Future[R]] = deque()
    pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="cdclust-read")
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)  # the reader may stop early
