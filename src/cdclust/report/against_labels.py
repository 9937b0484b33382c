"""Clusters against labels: the matched confusion matrix, scores a class, and the confusions with their images."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdclust.evaluation import metrics
from cdclust.report.content import ClassScore, Confusion, Labels
from cdclust.report.kept import Kept

MOST_CONFUSIONS = 12
IMAGES_OF_A_CELL = 8
LARGEST_MATRIX = 300  # classes or clusters; a larger one cannot be looked at


def against_labels(clusters: NDArray[np.int64], kept: Kept, measured: dict[str, Any]) -> Labels | None:
    """Over all images with a cluster and a label; None where there is none."""
    assert kept.labels is not None
    known = (clusters >= 0) & (kept.labels >= 0)
    if not known.any():
        return None
    table = metrics.contingency(clusters[known], kept.labels[known])
    matched = metrics.match(table)
    matrix, columns = metrics.confusion(table, matched)
    names, code = class_names(kept, table.classes)
    scores = [
        ClassScore(code[row.label], row.size, row.matched, round(row.recall, 4), round(row.precision, 4))
        for row in metrics.per_class(table, matched)
    ]
    shown = max(matrix.shape) <= LARGEST_MATRIX
    return Labels(
        classes=names,
        matrix=matrix.tolist() if shown else [],
        columns=columns if shown else [],
        scores=scores,
        confusions=_confusions(matrix, columns, table.classes, code, clusters, kept),
        n_labelled=int(known.sum()),
        accuracy=metrics.accuracy(table, matched),
        about=_about(measured),
    )


def class_names(kept: Kept, classes: NDArray[Any]) -> tuple[list[str], dict[int, int]]:
    """The name of each class that occurs, and the place of each label among them."""
    given = kept.class_names or []
    names = [given[c] if 0 <= c < len(given) else str(c) for c in classes.tolist()]
    return names, {int(c): place for place, c in enumerate(classes.tolist())}


def largest_classes(clusters: NDArray[np.int64], labels: NDArray[np.int64]) -> dict[int, tuple[int, float]]:
    """For each cluster the place of its largest class among those that occur, and that class's share."""
    known = (clusters >= 0) & (labels >= 0)
    if not known.any():
        return {}
    table = metrics.contingency(clusters[known], labels[known])
    largest = table.table.argmax(axis=1)
    shares = table.table.max(axis=1) / table.table.sum(axis=1)
    return {int(c): (int(largest[i]), float(shares[i])) for i, c in enumerate(table.clusters.tolist())}


def places_of_classes(clusters: NDArray[np.int64], kept: Kept) -> list[int]:
    """For each image shown the place of its class among those that occur, -1 where it is unknown."""
    assert kept.labels is not None
    known = (clusters >= 0) & (kept.labels >= 0)
    classes = np.unique(kept.labels[known])
    labels = kept.labels[kept.rows]
    found: list[int] = np.where(labels >= 0, np.searchsorted(classes, labels), -1).tolist()
    return found


def _confusions(
    matrix: NDArray[np.int64],
    columns: list[Any],
    classes: NDArray[Any],
    code: dict[int, int],
    clusters: NDArray[np.int64],
    kept: Kept,
) -> list[Confusion]:
    """The largest cells off the diagonal, each with the surest of its images that are shown."""
    assert kept.labels is not None
    wrong = matrix.copy()
    n = len(matrix)
    wrong[np.arange(n), np.arange(n)] = 0
    of_shown, label_of = clusters[kept.rows], kept.labels[kept.rows]
    found = []
    for cell in np.argsort(-wrong, axis=None, kind="stable")[:MOST_CONFUSIONS].tolist():
        row, column = divmod(cell, matrix.shape[1])
        if wrong[row, column] and columns[column] is not None:
            label, cluster = int(classes[row]), int(columns[column])
            images = np.flatnonzero((label_of == label) & (of_shown == cluster))[:IMAGES_OF_A_CELL]
            found.append(Confusion(code[label], cluster, int(wrong[row, column]), images.tolist()))
    return found


def _about(measured: dict[str, Any]) -> str:
    split = str(measured.get("protocol", {}).get("split", ""))
    if split and not split.startswith("all images") and "acc" in measured:
        return (
            f"These are the images that were trained on, whose clusters this page shows; the scores at the top are of "
            f"the {split} split."
        )
    return "These are all labelled images, the same that were trained on."
