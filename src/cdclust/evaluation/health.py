"""What can be said of a clustering without labels: how even, how sure, and whether it has collapsed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

SURE = 0.99  # the probability above which self-labelling believes an image
FAR = 0.2  # of the images too many for what was assumed of sizes; even groups of real images come to 0.15
FEW = 0.5  # of the clusters; with fewer in use, or less even than this, something went wrong


@dataclass(frozen=True)
class Health:
    """Label-free figures of one assignment; images without a cluster (-1) are left out."""

    sizes: NDArray[np.int64]  # (K,)
    size_entropy: float  # of the sizes, over ln K: 1 is even, 0 is one cluster
    n_nonempty: int
    confidence: float  # mean probability of the chosen cluster
    sure: float  # share of images above 0.99

    @property
    def n(self) -> int:
        """How many images have a cluster."""
        return int(self.sizes.sum())


def health(clusters: ArrayLike, probabilities: ArrayLike, n_clusters: int) -> Health:
    """Figures from the cluster of each image, its probability, and K."""
    clusters, p = np.asarray(clusters), np.asarray(probabilities, dtype=np.float64)
    clusters, p = clusters[clusters >= 0], p[clusters >= 0]
    sizes = np.bincount(clusters.astype(np.int64), minlength=n_clusters)
    share = sizes[sizes > 0] / max(len(clusters), 1)
    entropy = float(-(share * np.log(share)).sum() / np.log(n_clusters)) if n_clusters > 1 else 1.0
    confidence, sure = (float(p.mean()), float((p > SURE).mean())) if len(p) else (0.0, 0.0)
    return Health(sizes, abs(entropy), len(share), confidence, sure)


def looks_collapsed(h: Health) -> str | None:
    """What is wrong, in a sentence with what to try; None if nothing is."""
    k = len(h.sizes)
    if k < 2 or h.n < 2:
        return None
    if h.n_nonempty == 1:
        return (
            f"All {h.n:,} images are in cluster {int(h.sizes.argmax())}: the network has collapsed; "
            "lower the learning rate, normalise z_c, or keep the Sinkhorn constraint on (alpha above 0)."
        )
    reachable = min(k, h.n)
    if h.n_nonempty < FEW * reachable:
        return (
            f"Only {h.n_nonempty} of {k} clusters hold images: clusters have died; "
            "try a larger batch or a Sinkhorn queue, a larger alpha, or fewer clusters."
        )
    if h.size_entropy * np.log(k) < FEW * np.log(reachable):
        return (
            f"Cluster {int(h.sizes.argmax())} holds {h.sizes.max() / h.n:.0%} of the images: the clusters are far "
            "from even; try a larger alpha or a larger batch."
        )
    if h.confidence < 1.1 / k:
        return (
            f"The mean probability of the chosen cluster is {h.confidence:.3f}, as good as 1/K: every image looks "
            "alike to the head; try a lower t or a higher learning rate."
        )
    return None


def sizes_disagree(h: Health, shares: Sequence[float] | None) -> str | None:
    """That the clusters are not as large as was assumed, in a sentence with what to try; None if they about are.

    `shares` are those given for K clusters, in any order; None are even ones. A few images differ by chance alone.
    """
    k = len(h.sizes)
    if k < 2 or h.n < k:
        return None
    assumed = np.sort(np.ones(k) if shares is None else np.asarray(shares, dtype=np.float64))
    too_many = float(np.abs(np.sort(h.sizes) / h.n - assumed / assumed.sum()).sum() / 2)
    if too_many <= FAR + 0.4 * (k / h.n) ** 0.5:
        return None
    said = f"Clusters hold from {h.sizes.min():,} to {h.sizes.max():,} images, {too_many:.0%} of them too many for"
    if shares is None:
        return f"{said} clusters of one size; if the groups differ in size, try objective.sizes=soft."
    return f"{said} the shares in objective.sizes; if those are not certain, try objective.sizes=soft."
