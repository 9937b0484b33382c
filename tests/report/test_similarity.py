import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from cdclust.report import similarity


@pytest.fixture(scope="module")
def features():
    return np.random.default_rng(0).normal(2, 1, (150, 12)).astype(np.float32)


def unit(features):
    moved = features - features.mean(axis=0)
    return moved / np.linalg.norm(moved, axis=1, keepdims=True)


def test_directions_are_centred_and_of_length_one(features):
    np.testing.assert_allclose(similarity.directions(features, features.mean(axis=0)), unit(features), atol=1e-6)


def test_an_image_whose_features_are_no_numbers_has_no_direction(features):
    broken = features.copy()
    broken[3] = np.nan
    found = similarity.directions(broken, features.mean(axis=0))
    assert not found[3].any()
    assert np.isfinite(found).all()


@pytest.mark.parametrize("block", [7, 4096])
def test_nearest_are_those_of_scikit_learn(features, monkeypatch, block):
    monkeypatch.setattr(similarity, "BLOCK", block)
    distances, expected = NearestNeighbors(n_neighbors=6, metric="cosine").fit(unit(features)).kneighbors()
    places, alike = similarity.nearest(unit(features), 6)
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_allclose(alike, 1 - distances, atol=1e-5)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_nearest_of_hardly_any_images(n):
    places, _ = similarity.nearest(np.eye(3, dtype=np.float32)[:n], 6)
    assert places.shape == (n, max(0, min(6, n - 1)))


@pytest.mark.parametrize("block", [7, 4096])
def test_centres_are_the_mean_directions_of_their_clusters(features, monkeypatch, block):
    monkeypatch.setattr(similarity, "BLOCK", block)
    clusters = np.arange(150) % 5
    clusters[::11] = -1
    of = similarity.centres(features, clusters, 6)
    mean = features[clusters >= 0].mean(axis=0)
    moved = features - mean
    moved /= np.linalg.norm(moved, axis=1, keepdims=True)
    for k in range(5):
        expected = moved[clusters == k].sum(axis=0)
        np.testing.assert_allclose(of.directions[k], expected / np.linalg.norm(expected), atol=1e-5)
    assert not of.directions[5].any()


def test_the_most_typical_image_is_the_one_nearest_the_middle_of_its_cluster(features):
    clusters = np.arange(150) % 5
    found = similarity.typicality(features, clusters, similarity.centres(features, clusters, 5))
    for k in range(5):
        members = np.flatnonzero(clusters == k)
        middle = unit(features)[members].sum(axis=0)
        assert members[found[members].argmax()] == members[(unit(features)[members] @ middle).argmax()]


def test_an_image_far_from_all_others_is_the_first_outlier():
    crowd = np.random.default_rng(0).normal(0, 0.1, (40, 5)) + np.eye(5)[0] * 5
    odd = np.array([[-5.0, 0, 0, 0, 0]])
    features = np.concatenate([crowd[:20], odd, crowd[20:]]).astype(np.float32)
    directions = features / np.linalg.norm(features, axis=1, keepdims=True)
    assert similarity.outliers(similarity.nearest(directions, 6)[1], 3)[0] == 20


def test_mutual_pairs_are_each_others_nearest_most_alike_first(features):
    directions = unit(features)
    alike = directions @ directions.T
    np.fill_diagonal(alike, -2)
    expected = {(i, j) for i in range(150) for j in range(i) if alike[i].argmax() == j and alike[j].argmax() == i}
    found = similarity.mutual(*similarity.nearest(directions, 6))
    assert {(j, i) for i, j, _ in found} == expected
    assert [how for *_, how in found] == sorted((how for *_, how in found), reverse=True)
