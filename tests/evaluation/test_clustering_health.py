import numpy as np
import pytest

from cdclust.evaluation.health import health, looks_collapsed


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
