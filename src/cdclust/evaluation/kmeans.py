"""k-means on features: how the plain pretext methods are clustered, and what everything is compared with."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float32]
Clusters = NDArray[np.int64]
Tell = Callable[[int, int], None]

STARTS = 10
ITERATIONS = 100


def unit_rows(features: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each row divided by its length."""
    length = np.linalg.norm(features, axis=1, keepdims=True)
    rows: NDArray[np.float32] = features / np.maximum(length, 1e-12)
    return rows


def centroids(features: NDArray[np.float32], n_clusters: int, seed: int) -> NDArray[np.float32]:
    """The centroids (K, D) of features of unit length, the best of 10 starts by inertia."""
    from sklearn.cluster import KMeans  # takes seconds to import, and most runs do without

    fitted = KMeans(n_clusters, n_init=10, random_state=seed).fit(unit_rows(features))
    found: NDArray[np.float32] = fitted.cluster_centers_.astype(np.float32)
    return found


def kmeans(rows: Rows, n_clusters: int, seed: int, tell: Tell) -> Clusters:
    """Lloyd's k-means from k-means++, the best of 10 starts by inertia."""
    from sklearn.cluster import KMeans

    best, chosen = np.inf, np.zeros(len(rows), dtype=np.int64)
    for start, chance in enumerate(_chances(seed)):
        fitted = KMeans(n_clusters, n_init=1, random_state=chance).fit(rows)
        if fitted.inertia_ < best:
            best, chosen = fitted.inertia_, fitted.labels_.astype(np.int64)
        tell(start + 1, STARTS)
    return chosen


def spherical_kmeans(unit: Rows, n_clusters: int, seed: int, tell: Tell) -> Clusters:
    """k-means by cosine of rows of unit length, centroids of unit length too (Dhillon and Modha 2001)."""
    best, chosen = -np.inf, np.zeros(len(unit), dtype=np.int64)
    for start, chance in enumerate(_chances(seed)):
        clusters, value = _spherical(unit, n_clusters, chance)
        if value > best:
            best, chosen = value, clusters
        tell(start + 1, STARTS)
    return chosen


def _chances(seed: int) -> list[int]:
    return [int(chance) for chance in np.random.default_rng(seed).integers(2**31, size=STARTS)]


def _spherical(unit: Rows, n_clusters: int, seed: int) -> tuple[Clusters, float]:
    """Clusters, and the mean cosine with their centroids."""
    from sklearn.cluster import kmeans_plusplus

    centres, _ = kmeans_plusplus(unit, n_clusters, random_state=seed)
    clusters = np.full(len(unit), -1, dtype=np.int64)
    for _ in range(ITERATIONS):
        cosine = unit @ centres.T
        before, clusters = clusters, cosine.argmax(axis=1)
        if np.array_equal(before, clusters):
            break
        centres = unit_rows(sums_of(unit, clusters, n_clusters))
        worst = iter(np.argsort(cosine.max(axis=1)))  # an empty cluster starts anew where the fit is poorest
        for empty in np.flatnonzero(np.bincount(clusters, minlength=n_clusters) == 0):
            centres[empty] = unit[next(worst)]
    return clusters, float((unit @ centres.T).max(axis=1).mean())


def sums_of(rows: Rows, clusters: Clusters, n_clusters: int) -> Rows:
    """The sum (K, D) of each cluster's rows."""
    sums = np.zeros((n_clusters, rows.shape[1]), dtype=np.float32)
    order = np.argsort(clusters, kind="stable")
    present, starts = np.unique(clusters[order], return_index=True)
    for at in range(0, rows.shape[1], 256):  # a copy of a few columns at a time
        sums[present, at : at + 256] = np.add.reduceat(rows[order, at : at + 256], starts, axis=0)
    return sums
