"""A clustering against labels: accuracy, NMI, ARI, purity and tables, all from one contingency table.

Clusters and classes may be of any number and any values; there may be fewer, as many or more of one than the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from cdclust.errors import UserError

UNKNOWN = -1  # the label of an image without one, the cluster of an image that could not be read
UNMATCHED = -1
MAX_CELLS = 2**28  # of a dense table, 2 GiB


@dataclass(frozen=True)
class Contingency:
    """How many images of each class lie in each cluster; empty clusters and classes have no row or column."""

    table: NDArray[np.int64]  # (clusters, classes)
    clusters: NDArray[Any]  # the value each row stands for
    classes: NDArray[Any]  # the value each column stands for

    @property
    def n(self) -> int:
        """How many images were counted."""
        return int(self.table.sum())


@dataclass(frozen=True)
class ClusterRow:
    """One cluster: the class matched to it (None where there is none), that class's share, the largest share."""

    cluster: Any
    size: int
    matched: Any
    share: float
    purity: float


@dataclass(frozen=True)
class ClassRow:
    """One class: the cluster matched to it (None where there is none) and what that cluster gets of it."""

    label: Any
    size: int
    matched: Any
    recall: float
    precision: float


def contingency(clusters: ArrayLike, labels: ArrayLike, *, ignore_unknown: bool = False) -> Contingency:
    """Count images by cluster and class; `ignore_unknown` leaves out those whose cluster or label is -1."""
    a, b = np.asarray(clusters).reshape(-1), np.asarray(labels).reshape(-1)
    if len(a) != len(b):
        raise ValueError(f"{len(a):,} clusters for {len(b):,} labels")
    if ignore_unknown and not (known := _known(a) & _known(b)).all():
        a, b = a[known], b[known]
    if not len(a):
        raise UserError("labels: no image has both a cluster and a label; leave the scores out, or give labels")
    rows, row_values = _codes(a)
    columns, column_values = _codes(b)
    shape = len(row_values), len(column_values)
    if shape[0] * shape[1] > MAX_CELLS:
        raise UserError(f"labels: {shape[0]:,} clusters by {shape[1]:,} classes are too many for a table")
    table = np.bincount(rows * shape[1] + columns, minlength=shape[0] * shape[1]).reshape(shape)
    return Contingency(table, row_values, column_values)


def _known(values: NDArray[Any]) -> NDArray[np.bool_]:
    return values != UNKNOWN if values.dtype.kind in "if" else np.ones(len(values), dtype=bool)


