"""Which images a page shows: all, up to a limit; beyond it every cluster's gallery, and others drawn at random."""

import numpy as np
from numpy.typing import NDArray

MOST_SHOWN = 10_000
IN_A_GALLERY = 24  # most typical, as many least certain


def choose(
    clusters: NDArray[np.int64],
    probabilities: NDArray[np.float64],
    typical: NDArray[np.float32],
    most: int = MOST_SHOWN,
    seed: int = 0,
) -> NDArray[np.int64]:
    """Rows in ascending order, at most `most`; images without a cluster (-1) are left out."""
    rows = np.flatnonzero(clusters >= 0)
    if len(rows) <= most:
        return rows
    taken = choose_galleries(clusters, probabilities, typical, most)
    rest = np.setdiff1d(rows, taken)
    drawn = np.random.default_rng(seed).choice(rest, most - len(taken), replace=False)
    return np.sort(np.concatenate([drawn, taken]))


def choose_galleries(
    clusters: NDArray[np.int64],
    probabilities: NDArray[np.float64],
    typical: NDArray[np.float32],
    most: int = MOST_SHOWN,
) -> NDArray[np.int64]:
    """Each cluster's most typical and least certain rows, in ascending order; no more than half of `most`."""
    rows = np.flatnonzero(clusters >= 0)
    each = min(IN_A_GALLERY, most // (4 * max(len(np.unique(clusters[rows])), 1)))
    by_typical = rows[np.argsort(-typical[rows], kind="stable")]
    by_doubt = rows[np.argsort(probabilities[rows], kind="stable")]
    return np.unique([i for order in (by_typical, by_doubt) for i in _first_of_each(order, clusters, each)]).astype(
        np.int64
    )


def _first_of_each(ordered: NDArray[np.int64], clusters: NDArray[np.int64], each: int) -> list[int]:
    """The first `each` rows of every cluster, in the order given."""
    by_cluster = ordered[np.argsort(clusters[ordered], kind="stable")]
    sorted_clusters = clusters[by_cluster]
    starts = np.searchsorted(sorted_clusters, sorted_clusters, side="left")
    found: list[int] = by_cluster[np.arange(len(by_cluster)) - starts < each].tolist()
    return found
