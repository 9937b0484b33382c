"""Lists of image files: .txt, a path a line; .csv and .parquet, a column `path` and labels where there are any."""

from __future__ import annotations

import csv
import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cdclust.data.files import FileList, printable
from cdclust.data.imageset import encode_labels
from cdclust.errors import UserError

SUFFIXES = (".txt", ".csv", ".parquet")
PATH, LABEL = "path", "label"


def list_manifest(manifest: Path, *, labels: str | None = None) -> FileList:
    """The files a manifest names, keyed as it names them; relative paths start at the manifest's folder.

    Labels come from the column `labels`, else from the column `label` where there is one.
    """
    name, suffix = manifest.name, manifest.suffix.lower()
    try:
        if suffix == ".txt":
            if labels is not None:
                raise UserError(f"labels: {labels!r}, but {name} is a list of paths; use a .csv with two columns")
            text = manifest.read_text("utf-8-sig", "surrogateescape")
            paths, values = [line for line in text.split("\n") if line.strip()], None
            paths = [p.removesuffix("\r") for p in paths]
        else:
            read = _read_csv if suffix == ".csv" else _read_parquet
            paths, values = read(manifest, labels)
    except (OSError, csv.Error) as e:
        raise UserError(f"source: {manifest} cannot be read: {' '.join(str(e).split())}") from e
    if not paths:
        raise UserError(f"source: {name} names no images; write one path a line")
    files = FileList(name, [os.fspath(manifest.parent / p) for p in paths], [printable(p) for p in paths])
    if values is not None:
        files.labels, files.class_names, files.notes = encode_labels(values, name)
    return files


def _columns(found: Sequence[str], labels: str | None, name: str) -> str | None:
    """The column of labels, or None; refuses a table without the columns asked for."""
    if PATH not in found:
        raise UserError(f"source: {name} has no column {PATH!r}; its columns are {', '.join(found) or '(none)'}")
    if labels is not None and labels not in found:
        raise UserError(f"labels: {name} has no column {labels!r}; its columns are {', '.join(found)}")
    return labels or (LABEL if LABEL in found else None)


def _read_csv(manifest: Path, labels: str | None) -> tuple[list[str], list[str] | None]:
    with manifest.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        table = csv.DictReader(file)
        column = _columns(table.fieldnames or [], labels, manifest.name)
        rows = [row for row in table if row[PATH]]
    return [r[PATH] for r in rows], [r[column] or "" for r in rows] if column else None


def _read_parquet(manifest: Path, labels: str | None) -> tuple[list[str], list[Any] | None]:
    if importlib.util.find_spec("pyarrow") is None:
        raise UserError(f"source: {manifest.name} needs pyarrow; type pip install 'cdclust[parquet]'")
    import pyarrow
    import pyarrow.parquet

    try:
        column = _columns(pyarrow.parquet.read_schema(manifest).names, labels, manifest.name)
        columns = [PATH, column] if column else [PATH]
        table = pyarrow.parquet.read_table(manifest, columns=columns).to_pydict()
    except pyarrow.ArrowException as e:
        raise UserError(f"source: {manifest} cannot be read: {' '.join(str(e).split())[:200]}") from e
    keep = [i for i, p in enumerate(table[PATH]) if p]
    paths = [os.fspath(table[PATH][i]) for i in keep]
    return paths, [table[column][i] for i in keep] if column else None
