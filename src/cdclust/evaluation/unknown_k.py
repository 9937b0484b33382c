"""How many clusters features fall into, when nobody says: a proposal with its curve, and whether it is to be trusted.

For every number K the features are clustered by k-means, and two things are asked: how far apart the clusters lie (the
silhouette), and whether halves of the images find the same clusters (the prediction strength of Tibshirani and
Walther). Both are compared with what k-means makes of a single Gaussian cloud of the same shape, which has no clusters:
without that, small K always wins the second. No label is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cdclust.errors import UserError
from cdclust.evaluation.kmeans import unit_rows

if TYPE_CHECKING:
    from sklearn.cluster import KMeans

SAMPLE = 4000  # images looked at; of more a random part
COMPARED = 2000  # of them, whose distances to each other are taken for the silhouette
DIMENSIONS = 64
FEWEST = 8  # images a cluster, on average
MOST = 120
STEP = 1.1  # between one K and the next
STARTS = 3
HALVES = 4
SMOOTHED = 0.08  # standard deviation, in ln K, over which a curve is smoothed: one K differs from the next by chance
AGREE = 1.34  # both criteria have to peak within this factor of the proposal for it to be sure
RIVAL = 0.9  # of the best score: another peak, further away than that, that reaches it makes the proposal doubtful
CHANCE = (0.01, 0.1)  # of separation and strength: what differs less from a cloud without clusters may be one

Features = NDArray[np.float32]
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Proposal:
    """A number of clusters, and the curves that it was read from."""

    k: int
    sure: bool
    why: str  # what makes it sure, or not, in words
    candidates: list[int]
    separation: list[float]  # silhouette beyond that of a cloud without clusters
    strength: list[float]  # prediction strength beyond that of the cloud
    score: list[float]  # their product, of which the largest is proposed

    def curve(self) -> dict[str, object]:
        """As it stands in metrics.json."""
        return {
            "chosen": self.k,
            "sure": self.sure,
            "why": self.why,
            "k": self.candidates,
            "separation": [round(value, 4) for value in self.separation],
            "strength": [round(value, 4) for value in self.strength],
            "score": [round(value, 5) for value in self.score],
        }


def propose(features: Features, seed: int = 0, tell: Callable[[int, int], None] | None = None) -> Proposal:
    """The number of clusters in features (N, D)."""
    chance = np.random.default_rng(seed)
    if len(features) > SAMPLE:
        features = features[np.sort(chance.permutation(len(features))[:SAMPLE])]
    numbers = candidates(len(features))
    axes = principal(features)
    real, cloud = unit_rows(axes), unit_rows(like_a_cloud(axes, chance))
    found = []
    for done, k in enumerate(numbers):
        (s, p), (s_cloud, p_cloud) = (examined(each, k, np.random.default_rng([seed, k])) for each in (real, cloud))
        found.append((max(0.0, s - s_cloud), max(0.0, p - p_cloud)))
        if tell:
            tell(done + 1, len(numbers))
    return decided(numbers, *(smooth(numbers, curve) for curve in zip(*found, strict=True)))


def candidates(n: int) -> list[int]:
    """The numbers that are tried for n images: all of the small ones, then each a tenth larger."""
    most, k, found = min(MOST, n // FEWEST), 2.0, list[int]()
    while round(k) <= most:
        found.append(round(k))
        k = max(k + 1, k * STEP)
    if len(found) < 3:
        raise UserError(f"-k auto: {n} images are too few to tell how many clusters they make; say how many: -k 3")
    return found


def principal(features: Features) -> Features:
    """Directions from the mean, in the axes in which they vary most: (N, 64)."""
    around = unit_rows(features.astype(np.float32) - features.mean(axis=0, dtype=np.float64).astype(np.float32))
    around -= around.mean(axis=0)
    _, axes = np.linalg.eigh(around.T @ around)
    found: Features = around @ axes[:, ::-1][:, :DIMENSIONS]
    return found


def like_a_cloud(axes: Features, chance: np.random.Generator) -> Features:
    """As many points from one Gaussian with the same variance along every axis."""
    found: Features = (chance.standard_normal(axes.shape) * axes.std(axis=0)).astype(np.float32)
    return found


def examined(points: Features, k: int, chance: np.random.Generator) -> tuple[float, float]:
    """Silhouette, the mean of several starts, and prediction strength, the mean of several halvings, of k clusters."""
    some = chance.permutation(len(points))[:COMPARED]
    near = distances(points[some])
    starts = [clustered(points, k, chance, 1).labels_ for _ in range(STARTS)]
    apart = float(np.mean([silhouette(near, labels[some]) for labels in starts]))
    return apart, float(np.mean([strength(points, k, chance) for _ in range(HALVES)]))


def clustered(points: Features, k: int, chance: np.random.Generator, starts: int) -> KMeans:
    """k-means, the best of some starts."""
    from sklearn.cluster import KMeans  # takes seconds to import

    return KMeans(k, n_init=starts, max_iter=60, random_state=int(chance.integers(2**31))).fit(points)


def distances(points: Features) -> Features:
    """Of every point to every other: (N, N)."""
    squared = (points**2).sum(axis=1)
    found: Features = np.sqrt(np.maximum(squared[:, None] + squared[None] - 2 * points @ points.T, 0))
    np.fill_diagonal(found, 0)
    return found


def silhouette(near: Features, labels: Labels) -> float:
    """The mean, over points, of (b - a) / max(a, b): a the mean distance to the own cluster, b to the nearest other."""
    _, labels = np.unique(labels, return_inverse=True)
    k, n = int(labels.max()) + 1, len(labels)
    if k < 2:
        return 0.0
    sizes = np.bincount(labels)
    sums = near @ np.eye(k, dtype=np.float32)[labels]  # (N, K)
    own = sums[np.arange(n), labels] / np.maximum(sizes[labels] - 1, 1)
    means = sums / sizes
    means[np.arange(n), labels] = np.inf
    other = means.min(axis=1)
    values = (other - own) / np.maximum(np.maximum(own, other), 1e-12)
    return float(np.where(sizes[labels] > 1, values, 0).mean())


def strength(points: Features, k: int, chance: np.random.Generator) -> float:
    """Of pairs in one cluster of one half, the share that the other half's clusters keep together."""
    order = chance.permutation(len(points))
    here, there = points[order[: len(order) // 2]], points[order[len(order) // 2 :]]
    own = clustered(here, k, chance, STARTS).labels_
    others = clustered(there, k, chance, STARTS).predict(here)
    table = np.zeros((k, k))
    np.add.at(table, (own, others), 1)
    sizes = table.sum(axis=1)
    kept = (table * (table - 1)).sum(axis=1) / np.maximum(sizes * (sizes - 1), 1)
    return float(kept.mean())  # a cluster of one image keeps nothing


def smooth(numbers: list[int], curve: Sequence[float]) -> list[float]:
    """Each value averaged with those of nearly the same K."""
    apart = np.log(np.array(numbers)[:, None] / np.array(numbers))
    weights = np.exp(-((apart / SMOOTHED) ** 2) / 2)
    found: list[float] = (weights @ np.array(curve) / weights.sum(axis=1)).tolist()
    return found


def decided(numbers: list[int], separation: list[float], strength: list[float]) -> Proposal:
    """The number with the largest product; sure if both criteria peak near it and nothing rivals it."""
    score = [a * b for a, b in zip(separation, strength, strict=True)]
    best = int(np.argmax(score))
    k = numbers[best]
    apart, again = (numbers[int(np.argmax(curve))] for curve in (separation, strength))
    if separation[best] < CHANCE[0] or strength[best] < CHANCE[1]:
        why = "the images hardly differ from one cloud without clusters"
    elif best in (0, len(numbers) - 1):
        why = f"{k} is the {'least' if best == 0 else 'most'} that was tried, so the curve has no peak"
    elif _far(apart, k) or _far(again, k):
        why = f"clusters lie furthest apart with {apart}, and halves of the images agree best with {again}"
    elif rivals := [numbers[i] for i in peaks(score) if _far(numbers[i], k) and score[i] >= RIVAL * score[best]]:
        why = f"{' and '.join(map(str, rivals))} would do nearly as well"
    else:
        return Proposal(k, True, "both criteria peak there or near", numbers, separation, strength, score)
    return Proposal(k, False, why, numbers, separation, strength, score)


def peaks(curve: list[float]) -> list[int]:
    """Places that are higher than both neighbours."""
    return [i for i in range(1, len(curve) - 1) if curve[i - 1] < curve[i] >= curve[i + 1]]


def _far(one: int, other: int) -> bool:
    return max(one, other) > AGREE * min(one, other)


def thinned(proposal: Proposal, most: int = 20) -> Iterator[int]:
    """Places in the curve to be shown: at most so many, the chosen one among them."""
    n = len(proposal.candidates)
    chosen = proposal.candidates.index(proposal.k)
    every = -(-n // most)
    return (place for place in range(n) if place % every == chosen % every)
