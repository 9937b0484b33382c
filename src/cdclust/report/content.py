"""What a page says, as plain data: a page on disk and a served one are drawn from the same.

Images are spoken of by their place in `Images`, clusters by their number, classes by their place in `Labels.classes`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Notice:
    """A sentence for the top of the page."""

    kind: Literal["warning", "note"]
    text: str


@dataclass(frozen=True)
class Summary:
    """What was sorted into what, and how sure."""

    source: str
    n_images: int
    n_readable: int
    n_shown: int
    n_clusters: int
    n_nonempty: int
    confidence: float  # mean probability of the chosen cluster
    sure: float  # share of images above 0.9
    scores: dict[str, float]  # acc, nmi, ari, or nothing
    scored: str  # on what, in words
    notices: list[Notice]


@dataclass(frozen=True)
class Neighbour:
    """Another cluster: how like this one it is, and for how many images of this one it is the second choice."""

    cluster: int
    similarity: float
    second_choice: int


@dataclass(frozen=True)
class Cluster:
    """One cluster over all images, not only those shown."""

    number: int
    name: str | None
    size: int
    confidence: float
    nearest: list[Neighbour]
    largest_class: int | None  # with labels
    share: float  # of that class in it


@dataclass(frozen=True)
class Images:
    """The images shown, a column each; `thumbnail` is WebP in base64, or empty."""

    name: list[str]
    cluster: list[int]
    probability: list[float]
    second: list[int]
    second_probability: list[float]
    typical: list[float]  # similarity to the middle of the cluster
    label: list[int] | None  # -1 where unknown
    near: list[list[int]]  # the most similar others, most similar first
    x: list[float]  # on the map, 0..1; empty without a map
    y: list[float]
    thumbnail: list[str] = field(repr=False)


@dataclass(frozen=True)
class Histogram:
    """How many images lie between one edge and the next."""

    edges: list[float]
    counts: list[int]


@dataclass(frozen=True)
class Curve:
    """A figure of the log over epochs."""

    key: str
    title: str
    meaning: str
    epochs: list[float]
    values: list[float]


@dataclass(frozen=True)
class ClassScore:
    """A class and what its matched cluster gets of it."""

    label: int
    size: int
    cluster: int | None
    recall: float
    precision: float


@dataclass(frozen=True)
class Confusion:
    """Images of a class in a cluster that is matched to another class, or to none."""

    label: int
    cluster: int
    count: int
    images: list[int]  # of those shown


@dataclass(frozen=True)
class Labels:
    """Clusters against labels, over all images that have one."""

    classes: list[str]
    matrix: list[list[int]]  # a row a class, a column an entry of `columns`
    columns: list[int | None]  # the cluster of each column; none where a class got none
    scores: list[ClassScore]
    confusions: list[Confusion]
    n_labelled: int
    accuracy: float
    about: str  # which images these are, in words


@dataclass(frozen=True)
class Pair:
    """Two images that are nearly the same."""

    first: int
    second: int
    similarity: float
    same_cluster: bool


@dataclass(frozen=True)
class Oddities:
    """What may not belong."""

    duplicates: list[Pair]
    outliers: list[int]
    unreadable: list[tuple[str, str]]  # the first of them: name and reason
    n_unreadable: int


@dataclass(frozen=True)
class Page:
    """All of it."""

    summary: Summary
    clusters: list[Cluster]
    images: Images
    confidence: Histogram
    curves: list[Curve]
    labels: Labels | None
    oddities: Oddities
    about: list[tuple[str, str]]  # how the run was made: a name and a value in words

    def to_json(self) -> str:
        """As text that may stand inside a script element: no <, > or & and nothing but ASCII."""
        return for_script(asdict(self))


def for_script(content: Any) -> str:
    """JSON in which nothing can end a script element or a line of JavaScript."""
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
