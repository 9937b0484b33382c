import importlib.util

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from cdclust.evaluation import baselines
from cdclust.evaluation.baselines import BASELINES
from cdclust.evaluation.kmeans import STARTS, kmeans, spherical_kmeans, sums_of, unit_rows

K, D = 4, 12


def quiet(done: int, total: int) -> None:
    pass


def blobs(n: int = 200, spread: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """Directions of four classes with noise, of length 1."""
    chance = np.random.default_rng(0)
    labels = np.arange(n) % K
    rows = np.eye(D)[labels] + spread * chance.normal(size=(n, D))
    return unit_rows(rows.astype(np.float32)), labels


@pytest.mark.parametrize("method", BASELINES)
def test_every_method_finds_groups_that_lie_apart(method):
    rows, labels = blobs()
    found = BASELINES[method](rows, K, 0, quiet)
    assert adjusted_rand_score(labels, found.clusters) == 1


@pytest.mark.parametrize("method", BASELINES)
def test_every_method_is_the_same_from_the_same_seed(method):
    rows, _ = blobs(spread=0.5)
    first, second = (BASELINES[method](rows, K, 3, quiet).clusters for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("method", ["agglomerative", "spectral", "hdbscan"])
def test_methods_of_quadratic_cost_run_on_a_sample_and_say_so(monkeypatch, method):
    monkeypatch.setattr(baselines, "SAMPLE", 80)
    rows, labels = blobs()
    found = BASELINES[method](rows, K, 0, quiet)
    assert adjusted_rand_score(labels, found.clusters) == 1
    assert "sample of 80 of 200" in found.remarks[0]


def test_k_means_is_the_best_of_ten_starts_by_inertia():
    rows, _ = blobs(spread=0.6)
    chosen = kmeans(rows, K, 0, quiet)
    ours = sum(((rows[chosen == c] - rows[chosen == c].mean(axis=0)) ** 2).sum() for c in range(K))
    single = [KMeans(K, n_init=1, random_state=seed).fit(rows).inertia_ for seed in range(20)]
    assert ours <= np.median(single)


def test_spherical_k_means_ends_where_no_image_is_nearer_to_another_centroid():
    rows, _ = blobs(spread=0.6)
    chosen = spherical_kmeans(rows, K, 0, quiet)
    centres = np.stack([rows[chosen == c].sum(axis=0) for c in range(K)])
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    np.testing.assert_array_equal(chosen, (rows @ centres.T).argmax(axis=1))


def test_spherical_k_means_does_not_see_length():
    rows, _ = blobs(spread=0.6)
    longer = unit_rows(rows * np.random.default_rng(1).uniform(1, 9, (len(rows), 1)).astype(np.float32))
    assert adjusted_rand_score(spherical_kmeans(rows, K, 0, quiet), spherical_kmeans(longer, K, 0, quiet)) == 1


def test_no_cluster_stays_empty_where_images_repeat():
    rows = unit_rows(np.repeat(np.eye(6, dtype=np.float32), 5, axis=0))
    assert len(np.unique(spherical_kmeans(rows, 6, 0, quiet))) == 6


def test_sums_are_those_of_each_cluster():
    rows, clusters = np.random.default_rng(0).normal(size=(50, 300)).astype(np.float32), np.arange(50) % 3
    expected = np.stack([rows[clusters == c].sum(axis=0) for c in range(3)] + [np.zeros(300)])
    np.testing.assert_allclose(sums_of(rows, clusters, 4), expected, atol=1e-4)


def test_progress_is_told_start_by_start():
    heard = []
    kmeans(blobs()[0], K, 0, lambda done, total: heard.append((done, total)))
    assert heard == [(number + 1, STARTS) for number in range(STARTS)]


def test_what_hdbscan_calls_noise_belongs_to_the_nearest_group_and_is_counted():
    rows, labels = blobs()
    alone = 5 * np.eye(D, dtype=np.float32)[[8, 9, 10]]
    alone[:, 0] = 3
    found = BASELINES["hdbscan"](np.concatenate([rows, alone]), K, 0, quiet)
    assert adjusted_rand_score([*labels, 0, 0, 0], found.clusters) == 1
    assert "found 4 clusters by itself; 1% were noise" in found.remarks[0]


@pytest.mark.skipif(importlib.util.find_spec("faiss") is None, reason="faiss is not installed")
@pytest.mark.parametrize("method", ["kmeans", "spherical-kmeans"])
def test_faiss_takes_over_k_means_of_many_images_and_is_named(monkeypatch, method):
    monkeypatch.setattr(baselines, "FAISS_FROM", 100)
    rows, labels = blobs()
    found = BASELINES[method](rows, K, 0, quiet)
    assert adjusted_rand_score(labels, found.clusters) == 1
    assert "faiss" in found.remarks[0]
