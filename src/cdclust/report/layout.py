"""Where each image lies on the map: t-SNE of its features."""

import warnings

import numpy as np
from numpy.typing import NDArray

COMPONENTS = 50
PERPLEXITY = 30.0
ITERATIONS = 500
ANGLE = 0.8  # what is seen at a smaller angle counts as one point: twice as fast as 0.5, and to the eye the same
FEWEST = 8  # images that t-SNE makes sense for


def lay_out(unit: NDArray[np.float32], seed: int = 0) -> NDArray[np.float32]:
    """Places (n, 2) in 0..1 of features of length 1; images that are alike lie near each other."""
    n = len(unit)
    reduced = _reduced(unit) if n >= FEWEST else None
    if reduced is None or float(reduced.std(axis=0).max(initial=0)) < 1e-6:
        angle = 2 * np.pi * np.arange(n) / max(n, 1)
        return _in_a_square(np.stack([np.cos(angle), np.sin(angle)], axis=1))
    from sklearn.manifold import TSNE

    perplexity = min(PERPLEXITY, (n - 1) / 3)
    tsne = TSNE(2, perplexity=perplexity, init="pca", max_iter=ITERATIONS, angle=ANGLE, random_state=seed, n_jobs=-1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _in_a_square(tsne.fit_transform(reduced))


def _reduced(unit: NDArray[np.float32]) -> NDArray[np.float32]:
    """The largest principal components."""
    moved = unit - unit.mean(axis=0, keepdims=True)
    keep = min(COMPONENTS, *moved.shape)
    if moved.shape[1] <= keep or not keep:
        return np.asarray(moved, dtype=np.float32)
    _, vectors = np.linalg.eigh(moved.T @ moved)
    found: NDArray[np.float32] = np.ascontiguousarray(moved @ vectors[:, : -keep - 1 : -1])
    return found


def _in_a_square(places: NDArray[np.floating]) -> NDArray[np.float32]:
    if not len(places):
        return np.zeros((0, 2), dtype=np.float32)
    low, high = places.min(axis=0), places.max(axis=0)
    span = max(float((high - low).max(initial=0)), 1e-12)
    found: NDArray[np.float32] = ((places - (low + high) / 2) / span + 0.5).astype(np.float32)
    return found
