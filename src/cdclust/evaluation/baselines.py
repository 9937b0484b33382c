"""What CDC is compared with, from scikit-learn and faiss: features in, clusters out.

Every method gets features `around the mean, of length 1`, which is how CDC's head sees them; k-means gets them as they
are, which is the usual.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cdclust.evaluation import kmeans as lloyd
from cdclust.evaluation.kmeans import Clusters, Rows, Tell, sums_of, unit_rows

SAMPLE = 10_000  # images on which methods run whose time or memory grows with the square of their number
FAISS_FROM = 50_000  # images from which k-means is left to faiss, where it is installed
COMPONENTS = 50  # principal ones, for HDBSCAN: density means nothing in a thousand dimensions


@dataclass(frozen=True)
class Grouping:
    """What a method made of all images."""

    clusters: Clusters  # (N,)
    remarks: list[str] = field(default_factory=list)  # what a reader of the table has to know
    probabilities: NDArray[np.float32] | None = None  # (N,) of the chosen cluster


Baseline = Callable[[Rows, int, int, Tell], Grouping]


def k_means(rows: Rows, k: int, seed: int, tell: Tell) -> Grouping:
    """k-means; of many images by faiss, where there is one."""
    if len(rows) >= FAISS_FROM and importlib.util.find_spec("faiss"):
        return _faiss(rows, k, seed, spherical=False)
    return Grouping(lloyd.kmeans(rows, k, seed, tell))


def spherical_k_means(rows: Rows, k: int, seed: int, tell: Tell) -> Grouping:
    """Spherical k-means; of many images by faiss, where there is one."""
    if len(rows) >= FAISS_FROM and importlib.util.find_spec("faiss"):
        return _faiss(rows, k, seed, spherical=True)
    return Grouping(lloyd.spherical_kmeans(rows, k, seed, tell))


def agglomerative(rows: Rows, k: int, seed: int, tell: Tell) -> Grouping:  # noqa: ARG001
    """Ward's hierarchy, cut at K."""
    from sklearn.cluster import AgglomerativeClustering

    return _sampled(rows, k, seed, lambda part: (AgglomerativeClustering(k).fit_predict(part), []))


def spectral(rows: Rows, k: int, seed: int, tell: Tell) -> Grouping:  # noqa: ARG001
    """Spectral clustering of the graph of 10 nearest neighbours."""
    from sklearn.cluster import SpectralClustering

    def fit(part: Rows) -> tuple[Clusters, list[str]]:
        near = min(10, len(part) - 1)
        method = SpectralClustering(k, affinity="nearest_neighbors", n_neighbors=near, random_state=seed)
        return method.fit_predict(part), []

    return _sampled(rows, k, seed, fit)


def hdbscan(rows: Rows, k: int, seed: int, tell: Tell) -> Grouping:  # noqa: ARG001
    """HDBSCAN, which takes no K; what it calls noise goes to the nearest centroid."""
    from sklearn.cluster import HDBSCAN
    from sklearn.decomposition import PCA

    def fit(part: Rows) -> tuple[Clusters, list[str]]:
        low = PCA(min(COMPONENTS, *part.shape), random_state=seed).fit_transform(part)
        # A tenth of an even share: K enters here alone, as the size below which a group is none.
        found = HDBSCAN(min_cluster_size=max(5, len(part) // (10 * k)), copy=True).fit_predict(low).astype(np.int64)
        noise, n = found < 0, int(found.max()) + 1
        if n == 0:
            return np.zeros_like(found), ["found no cluster: all images in one"]
        found[noise] = _nearest(part[noise], unit_rows(sums_of(part[~noise], found[~noise], n)))
        return found, [f"found {n} clusters by itself; {noise.mean():.0%} were noise, put to the nearest"]

    return _sampled(rows, k, seed, fit)


BASELINES: dict[str, Baseline] = {
    "kmeans": k_means,
    "spherical-kmeans": spherical_k_means,
    "agglomerative": agglomerative,
    "spectral": spectral,
    "hdbscan": hdbscan,
}
AS_THEY_ARE = {"kmeans"}
NO_CHANCE = {"agglomerative", "hdbscan"}  # the same from every seed


def prepared(method: str, features: Rows, mean: Rows) -> tuple[Rows, str]:
    """Features (N, D) as a method gets them, and that in words."""
    if method in AS_THEY_ARE:
        return features, "as they are"
    return unit_rows(features - mean), "around the mean, of length 1"


def _sampled(rows: Rows, k: int, seed: int, fit: Callable[[Rows], tuple[Clusters, list[str]]]) -> Grouping:
    """Fit all rows, or a sample of them and put the rest to the nearest centroid."""
    if len(rows) <= SAMPLE:
        clusters, remarks = fit(rows)
        return Grouping(clusters.astype(np.int64), remarks)
    there = np.sort(np.random.default_rng(seed).choice(len(rows), SAMPLE, replace=False))
    of_sample, remarks = fit(rows[there])
    centres = unit_rows(sums_of(rows[there], of_sample.astype(np.int64), max(k, int(of_sample.max()) + 1)))
    clusters = _nearest(rows, centres)
    clusters[there] = of_sample
    said = f"on a sample of {SAMPLE:,} of {len(rows):,} images, the rest put to the nearest centroid"
    return Grouping(clusters, [said, *remarks])


def _nearest(rows: Rows, centres: Rows) -> Clusters:
    parts = [(rows[at : at + 8192] @ centres.T).argmax(axis=1) for at in range(0, len(rows), 8192)]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _faiss(rows: Rows, k: int, seed: int, spherical: bool) -> Grouping:
    import faiss

    method = faiss.Kmeans(
        rows.shape[1], k, niter=25, nredo=3, seed=seed, spherical=spherical, max_points_per_centroid=len(rows)
    )
    method.train(np.ascontiguousarray(rows))
    _, found = method.index.search(np.ascontiguousarray(rows), 1)
    return Grouping(found[:, 0].astype(np.int64), [f"faiss {faiss.__version__}, 25 iterations, 3 starts"])
