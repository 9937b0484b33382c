import numpy as np
import pytest

from cdclust.evaluation.health import health, looks_collapsed, sizes_disagree


def test_even_and_sure_clusters_look_healthy():
    h = health(np.arange(100) % 10, np.full(100, 0.995), 10)
    assert h.sizes.tolist() == [10] * 10
    assert h.size_entropy == pytest.approx(1)
    assert (h.n_nonempty, h.sure) == (10, 1)
    assert h.confidence == pytest.approx(0.995)
    assert looks_collapsed(h) is None


def test_the_entropy_of_sizes_is_that_of_a_hand_count():
    h = health([0, 0, 0, 1], [0.5] * 4, 4)
    assert h.size_entropy == pytest.approx(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)) / np.log(4))


@pytest.mark.parametrize(
    ("clusters", "probability", "words"),
    [
        (np.full(100, 3), 1.0, "All 100 images are in cluster 3"),
        (np.arange(100) % 3, 0.9, "Only 3 of 10 clusters"),
        (np.r_[np.zeros(950, int), np.arange(50) % 10], 0.9, "Cluster 0 holds 96%"),
        (np.arange(100) % 10, 0.1001, "as good as 1/K"),
    ],
)
def test_a_collapse_is_said_in_words(clusters, probability, words):
    assert words in looks_collapsed(health(clusters, np.full(len(clusters), probability), 10))


def test_few_images_of_many_clusters_are_no_collapse():
    assert looks_collapsed(health([5, 70, 31], [0.9] * 3, 100)) is None


def test_unreadable_images_are_left_out():
    h = health([0, 1, -1], [0.9, 0.7, 0.0], 2)
    assert (h.n, h.confidence) == (2, pytest.approx(0.8))


def sized(*sizes: int):
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    return health(clusters, np.ones(len(clusters)), len(sizes))


def test_uneven_clusters_are_said_with_how_many_images_are_too_many():
    said = sizes_disagree(sized(600, 200, 200, 200), None)
    assert "from 200 to 600" in said
    assert "25%" in said
    assert "sizes=soft" in said


def test_what_even_groups_give_by_chance_is_not_said():
    chance = np.random.default_rng(0)
    for n, k in ((40, 10), (400, 10), (4000, 37)):
        sizes = np.bincount(chance.integers(0, k, n), minlength=k)
        assert sizes_disagree(sized(*sizes), None) is None


def test_given_shares_are_compared_in_order_of_size():
    assert sizes_disagree(sized(200, 600, 200), [3, 1, 1]) is None
    assert "objective.sizes" in sizes_disagree(sized(200, 600, 200), [1, 1, 1])
