import numpy as np
import pytest

from cdclust.report import sample


@pytest.fixture(scope="module")
def many():
    chance = np.random.default_rng(0)
    clusters = chance.integers(-1, 8, 5000)
    return clusters, chance.random(5000), chance.random(5000).astype(np.float32)


def test_all_readable_images_are_shown_where_they_fit(many):
    clusters, p, typical = many
    np.testing.assert_array_equal(sample.choose(clusters, p, typical, most=5000), np.flatnonzero(clusters >= 0))


def test_beyond_the_limit_as_many_are_shown_as_the_limit_says(many):
    rows = sample.choose(*many, most=1000)
    assert len(rows) == 1000
    assert (np.diff(rows) > 0).all()
    assert (many[0][rows] >= 0).all()


@pytest.mark.parametrize("which", ["typical", "least certain"])
def test_the_gallery_of_every_cluster_is_among_those_shown(many, which):
    clusters, p, typical = many
    rows = set(sample.choose(clusters, p, typical, most=1000).tolist())
    order = np.argsort(-typical) if which == "typical" else np.argsort(p)
    for k in range(8):
        assert rows.issuperset([i for i in order.tolist() if clusters[i] == k][: sample.IN_A_GALLERY])


def test_with_very_many_clusters_half_of_those_shown_are_still_random():
    clusters = np.arange(40_000) % 1000
    p, typical = np.linspace(0, 1, 40_000), np.zeros(40_000, dtype=np.float32)
    assert len(sample.choose_galleries(clusters, p, typical, most=8000)) <= 4000
    assert len(sample.choose(clusters, p, typical, most=8000)) == 8000


def test_a_choice_is_the_same_every_time(many):
    np.testing.assert_array_equal(sample.choose(*many, most=500), sample.choose(*many, most=500))
