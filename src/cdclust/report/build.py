"""From a run folder to what its page says. Nothing here draws, and nothing trains."""

import json
from base64 import b64encode
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdclust.errors import UserError
from cdclust.evaluation.health import Health, health
from cdclust.names import cluster_names
from cdclust.recipe import described
from cdclust.report import content, kept, similarity, words
from cdclust.report.against_labels import against_labels, largest_classes, places_of_classes
from cdclust.report.kept import Kept
from cdclust.report.table import Table, read_features, read_names, read_table
from cdclust.report.thumbnails import decode
from cdclust.run import Run

SURE = 0.9
NEAR = 6  # similar images that are shown beside one
NEAR_CLUSTERS = 5
BINS = 20  # of the confidence
OUTLIERS = 24
DUPLICATES = 24
ALIKE = 16  # side at which pixels are compared
SAME_PIXELS = 0.035  # mean difference of two pictures that are the same but for compression or a small change


@dataclass(frozen=True)
class Material:
    """What a page is made from."""

    table: Table
    kept: Kept
    names: list[str]  # of the images shown
    metrics: dict[str, Any]
    environment: dict[str, Any]
    cluster_names: dict[int, str]
    log: list[dict[str, Any]]
    features: NDArray[Any]  # (N, D), mapped
    settings: dict[str, Any]  # of its recipe, by their dotted names

    @property
    def n_clusters(self) -> int:
        """K."""
        return int(self.metrics["n_clusters"])

    @property
    def health(self) -> Health:
        """Sizes and confidence over all images."""
        return health(self.table.clusters, self.table.probabilities, self.n_clusters)


def gather(run: Run, metrics: dict[str, Any]) -> Material:
    """Read the run folder; `metrics` are what metrics.json holds, or will."""
    try:
        table = read_table(run, int(metrics["n_clusters"]))
        n = len(table.clusters)
        found = kept.read(run, n)
        features = read_features(run, n)
        names = read_names(run, found.rows)
        environment, settings = _environment(run), {name: value for name, value, _ in described(run.recipe())}
        called, log = cluster_names(run), run.log()
        return Material(table, found, names, metrics, environment, called, log, features, settings)
    except (KeyError, TypeError, ValueError):
        raise UserError(f"{run.file('metrics.json')} is damaged; a report cannot be made from it") from None


