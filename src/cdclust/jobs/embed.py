"""`cdclust embed`: the features of a source's images as a file, through the feature cache."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib.format import write_array_header_1_0
from numpy.typing import NDArray

from cdclust import run as runs
from cdclust.data import OK, open_stream
from cdclust.data.imageset import IndexKeys
from cdclust.engine.compute import Compute
from cdclust.engine.train import Listener
from cdclust.errors import UsageError, UserError
from cdclust.jobs import frozen
from cdclust.jobs.frozen import Embedded
from cdclust.recipe import Recipe
from cdclust.run import Run

FORMATS = (".npy", ".npz", ".parquet")
ROWS = 4096  # written at a time; nothing larger is ever in memory
COLUMNS = ("image", "label", "status")

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Written:
    """What a file of features holds."""

    out: Path
    table: Path | None  # where keys and statuses stand if not in the file itself
    n: int
    n_unreadable: int
    dim: int
    views: int
    images_per_second: float | None  # none where everything was embedded already


def embed(
    source: Any,
    recipe: Recipe,
    out: Path,
    compute: Compute,
    listener: Listener,
    *,
    views: int = 0,
    split: str | None = None,
    labels: Any = None,
    root: str | PathLike[str] | None = None,
    strict: bool = False,
) -> Written:
    """Write the features of every image, row by row as the source has them; an unreadable image's are NaN.

    The rows of a .npy have their names in a .csv beside it. A call that was cut short goes on where it was.
    """
    table = out.with_suffix(".csv") if out.suffix == ".npy" else None
    _refuse(out, table, views)
    stream = open_stream(source, split=split or "all", labels=labels, root=root)
    embedder = frozen.load_embedder(recipe, compute)
    found, speed = frozen.embedded(stream, embedder, recipe, listener, strict, views)
    folder = Run(out.parent)
    if table is not None:
        folder.write(table.name, lambda file: runs.write_csv(file, _names(found), COLUMNS))
        folder.write(out.name, lambda file: _write_npy(file, found))
    elif out.suffix == ".npz":
        folder.write(out.name, lambda file: _write_npz(file, found))
    else:
        folder.write(out.name, lambda file: _write_parquet(file, found))
    return Written(out, table, found.n_total, found.n_unreadable, found.cache.key.dim, views, speed)


def _refuse(out: Path, table: Path | None, views: int) -> None:
    if out.suffix not in FORMATS:
        raise UsageError(f"--out {out}: the ending must be one of {', '.join(FORMATS)}")
    if views and table is not None:
        raise UsageError(f"--out {out}: a .npy holds one array; for --views write .npz or .parquet")
    if out.suffix == ".parquet":
        need_pyarrow()
    for path in (out, table):
        if path is not None and path.exists():
            raise UserError(f"--out {path} exists already; choose another name")
    if not out.parent.is_dir():
        raise UserError(f"--out {out}: there is no folder {out.parent}; make it first")


def need_pyarrow() -> None:
    """Asked for before long work begins."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise UserError("parquet needs pyarrow: pip install 'cdclust[parquet]'; or write .npz") from None


def _names(found: Embedded) -> Iterator[tuple[str, str, str]]:
    for row, (key, status) in enumerate(zip(found.keys, found.status, strict=True)):
        yield key, "" if found.labels is None else str(found.labels[row]), status


def _parts(found: Embedded, array: NDArray[np.float16]) -> Iterator[NDArray[np.float32]]:
    """Rows of the cache as float32, in turn."""
    bad = np.array([status != OK for status in found.status])
    for at in range(0, len(array), ROWS):
        part = array[at : at + ROWS].astype(np.float32)
        part[bad[at : at + ROWS]] = np.nan
        yield part


def _stream_array(file: IO[bytes], shape: Shape, dtype: np.dtype[Any], parts: Iterable[NDArray[Any]]) -> None:
    """An array in numpy's format, of which only a part is ever in memory."""
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    write_array_header_1_0(file, header)
    for part in parts:
        file.write(np.ascontiguousarray(part, dtype).tobytes())


def _write_npy(file: IO[bytes], found: Embedded) -> None:
    clean = found.cache.clean
    _stream_array(file, clean.shape, np.dtype(np.float32), _parts(found, clean))


def _write_npz(file: IO[bytes], found: Embedded) -> None:
    """`features` (N, D), `views` (N, V, D) where asked, `keys`, `status` and, where known, `labels`."""
    cache = found.cache
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:

        def add(name: str, shape: Shape, dtype: np.dtype[Any], parts: Iterable[NDArray[Any]]) -> None:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                _stream_array(member, shape, dtype, parts)

        add("features", cache.clean.shape, np.dtype(np.float32), _parts(found, cache.clean))
        if cache.key.views:
            add("views", cache.views.shape, np.dtype(np.float32), _parts(found, cache.views))
        for name, words in (("keys", found.keys), ("status", found.status)):
            add(name, (len(words),), _dtype_of(words), _texts(words))
        if found.labels is not None:
            add("labels", found.labels.shape, np.dtype(np.int64), [found.labels])


def _dtype_of(words: Sequence[str]) -> np.dtype[Any]:
    longest = len(str(len(words))) if isinstance(words, IndexKeys) else max(map(len, words))
    return np.dtype(f"<U{longest}")


def _texts(words: Sequence[str]) -> Iterator[NDArray[Any]]:
    return (np.array(words[at : at + ROWS], dtype=_dtype_of(words)) for at in range(0, len(words), ROWS))


def _write_parquet(file: IO[bytes], found: Embedded) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    cache = found.cache
    vector = pa.list_(pa.float32(), cache.key.dim)
    names = [f"view_{number}" for number in range(cache.key.views)]
    columns: list[tuple[str, Any]] = [("image", pa.string()), ("status", pa.string())]
    columns += [("label", pa.int64())] if found.labels is not None else []
    schema = pa.schema(columns + [(name, vector) for name in ("features", *names)])
    with pq.ParquetWriter(file, schema) as writer:
        for at in range(0, len(cache.clean), ROWS):
            here = slice(at, at + ROWS)
            bad = np.array([status != OK for status in found.status[here]])
            group = [pa.array(found.keys[here]), pa.array(found.status[here])]
            if found.labels is not None:
                group.append(pa.array(found.labels[here]))
            for array in (cache.clean, *(cache.views[:, number] for number in range(cache.key.views))):
                values = pa.array(array[here].astype(np.float32).reshape(-1))
                group.append(pa.FixedSizeListArray.from_arrays(values, type=vector, mask=pa.array(bad)))
            writer.write_table(pa.Table.from_arrays(group, schema=schema))
