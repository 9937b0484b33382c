"""k-means on features: how the plain pretext methods are clustered, and what everything is compared with."""

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans


def unit_rows(features: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each row divided by its length."""
    length = np.linalg.norm(features, axis=1, keepdims=True)
    rows: NDArray[np.float32] = features / np.maximum(length, 1e-12)
    return rows


def centroids(features: NDArray[np.float32], n_clusters: int, seed: int) -> NDArray[np.float32]:
    """The centroids (K, D) of features of unit length, the best of 10 starts by inertia."""
    fitted = KMeans(n_clusters, n_init=10, random_state=seed).fit(unit_rows(features))
    found: NDArray[np.float32] = fitted.cluster_centers_.astype(np.float32)
    return found
