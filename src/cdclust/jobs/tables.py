"""A line an image as a table, .csv, .parquet or .jsonl by its ending; with a name where clusters have them."""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

from cdclust import run as runs
from cdclust.errors import UsageError, UserError
from cdclust.run import Run

ROWS_A_GROUP = 10_000  # of a parquet file, and in memory while it is written
FORMATS = (".csv", ".parquet", ".jsonl")
KINDS = (str, int, float, int, float, str, str)  # of the columns of assignments.csv, and of a name
CLUSTER = runs.COLUMNS.index("cluster")

Row = tuple[str, ...]


def check_table(out: Path) -> None:
    """Refuse, before long work, a table that could not be written."""
    if out.suffix not in FORMATS:
        raise UsageError(f"--out {out}: the ending must be one of {', '.join(FORMATS)}")
    if out.suffix == ".parquet":
        need_pyarrow()
    if out.exists():
        raise UserError(f"--out {out} exists already; choose another name")
    if not out.parent.is_dir():
        raise UserError(f"--out {out}: there is no folder {out.parent}; make it first")


def need_pyarrow() -> None:
    """Refuse parquet where pyarrow is not installed."""
    try:
        import pyarrow  # noqa: F401 - asked for before long work begins
    except ImportError:
        raise UserError("parquet needs pyarrow: pip install 'cdclust[parquet]'; or write .csv or .jsonl") from None


def named(rows: Iterable[Row], names: dict[int, str]) -> Iterator[Row]:
    """Rows with the name of their cluster behind; as they are where no cluster has one."""
    for row in rows:
        cluster = row[CLUSTER]
        yield (*row, names.get(int(cluster), "") if cluster else "") if names else row


def write_table(out: Path, rows: Iterable[Row], *, names: bool = False) -> None:
    """Write rows, which end in a name with `names`, in the format of the ending, as one act."""
    columns = (*runs.COLUMNS, "name") if names else runs.COLUMNS
    Run(out.parent).write(out.name, lambda file: _write(file, rows, columns, out.suffix))


def _write(file: IO[bytes], rows: Iterable[Row], columns: Sequence[str], ending: str) -> None:
    if ending == ".csv":
        runs.write_csv(file, rows, columns)
    elif ending == ".jsonl":
        for row in rows:
            file.write((json.dumps(_typed(row, columns)) + "\n").encode())
    else:
        _write_parquet(file, rows, columns)


def _write_parquet(file: IO[bytes], rows: Iterable[Row], columns: Sequence[str]) -> None:
    import pyarrow
    import pyarrow.parquet

    kinds = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64()}
    schema = pyarrow.schema([(name, kinds[kind]) for name, kind in zip(columns, KINDS, strict=False)])
    with pyarrow.parquet.ParquetWriter(file, schema) as writer:
        for group in batched(rows, ROWS_A_GROUP):
            writer.write_table(pyarrow.Table.from_pylist([_typed(row, columns) for row in group], schema))


def batched(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    """Rows in lists of at most `size`."""
    rows = iter(rows)
    while group := list(islice(rows, size)):
        yield group


def _typed(row: Row, columns: Sequence[str]) -> dict[str, Any]:
    return {name: kind(text) if text else None for name, kind, text in zip(columns, KINDS, row, strict=False)}
