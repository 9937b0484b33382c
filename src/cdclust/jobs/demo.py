"""`cdclust demo`: what stands beside CDC in its table, from the same images in the same run."""

import time

from sklearn.cluster import AgglomerativeClustering, KMeans, SpectralClustering

from cdclust import recipe as recipes
from cdclust.data import load_source
from cdclust.evaluation.metrics import scores
from cdclust.recipe import Recipe


def load_digits_recipe(seed: int) -> Recipe:
    """The demo's settings."""
    return recipes.load("digits").changed({"seed": seed})


def baselines(seed: int) -> dict[str, dict[str, float]]:
    """k-means, Ward and spectral clustering of the raw pixels: ACC, NMI, ARI and seconds of each."""
    digits = load_source("digits")
    assert digits.labels is not None
    pixels = digits.images.flatten(1).numpy() / 255
    methods = {
        "k-means": KMeans(10, n_init=10, random_state=seed),
        "Ward": AgglomerativeClustering(10),
        "spectral": SpectralClustering(10, affinity="nearest_neighbors", assign_labels="kmeans", random_state=seed),
    }
    rows = {}
    for name, method in methods.items():
        start = time.perf_counter()
        clusters = method.fit_predict(pixels)
        rows[name] = {**scores(clusters, digits.labels), "seconds": time.perf_counter() - start}
    return rows
