"""assignments.csv as columns, whatever its length; the names of images are read for those that are shown alone."""

import csv
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdclust.data import OK
from cdclust.errors import UserError
from cdclust.run import COLUMNS, Run

NO_CLUSTER = -1
LISTED = 200  # unreadable files that are named


@dataclass(frozen=True)
class Table:
    """One entry an image of the source, readable or not."""

    clusters: NDArray[np.int64]  # (N,) -1 where the image could not be read
    probabilities: NDArray[np.float64]  # (N,)
    seconds: NDArray[np.int64]  # (N,) the second choice
    second_probabilities: NDArray[np.float64]  # (N,)
    unreadable: list[tuple[str, str]]  # the first of them: name and reason

    @property
    def rows(self) -> NDArray[np.int64]:
        """The places of the images that could be read."""
        return np.flatnonzero(self.clusters != NO_CLUSTER)


def read_table(run: Run, n_clusters: int) -> Table:
    """The run's assignments without the images' names."""
    clusters, seconds = array("q"), array("q")
    first, second = array("d"), array("d")
    unreadable: list[tuple[str, str]] = []
    try:
        for name, cluster, p, other, p2, status in _lines(run):
            if status != OK and len(unreadable) < LISTED:
                unreadable.append((name, status.removeprefix("unreadable: ")))
            clusters.append(int(cluster) if status == OK else NO_CLUSTER)
            seconds.append(int(other) if status == OK else NO_CLUSTER)
            first.append(float(p) if status == OK else 0.0)
            second.append(float(p2) if status == OK else 0.0)
    except ValueError:
        raise _damaged(run) from None
    table = Table(np.array(clusters), np.array(first), np.array(seconds), np.array(second), unreadable)
    numbers = np.concatenate([table.probabilities, table.second_probabilities])
    largest = max(int(values.max(initial=0)) for values in (table.clusters, table.seconds))
    if largest >= n_clusters or not bool(((numbers >= 0) & (numbers <= 1)).all()):
        raise _damaged(run)
    return table


def read_names(run: Run, rows: NDArray[np.int64]) -> list[str]:
    """The names of the images in `rows`, which ascend."""
    wanted: Iterator[int] = iter(rows.tolist())
    following = next(wanted, None)
    found = []
    for row, line in enumerate(_lines(run)):
        if row == following:
            found.append(line[0])
            following = next(wanted, None)
    return found


def _lines(run: Run) -> Iterator[Sequence[str]]:
    path = run.file("assignments.csv")
    try:
        with path.open(encoding="utf-8", errors="surrogateescape", newline="") as file:
            lines = csv.reader(file)
            if next(lines, None) != list(COLUMNS):
                raise _damaged(run)
            for line in lines:
                if len(line) != len(COLUMNS):
                    raise _damaged(run)
                yield line
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    except csv.Error:
        raise _damaged(run) from None


def _damaged(run: Run) -> UserError:
    return UserError(f"{run.file('assignments.csv')} is damaged; bring back the file that the run wrote, or fit again")


def read_features(run: Run, n: int) -> NDArray[Any]:
    """embeddings.npy, mapped and not read; a row an image of the source."""
    path = run.file("embeddings.npy")
    try:
        found: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise UserError(f"{path} cannot be read: {str(error).splitlines()[0]}") from None
    if found.ndim != 2 or len(found) != n or found.dtype.kind != "f":
        raise UserError(f"{path} does not fit assignments.csv: it should hold {n:,} rows of numbers")
    return found