def _codes(values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Each value's position among the sorted distinct ones; whole numbers that lie close are not sorted for it."""
    if values.dtype.kind in "iub":
        low, high = int(values.min()), int(values.max())
        if high - low < max(2**16, len(values)):
            if values.dtype.kind == "b" or values.dtype.itemsize < 8:
                values = values.astype(np.int64)
            codes = (values - values.dtype.type(low)).astype(np.int64, copy=False)
            present = np.flatnonzero(np.bincount(codes))
            if len(present) <= high - low:
                position = np.zeros(high - low + 1, dtype=np.int64)
                position[present] = np.arange(len(present))
                codes = position[codes]
            return codes, present.astype(values.dtype) + values.dtype.type(low)
    if values.dtype.kind == "O":
        values = np.array([str(v) for v in values])  # values of several types have no order
    distinct, codes = np.unique(values, return_inverse=True)
    return codes.reshape(-1), distinct


def match(c: Contingency) -> NDArray[np.int64]:
    """The column matched to each row, one to one, so that most images agree; -1 for a row that gets none.

    The optimal assignment on the rectangular table; a pair without a common image is no match.
    """
    rows, columns = linear_sum_assignment(c.table, maximize=True)
    matched = np.full(len(c.clusters), UNMATCHED, dtype=np.int64)
    common = c.table[rows, columns] > 0
    matched[rows[common]] = columns[common]
    return matched


def accuracy(c: Contingency, matched: NDArray[np.int64] | None = None) -> float:
    """The share of images whose cluster is matched to their class; images of unmatched clusters count as wrong."""
    matched = match(c) if matched is None else matched
    rows = np.flatnonzero(matched != UNMATCHED)
    return float(c.table[rows, matched[rows]].sum() / c.n)


def purity(c: Contingency) -> float:
    """Many clusters to one class: the share of images that belong to their cluster's largest class.

    It grows with the number of clusters, up to 1 for one image a cluster; not to be compared with accuracy.
    """
    return float(c.table.max(axis=1).sum() / c.n)


def nmi(c: Contingency) -> float:
    """Normalised mutual information, by the arithmetic mean of both entropies (scikit-learn's default).

    One cluster and one class are a perfect match, 1; if only one side is undivided it tells nothing, 0.
    """
    if 1 in c.table.shape:
        return float(c.table.shape == (1, 1))
    rows, columns = np.nonzero(c.table)
    joint = c.table[rows, columns] / c.n
    p, q = c.table.sum(axis=1) / c.n, c.table.sum(axis=0) / c.n
    information = (joint * (np.log(joint) - np.log(p)[rows] - np.log(q)[columns])).sum()
    mean_entropy = -((p * np.log(p)).sum() + (q * np.log(q)).sum()) / 2
    return float(np.clip(information / mean_entropy, 0, 1))


def ari(c: Contingency) -> float:
    """Adjusted Rand index: agreement on pairs of images, 0 on average for random clusters, 1 for equal ones."""
    together = _pairs(c.table)
    in_cluster, in_class = _pairs(c.table.sum(axis=1)), _pairs(c.table.sum(axis=0))
    if together == in_cluster == in_class:
        return 1.0
    expected = in_cluster * in_class / (c.n * (c.n - 1) / 2)
    return (together - expected) / ((in_cluster + in_class) / 2 - expected)


def _pairs(counts: NDArray[np.int64]) -> int:
    return int((counts * (counts - 1)).sum()) // 2


def scores(clusters: ArrayLike, labels: ArrayLike, *, ignore_unknown: bool = False) -> dict[str, float]:
    """`acc`, `nmi`, `ari` and `purity` (many-to-one), each at most 1."""
    c = contingency(clusters, labels, ignore_unknown=ignore_unknown)
    return {"acc": accuracy(c), "nmi": nmi(c), "ari": ari(c), "purity": purity(c)}


def per_cluster(c: Contingency, matched: NDArray[np.int64] | None = None) -> list[ClusterRow]:
    """One row a cluster, in the order of the clusters."""
    matched = match(c) if matched is None else matched
    sizes, largest = c.table.sum(axis=1), c.table.max(axis=1)
    rows = []
    for i, j in enumerate(matched.tolist()):
        size = int(sizes[i])
        found, label = (int(c.table[i, j]), c.classes[j].item()) if j != UNMATCHED else (0, None)
        rows.append(ClusterRow(c.clusters[i].item(), size, label, found / size, int(largest[i]) / size))
    return rows


def per_class(c: Contingency, matched: NDArray[np.int64] | None = None) -> list[ClassRow]:
    """One row a class, in the order of the classes."""
    matched = match(c) if matched is None else matched
    cluster_of = {j: i for i, j in enumerate(matched.tolist()) if j != UNMATCHED}
    sizes, cluster_sizes = c.table.sum(axis=0), c.table.sum(axis=1)
    rows = []
    for j, label in enumerate(c.classes.tolist()):
        size, i = int(sizes[j]), cluster_of.get(j)
        if i is None:
            rows.append(ClassRow(label, size, None, 0.0, 0.0))
        else:
            found = int(c.table[i, j])
            rows.append(ClassRow(label, size, c.clusters[i].item(), found / size, found / int(cluster_sizes[i])))
    return rows


def confusion(c: Contingency, matched: NDArray[np.int64] | None = None) -> tuple[NDArray[np.int64], list[Any]]:
    """Classes by clusters, with each class's matched cluster on the diagonal, and the cluster of each column.

    A class without a match has a column of zeros, called None; clusters without a match follow, largest first.
    """
    matched = match(c) if matched is None else matched
    n_classes = len(c.classes)
    rest = np.flatnonzero(matched == UNMATCHED)
    rest = rest[np.argsort(-c.table[rest].sum(axis=1), kind="stable")]
    matrix = np.zeros((n_classes, n_classes + len(rest)), dtype=np.int64)
    names: list[Any] = [None] * n_classes + c.clusters[rest].tolist()
    for i in np.flatnonzero(matched != UNMATCHED):
        matrix[:, matched[i]] = c.table[i]
        names[matched[i]] = c.clusters[i].item()
    matrix[:, n_classes:] = c.table[rest].T
    return matrix, names
