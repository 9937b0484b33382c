from itertools import pairwise

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances, silhouette_score

from cdclust.errors import UserError
from cdclust.evaluation import unknown_k
from cdclust.evaluation.unknown_k import candidates, decided, distances, like_a_cloud, principal, propose, silhouette


def blobs(k, n=60, dim=24, spread=0.5, seed=0):
    """k round clusters of n points around random places."""
    chance = np.random.default_rng(seed)
    centres = chance.standard_normal((k, dim))
    return (np.repeat(centres, n, axis=0) + spread * chance.standard_normal((k * n, dim))).astype(np.float32)


def test_the_silhouette_is_scikit_learns():
    points = blobs(4)
    labels = KMeans(7, n_init=1, random_state=0).fit_predict(points)
    labels[:1] = 7  # a cluster of one
    near = distances(points)
    np.testing.assert_allclose(near, pairwise_distances(points.astype(np.float64)), atol=1e-3)
    assert silhouette(near, labels) == pytest.approx(silhouette_score(points, labels), abs=1e-4)


def test_prediction_strength_is_the_share_of_pairs_that_stay_together(monkeypatch):
    """Counted pair by pair on clusterings that are given."""
    points = np.arange(12, dtype=np.float32)[:, None]

    class Given:
        labels_ = np.array([0, 0, 0, 1, 1, 1])

        def predict(self, here):
            return np.array([0, 0, 1, 1, 1, 1])

    monkeypatch.setattr(unknown_k, "clustered", lambda *_: Given())
    kept = {0: [], 1: []}
    for i in range(6):
        for j in range(6):
            if i != j and Given.labels_[i] == Given.labels_[j]:
                kept[Given.labels_[i]].append(Given().predict(None)[i] == Given().predict(None)[j])
    expected = np.mean([np.mean(pairs) for pairs in kept.values()])
    assert unknown_k.strength(points, 2, np.random.default_rng(0)) == pytest.approx(expected)


@pytest.mark.parametrize("k", [4, 9])
def test_clusters_that_stand_apart_are_counted_and_sure(k):
    found = propose(blobs(k))
    assert found.sure, found.why
    assert found.k == k


def test_one_cloud_is_never_sure():
    cloud = np.random.default_rng(0).standard_normal((400, 24)).astype(np.float32)
    assert not propose(cloud).sure


def test_the_proposal_follows_from_the_seed_alone():
    points = blobs(5)
    assert propose(points, seed=3) == propose(points, seed=3)


def test_a_large_set_is_judged_by_a_sample(monkeypatch):
    monkeypatch.setattr(unknown_k, "SAMPLE", 200)
    seen = []
    real = unknown_k.principal
    monkeypatch.setattr(unknown_k, "principal", lambda features: seen.append(len(features)) or real(features))
    assert propose(blobs(4, n=300)).k == 4
    assert seen == [200]


def test_a_cloud_has_the_shape_of_the_points_and_no_clusters():
    axes = principal(blobs(6, n=400))
    cloud = like_a_cloud(axes, np.random.default_rng(0))
    np.testing.assert_allclose(cloud.std(axis=0), axes.std(axis=0), rtol=0.1)
    assert abs(np.corrcoef(cloud[:, 0], cloud[:, 1])[0, 1]) < 0.1
    kurtosis = ((cloud / cloud.std(axis=0)) ** 4).mean()
    assert kurtosis == pytest.approx(3, abs=0.3)  # of a Gaussian; clusters have less


def test_small_numbers_are_all_tried_and_large_ones_in_steps():
    found = candidates(4000)
    assert found[:9] == list(range(2, 11))
    assert found[-1] <= 120
    assert all(b <= round(1.12 * a) + 1 for a, b in pairwise(found))
    assert candidates(100)[-1] <= 12
    with pytest.raises(UserError, match="too few"):
        candidates(20)


def test_what_makes_a_proposal_doubtful_is_said():
    numbers = [2, 3, 4, 5, 6, 7, 8]
    peak = [0.1, 0.2, 0.5, 0.2, 0.1, 0.1, 0.1]
    assert decided(numbers, peak, peak).sure
    falling = [0.9, 0.5, 0.4, 0.3, 0.2, 0.1, 0.1]
    assert "the least that was tried" in decided(numbers, falling, falling).why
    late = [0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.5]
    split = decided(numbers, late, peak)
    assert (split.k, split.sure) == (4, False)
    assert "furthest apart with 8" in split.why
    two = [0.1, 0.2, 0.48, 0.2, 0.1, 0.5, 0.1]
    assert (decided(numbers, two, two).k, decided(numbers, two, two).why) == (7, "4 would do nearly as well")
    less = [0.1, 0.2, 0.3, 0.2, 0.1, 0.5, 0.1]
    assert decided(numbers, less, less).sure
    for nothing in ([0.0] * 7, [0.001 * value for value in peak]):
        assert "one cloud" in decided(numbers, nothing, peak).why
        assert "one cloud" in decided(numbers, peak, nothing).why


def test_smoothing_keeps_what_is_flat_and_only_reaches_the_nearest_numbers():
    numbers = candidates(4000)
    np.testing.assert_allclose(unknown_k.smooth(numbers, [0.3] * len(numbers)), 0.3)
    single = [float(k == 4) for k in numbers]
    assert unknown_k.smooth(numbers, single)[2] > 0.9
    large = unknown_k.smooth(numbers, [float(k == numbers[-9]) for k in numbers])
    assert max(large) < 0.6
    assert sum(value > 0.01 for value in large) <= 5
