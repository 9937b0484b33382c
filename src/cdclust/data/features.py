"""The feature cache: what a frozen backbone makes of every image, on disk, written once and read by many runs.

A folder of two .npy arrays in float16, mapped into memory and never loaded whole. It is filled a chunk of rows at a
time, by any number of processes, and goes on where it was when its writer was killed.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from cdclust.data.imageset import OK
from cdclust.errors import UserError

CHUNK = 1024  # rows that are done together
VERSION = 1  # of what is written and how it is computed; another number makes other folders


@dataclass(frozen=True)
class CacheKey:
    """Everything that the features depend on."""

    source: str  # the stream's fingerprint
    backbone: str  # its name and a digest of its weights
    size: int  # side of what the backbone sees
    views: int  # random views of each image, beside the clean one
    policy: str  # how they are drawn, as JSON
    precision: str
    n: int
    dim: int
    version: int = VERSION

    def digest(self) -> str:
        """A name for the folder."""
        content = json.dumps(asdict(self), sort_keys=True).encode()
        return hashlib.blake2b(content, digest_size=8).hexdigest()


class FeatureCache:
    """`clean` (N, D) and `views` (N, V, D) of one source under one backbone."""

    def __init__(self, folder: Path, key: CacheKey) -> None:
        self.folder, self.key = folder, key
        self.clean: NDArray[np.float16] = self._array("clean.npy", (key.n, key.dim))
        self.views: NDArray[np.float16] = self._array("views.npy", (key.n, key.views, key.dim))
        self._done = self._array("done.npy", (self.n_chunks,), np.dtype(np.uint8))

    @property
    def n_chunks(self) -> int:
        """How many chunks the rows make."""
        return -(-self.key.n // CHUNK)

    @property
    def n_done(self) -> int:
        """How many rows are embedded."""
        return sum(len(self.rows_of(chunk)) for chunk in np.flatnonzero(self._done).tolist())

    @property
    def complete(self) -> bool:
        """Whether every row is there."""
        return bool(self._done.all())

    def rows_of(self, chunk: int) -> range:
        """The rows of a chunk."""
        return range(chunk * CHUNK, min(self.key.n, (chunk + 1) * CHUNK))

    def missing(self, rank: int = 0, world: int = 1) -> Iterator[int]:
        """The chunks this process still has to do."""
        return (chunk for chunk in range(rank, self.n_chunks, world) if not self._done[chunk])

    def finish(self, chunk: int, bad: dict[int, str]) -> None:
        """Mark a chunk as written; what could not be read has its reason beside it."""
        part = self.folder / f"bad-{chunk:07d}.json"
        if bad:
            beside = part.with_suffix(".part")
            beside.write_text(json.dumps({str(row): reason for row, reason in bad.items()}), encoding="utf-8")
            beside.replace(part)
        for array in (self.clean, self.views):
            if isinstance(array, np.memmap):
                array.flush()
        self._done[chunk] = 1
        self._done.flush()

    def statuses(self) -> dict[int, str]:
        """The reason of every row that could not be read."""
        found: dict[int, str] = {}
        for part in sorted(self.folder.glob("bad-*.json")):
            found |= {int(row): reason for row, reason in json.loads(part.read_text(encoding="utf-8")).items()}
        return found

    def status_list(self) -> list[str]:
        """One status a row."""
        status = [OK] * self.key.n
        for row, reason in self.statuses().items():
            status[row] = reason
        return status

    def at_random(self) -> None:
        """From now on rows are read here and there: what lies behind a row is not read along with it."""
        for array in (self.clean, self.views):
            if (mapped := getattr(array, "_mmap", None)) is not None and hasattr(mmap, "MADV_RANDOM"):
                mapped.madvise(mmap.MADV_RANDOM)

    def ask_for(self, rows: NDArray[np.int64], views: NDArray[np.int64]) -> None:
        """Have the system read these views of these rows (view 0: the whole image), all at the same time.

        Without it a row is read when it is touched, and the next one only after that.
        """
        for array, chosen in ((self.clean, views == 0), (self.views, views > 0)):
            mapped, first = getattr(array, "_mmap", None), getattr(array, "offset", 0)
            if mapped is None or not hasattr(mmap, "MADV_WILLNEED"):
                continue
            size = array.shape[-1] * array.itemsize
            places = rows[chosen] if array is self.clean else rows[chosen] * self.key.views + views[chosen] - 1
            starts = first + places * size
            for start in starts.tolist():
                page = start - start % mmap.PAGESIZE
                mapped.madvise(mmap.MADV_WILLNEED, page, start + size - page)

    def _array(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any] | None = None) -> Any:
        path, kind = self.folder / name, dtype or np.dtype(np.float16)
        if 0 in shape:
            return np.zeros(shape, kind)
        if not path.exists():
            # Made beside and moved, so that whoever opens it finds it whole; never-written parts take no space.
            beside = path.with_name(f"{name}.{os.getpid()}.part")
            open_memmap(beside, mode="w+", dtype=kind, shape=shape).flush()
            with suppress(FileExistsError):
                os.link(beside, path)
            beside.unlink()
        array = open_memmap(path, mode="r+")
        if array.shape != shape or array.dtype != kind:
            raise UserError(f"{path} is not what it should be; remove the folder {self.folder}")
        return array


def open_cache(root: Path, name: str, key: CacheKey) -> FeatureCache:
    """The cache of this key below `root`, new or as it was left; the name is for people, the key alone decides."""
    digest = key.digest()
    folder = next(iter(sorted(root.glob(f"*-{digest}"))), root / f"{_slug(name)}-{digest}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        meta = folder / "key.json"
        if not meta.exists():
            beside = meta.with_name(f"key.json.{os.getpid()}.part")
            beside.write_text(json.dumps(asdict(key), indent=2) + "\n", encoding="utf-8")
            beside.replace(meta)
        return FeatureCache(folder, key)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(
            f"the feature cache {folder} cannot be used: {reason}; name another place in the variable CDCLUST_CACHE"
        ) from error


def _slug(name: str) -> str:
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in name).strip("-.")
    return kept[:40] or "images"
