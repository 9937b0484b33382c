"""report.npz: what a page shows that no other file of the run holds. Thumbnails, places on the map, labels.

With it the page can be drawn again when the images have long been moved.
"""

import zipfile
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdclust.errors import UserError
from cdclust.run import Run

NAME = "report.npz"


@dataclass(frozen=True)
class Kept:
    """What is shown, and what is known of all images beside it."""

    rows: NDArray[np.int64]  # (n,) of the source, ascending
    thumbnails: list[bytes]  # (n,) WebP, empty where there is none; or none at all
    places: NDArray[np.float32] | None  # (n, 2) on the map
    labels: NDArray[np.int64] | None  # (N,) of all images, -1 where unknown
    class_names: list[str] | None
    source: str  # what the source calls itself
    troubles: list[str]  # what could not be drawn and why, a sentence each


def write(run: Run, kept: Kept) -> None:
    """Write report.npz."""
    ends = np.cumsum([len(content) for content in kept.thumbnails], dtype=np.int64)
    arrays: dict[str, NDArray[Any]] = {
        "rows": kept.rows,
        "ends": ends,
        "thumbnails": np.frombuffer(b"".join(kept.thumbnails), dtype=np.uint8),
        "source": np.array([kept.source]),
        "troubles": np.array(kept.troubles, dtype=np.str_),
    }
    if kept.places is not None:
        arrays["places"] = kept.places
    if kept.labels is not None:
        arrays["labels"] = kept.labels
    if kept.class_names is not None:
        arrays["class_names"] = np.array(kept.class_names, dtype=np.str_)
    run.write(NAME, lambda file: np.savez(file, allow_pickle=False, **arrays))


def read(run: Run, n: int) -> Kept:
    """Read report.npz of a run over n images."""
    try:
        with np.load(run.file(NAME), allow_pickle=False) as file:
            rows, ends, joined = file["rows"], file["ends"], file["thumbnails"].tobytes()
            found = Kept(
                rows,
                [joined[a:b] for a, b in pairwise([0, *ends.tolist()])],
                _maybe(file, "places"),
                _maybe(file, "labels"),
                [str(name) for name in file["class_names"]] if "class_names" in file else None,
                str(file["source"][0]),
                [str(trouble) for trouble in file["troubles"]],
            )
    except (OSError, ValueError, KeyError, IndexError, EOFError, zipfile.BadZipFile):
        raise _unfit(run) from None
    if not _fits(found, n):
        raise _unfit(run)
    return found


def _maybe(file: Any, name: str) -> NDArray[Any] | None:
    return file[name] if name in file else None  # noqa: SIM401 - an NpzFile has had get since NumPy 2 only in part


def _fits(kept: Kept, n: int) -> bool:
    rows = kept.rows
    ascending = rows.ndim == 1 and rows.dtype.kind == "i" and bool((np.diff(rows) > 0).all())
    within = ascending and (not len(rows) or (rows[0] >= 0 and rows[-1] < n))
    return (
        within
        and len(kept.thumbnails) in (0, len(rows))
        and (kept.places is None or (kept.places.shape == (len(rows), 2) and kept.places.dtype.kind == "f"))
        and (kept.labels is None or (kept.labels.shape == (n,) and kept.labels.dtype.kind == "i"))
    )


def _unfit(run: Run) -> UserError:
    return UserError(f"{run.file(NAME)} is damaged or of another run; remove it and add --source with the images")
