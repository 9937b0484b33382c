"""What lies near what: similarities of features, in blocks, so that memory does not grow with the number of images.

Similarity is the cosine after the mean of all images is taken off; without that, features behind a ReLU are all alike.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK = 4096  # rows at once
EMPTY = 1e-12


@dataclass(frozen=True)
class Centres:
    """The mean feature of all images, and each cluster's mean direction from there."""

    mean: NDArray[np.float32]  # (D,)
    directions: NDArray[np.float32]  # (K, D) of length 1, or 0 where a cluster is empty


def directions(features: NDArray[Any], mean: NDArray[np.float32]) -> NDArray[np.float32]:
    """Features from the mean, at length 1; one that is no number, or the mean itself, is 0."""
    moved = np.nan_to_num(np.asarray(features, dtype=np.float32) - mean, nan=0.0, posinf=0.0, neginf=0.0)
    length = np.linalg.norm(moved, axis=1, keepdims=True)
    found: NDArray[np.float32] = np.divide(moved, length, out=np.zeros_like(moved), where=length > EMPTY)
    return found


def centres(features: NDArray[Any], clusters: NDArray[np.int64], n_clusters: int) -> Centres:
    """Passes over all features twice; rows without a cluster (-1) do not count."""
    total = np.zeros(features.shape[1])
    count = 0
    for rows in _blocks(clusters):
        total += np.nan_to_num(np.asarray(features[rows], dtype=np.float64), posinf=0.0, neginf=0.0).sum(axis=0)
        count += len(rows)
    mean = (total / max(count, 1)).astype(np.float32)
    sums = np.zeros((n_clusters, features.shape[1]), dtype=np.float32)
    for rows in _blocks(clusters):
        rows = rows[np.argsort(clusters[rows], kind="stable")]
        present, starts = np.unique(clusters[rows], return_index=True)
        sums[present] += np.add.reduceat(directions(features[rows], mean), starts, axis=0)
    return Centres(mean, directions(sums, np.zeros_like(mean)))


def typicality(features: NDArray[Any], clusters: NDArray[np.int64], of: Centres) -> NDArray[np.float32]:
    """Each image's similarity to the middle of its cluster; 0 for an image without one."""
    found = np.zeros(len(clusters), dtype=np.float32)
    for rows in _blocks(clusters):
        found[rows] = (directions(features[rows], of.mean) * of.directions[clusters[rows]]).sum(axis=1)
    return found


def _blocks(clusters: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    for start in range(0, len(clusters), BLOCK):
        rows = start + np.flatnonzero(clusters[start : start + BLOCK] >= 0)
        if len(rows):
            yield rows


def nearest(unit: NDArray[np.float32], k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The k most similar others of each row of length 1, most similar first, and how similar: (n, k) each."""
    n = len(unit)
    k = max(0, min(k, n - 1))
    places, values = np.zeros((n, k), dtype=np.int64), np.zeros((n, k), dtype=np.float32)
    if k < 1:
        return places, values
    step = max(1, min(BLOCK, 2**25 // n))
    for start in range(0, n, step):
        block = unit[start : start + step] @ unit.T
        own = np.arange(len(block))
        block[own, start + own] = -np.inf
        top = np.argpartition(-block, k - 1, axis=1)[:, :k]
        order = np.argsort(-np.take_along_axis(block, top, axis=1), axis=1, kind="stable")
        top = np.take_along_axis(top, order, axis=1)
        places[start : start + step] = top
        values[start : start + step] = np.take_along_axis(block, top, axis=1)
    return places, values


def outliers(similarities: NDArray[np.float32], most: int) -> NDArray[np.int64]:
    """The rows that are least like even their nearest, by the mean of their similarities; strangest first."""
    if not similarities.shape[1]:
        return np.zeros(0, dtype=np.int64)
    return np.argsort(similarities.mean(axis=1), kind="stable")[:most]


def mutual(places: NDArray[np.int64], similarities: NDArray[np.float32]) -> list[tuple[int, int, float]]:
    """Pairs of which each is the other's nearest, most similar first."""
    if not places.shape[1]:
        return []
    first = places[:, 0]
    pairs = [(i, int(j), float(similarities[i, 0])) for i, j in enumerate(first) if i < j and first[j] == i]
    return sorted(pairs, key=lambda pair: (-pair[2], pair[0]))