def _environment(run: Run) -> dict[str, Any]:
    try:
        found = json.loads(run.file("environment.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def build(m: Material) -> content.Page:
    """What the page says."""
    of = similarity.centres(m.features, m.table.clusters, m.n_clusters)
    unit = similarity.directions(m.features[m.kept.rows], of.mean)
    places, alike = similarity.nearest(unit, NEAR)
    labels = against_labels(m.table.clusters, m.kept, m.metrics) if m.kept.labels is not None else None
    return content.Page(
        summary=_summary(m),
        clusters=_clusters(m, of),
        images=_images(m, of, unit, places),
        confidence=_histogram(m.table),
        curves=curves(m.log),
        labels=labels,
        oddities=_oddities(m, places, alike),
        about=words.about(m.metrics, m.environment),
    )


def _summary(m: Material) -> content.Summary:
    h = m.health
    return content.Summary(
        source=short(m.kept.source),
        n_images=len(m.table.clusters),
        n_readable=h.n,
        n_shown=len(m.kept.rows),
        n_clusters=m.n_clusters,
        n_nonempty=h.n_nonempty,
        confidence=h.confidence,
        sure=float((m.table.probabilities[m.table.rows] > SURE).mean()) if h.n else 0.0,
        scores={name: float(m.metrics[name]) for name in ("acc", "nmi", "ari") if name in m.metrics},
        scored=words.scored(m.metrics),
        notices=words.notices(m.metrics, h, m.kept.troubles),
    )


def short(source: str) -> str:
    """A source as a heading calls it: the last part of a path."""
    return source.rstrip("/\\").replace("\\", "/").rsplit("/", 1)[-1] or source


def _clusters(m: Material, of: similarity.Centres) -> list[content.Cluster]:
    sizes, k = m.health.sizes, m.n_clusters
    clusters, rows = m.table.clusters, m.table.rows
    total = np.bincount(clusters[rows], weights=m.table.probabilities[rows], minlength=k)
    second = np.bincount(clusters[rows] * k + m.table.seconds[rows], minlength=k * k).reshape(k, k)
    best = largest_classes(clusters, m.kept.labels) if m.kept.labels is not None else {}
    found = []
    for number in range(k):
        matched, share = best.get(number, (None, 0.0))
        confidence = round(float(total[number] / sizes[number]), 4) if sizes[number] else 0.0
        near = nearest_clusters(number, of.directions, sizes, second[number])
        name = m.cluster_names.get(number)
        found.append(content.Cluster(number, name, int(sizes[number]), confidence, near, matched, round(share, 4)))
    return found


def nearest_clusters(
    number: int, directions: NDArray[np.float32], sizes: NDArray[np.int64], second: NDArray[np.int64]
) -> list[content.Neighbour]:
    """The clusters most like one, empty ones left out."""
    if not sizes[number]:
        return []
    alike = directions @ directions[number]
    others = [int(j) for j in np.argsort(-alike, kind="stable") if j != number and sizes[j]]
    return [content.Neighbour(j, round(float(alike[j]), 3), int(second[j])) for j in others[:NEAR_CLUSTERS]]


def _images(m: Material, of: similarity.Centres, unit: NDArray[np.float32], near: NDArray[np.int64]) -> content.Images:
    rows, table, places = m.kept.rows, m.table, m.kept.places
    typical = (unit * of.directions[table.clusters[rows]]).sum(axis=1)
    labels = None if m.kept.labels is None else places_of_classes(m.table.clusters, m.kept)
    pictures = [b64encode(each).decode("ascii") for each in m.kept.thumbnails] or [""] * len(rows)
    return content.Images(
        name=m.names,
        cluster=table.clusters[rows].tolist(),
        probability=_rounded(table.probabilities[rows]),
        second=table.seconds[rows].tolist(),
        second_probability=_rounded(table.second_probabilities[rows]),
        typical=_rounded(typical),
        label=None if labels is None else labels,
        near=near.tolist(),
        x=[] if places is None else _rounded(places[:, 0]),
        y=[] if places is None else _rounded(places[:, 1]),
        thumbnail=pictures,
    )


def _rounded(values: NDArray[np.floating], digits: int = 4) -> list[float]:
    return [round(value, digits) for value in np.nan_to_num(values).tolist()]


def _histogram(table: Table) -> content.Histogram:
    counts, edges = np.histogram(table.probabilities[table.rows], bins=BINS, range=(0, 1))
    return content.Histogram([round(edge, 4) for edge in edges.tolist()], counts.tolist())


def curves(log: list[dict[str, Any]]) -> list[content.Curve]:
    """The log's figures that have a meaning for a reader, where they were logged; what is no number is left out."""
    found = []
    for key, (title, meaning) in words.CURVES.items():
        points = [(line.get("epoch"), line[key]) for line in log if key in line]
        good = [point for point in map(_numbers, points) if point]
        if good:
            found.append(content.Curve(key, title, meaning, [x for x, _ in good], [y for _, y in good]))
    return found


def _numbers(point: tuple[Any, Any]) -> tuple[float, float] | None:
    x, y = point
    if isinstance(x, int | float) and isinstance(y, int | float) and np.isfinite(x) and np.isfinite(y):
        return float(x), float(y)
    return None


def _oddities(m: Material, places: NDArray[np.int64], alike: NDArray[np.float32]) -> content.Oddities:
    outliers = similarity.outliers(alike, OUTLIERS if len(places) > 2 * OUTLIERS else len(places) // 4)
    return content.Oddities(
        duplicates=duplicates(m.kept.thumbnails, places, alike, m.table.clusters[m.kept.rows]),
        outliers=outliers.tolist(),
        unreadable=m.table.unreadable,
        n_unreadable=len(m.table.clusters) - len(m.table.rows),
    )


def duplicates(
    pictures: list[bytes], places: NDArray[np.int64], alike: NDArray[np.float32], clusters: NDArray[np.int64]
) -> list[content.Pair]:
    """Pairs that are each other's nearest by their features and look the same in small, most similar first."""
    found: list[content.Pair] = []
    if not pictures:
        return found
    for i, j, how in similarity.mutual(places, alike):
        a, b = decode(pictures[i], ALIKE), decode(pictures[j], ALIKE)
        if a is not None and b is not None and float(np.abs(a - b).mean()) <= SAME_PIXELS:
            found.append(content.Pair(i, j, round(how, 4), bool(clusters[i] == clusters[j])))
            if len(found) == DUPLICATES:
                break
    return found
