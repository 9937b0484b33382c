"""What became of each image of a run, and where it goes."""

import csv
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cdclust.data import OK
from cdclust.errors import UserError
from cdclust.formats.filenames import Unique, safe
from cdclust.run import COLUMNS, Run

UNCERTAIN, MISSING = "uncertain", "missing"
APART = (UNCERTAIN, "unreadable")  # folders beside those of the clusters


@dataclass(frozen=True, slots=True)
class Line:
    """A line of assignments.csv."""

    key: str
    cluster: int  # -1: none
    probability: float
    second: str
    second_probability: str
    status: str

    @property
    def sorted(self) -> bool:
        """Whether the image has a cluster that is to be believed."""
        return self.status == OK

    def row(self) -> tuple[str, ...]:
        """The line as text; without a cluster that is not to be believed."""
        cluster = str(self.cluster) if self.sorted else ""
        probability = f"{self.probability:.6f}" if self.cluster >= 0 else ""
        return self.key, cluster, probability, self.second, self.second_probability, self.status


@dataclass(frozen=True, slots=True)
class Placed:
    """An image in its place; `file` starts at the folder that is taken away."""

    line: Line
    file: str
    size: tuple[int, int] | None = None  # height and width, where the layout asks for it


@dataclass(frozen=True)
class Sorted:
    """A run's images in their places."""

    images: list[Placed]
    n_clusters: int
    names: dict[int, str]

    def label(self, cluster: int) -> str:
        """What a cluster is called in a data set; no two are called the same."""
        name = self.names.get(cluster)
        others = {numbered(k, self.n_clusters) for k in range(self.n_clusters) if k not in self.names} if name else ()
        return numbered(cluster, self.n_clusters) if name is None else f"{name} ({cluster})" if name in others else name

    @property
    def assigned(self) -> list[Placed]:
        """The images that are in a cluster."""
        return [image for image in self.images if image.line.sorted]


def read_lines(run: Run, min_confidence: float = 0.0) -> list[Line]:
    """assignments.csv of a finished run; an image less sure than `min_confidence` is uncertain."""
    metrics, path = run.metrics(), run.file("assignments.csv")
    damaged = UserError(f"{path} is damaged; remove metrics.json and go on with cdclust fit ... --resume")
    lines: list[Line] = []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            if not set(COLUMNS) <= set(reader.fieldnames or ()):
                raise damaged
            for row in reader:
                lines.append(_line(row, metrics["n_clusters"], min_confidence))
                if len(lines) > metrics["n_images"]:
                    raise damaged
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from None
    except (csv.Error, ValueError, TypeError, KeyError):
        raise damaged from None
    if len(lines) != metrics["n_images"]:
        raise damaged
    return lines


def _line(row: dict[str, Any], n_clusters: int, min_confidence: float) -> Line:
    key, status, second = row["image"], row["status"], (row["second"], row["second_probability"])
    if status != OK:
        return Line(key, -1, 0.0, "", "", status)
    cluster, probability = int(row["cluster"]), float(row["probability"])
    if not (0 <= cluster < n_clusters and 0 <= probability <= 1):
        raise ValueError
    return Line(key, cluster, probability, *second, OK if probability >= min_confidence else UNCERTAIN)


def numbered(cluster: int, n_clusters: int) -> str:
    """cluster_07: with as many digits as the last one needs, so that the order of names is that of numbers."""
    return f"cluster_{cluster:0{max(2, len(str(n_clusters - 1)))}}"


def folder_names(n_clusters: int, names: dict[int, str]) -> dict[int, str]:
    """A folder a cluster: its name made safe for a file system, else its number."""
    unique = Unique()
    for taken in APART:
        unique(taken)
    found = {k: unique(numbered(k, n_clusters)) for k in range(n_clusters) if not safe(names.get(k, ""))}
    return found | {k: unique(safe(names[k])) for k in range(n_clusters) if k not in found}


def sizes(images: Iterable[Placed]) -> dict[int, int]:
    """How many images each cluster got."""
    return dict(sorted(Counter(image.line.cluster for image in images if image.line.sorted).items()))
