import time

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from cdclust.errors import UserError
from cdclust.evaluation.metrics import (
    accuracy,
    confusion,
    contingency,
    match,
    per_class,
    per_cluster,
    purity,
    scores,
)
from oracles.clustering import brute_force_accuracy, brute_force_rand


def random_labelings(seed: int, n_clusters: int, n_classes: int, n: int = 40):
    rng = np.random.default_rng(seed)
    return rng.integers(0, n_clusters, n), rng.integers(0, n_classes, n)


@pytest.mark.parametrize(("n_clusters", "n_classes"), [(2, 5), (5, 2), (4, 4), (6, 3), (3, 6), (1, 4), (4, 1)])
def test_accuracy_is_the_best_matching_whichever_side_has_more(n_clusters, n_classes):
    for seed in range(20):
        clusters, labels = random_labelings(seed, n_clusters, n_classes)
        expected = brute_force_accuracy(clusters.tolist(), labels.tolist())
        assert scores(clusters, labels)["acc"] == pytest.approx(expected, abs=1e-12)


DEGENERATE = {
    "all in one cluster": ([0] * 12, list(range(4)) * 3),
    "one class": (list(range(4)) * 3, [7] * 12),
    "one cluster and one class": ([3] * 12, [5] * 12),
    "singletons": (list(range(12)), list(range(4)) * 3),
    "singletons on both sides": (list(range(12)), list(range(12))),
    "one image": ([0], [0]),
    "equal up to names": ([2, 2, 0, 0, 1], [0, 0, 1, 1, 2]),
}


@pytest.mark.parametrize("case", DEGENERATE)
def test_nmi_and_ari_agree_with_scikit_learn_on_degenerate_labelings(case):
    clusters, labels = DEGENERATE[case]
    got = scores(clusters, labels)
    assert got["nmi"] == pytest.approx(normalized_mutual_info_score(labels, clusters), abs=1e-12)
    assert got["ari"] == pytest.approx(adjusted_rand_score(labels, clusters), abs=1e-12)


def test_nmi_and_ari_agree_with_scikit_learn_on_random_labelings():
    rng = np.random.default_rng(0)
    for seed in range(200):
        clusters, labels = random_labelings(seed, *rng.integers(1, 30, 2), n=int(rng.integers(1, 400)))
        got = scores(clusters, labels)
        assert got["nmi"] == pytest.approx(normalized_mutual_info_score(labels, clusters), abs=1e-10)
        assert got["ari"] == pytest.approx(adjusted_rand_score(labels, clusters), abs=1e-10)


def test_ari_counts_pairs_of_images():
    for seed in range(10):
        clusters, labels = random_labelings(seed, 4, 3, n=25)
        expected = brute_force_rand(clusters.tolist(), labels.tolist())
        assert scores(clusters, labels)["ari"] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    "rename",
    [
        lambda x: x - 3,
        lambda x: x * 10**12 - 5,
        lambda x: x.astype(np.uint8) * 50,
        lambda x: x.astype(np.int8) * 80 - 100,
        lambda x: np.array(["dog", "cat", "Ω", "a b", ""])[x],
        lambda x: np.array(["dog", 3, None, 2.5, ("a",)], dtype=object)[x],
        lambda x: x / 7,
        lambda x: 2**63 + x.astype(np.uint64),
    ],
    ids=["negative", "huge", "uint8", "int8", "text", "mixed", "floats", "uint64"],
)
def test_any_label_values_give_the_same_scores(rename):
    clusters, labels = random_labelings(1, 5, 4, n=200)
    clusters = np.where(np.arange(200) % 2, labels, clusters)
    expected = scores(clusters, labels)
    assert scores(clusters, rename(labels)) == pytest.approx(expected)
    assert scores(rename(clusters), labels) == pytest.approx(expected)


def test_empty_clusters_change_nothing():
    labels = np.array([0, 0, 1, 1, 2, 2])
    assert scores([0, 0, 5, 5, 99, 5], labels) == pytest.approx(scores([0, 0, 1, 1, 2, 1], labels))


def test_purity_maps_many_clusters_to_one_class_and_accuracy_does_not():
    clusters, labels = [0, 0, 1, 1, 2, 2], ["a", "a", "a", "a", "b", "b"]
    c = contingency(clusters, labels)
    assert purity(c) == 1
    assert accuracy(c) == pytest.approx(4 / 6)


def test_unknown_labels_and_unreadable_images_are_left_out_when_told():
    clusters, labels = [0, 0, 1, 1, -1, 0], [5, 5, 6, 6, 6, -1]
    assert scores(clusters, labels, ignore_unknown=True)["acc"] == 1
    assert scores(clusters, labels)["acc"] < 1


def test_no_labelled_image_is_an_error_in_words():
    with pytest.raises(UserError, match="no image has both"):
        scores([0, 1], [-1, -1], ignore_unknown=True)
    with pytest.raises(ValueError, match="3 clusters for 2 labels"):
        scores([0, 1, 2], [0, 1])


def test_tables_say_size_match_share_recall_and_precision():
    clusters = [0] * 4 + [1] * 3 + [2] * 2
    labels = ["cat", "cat", "cat", "dog", "dog", "dog", "cat", "cat", "cat"]
    c = contingency(clusters, labels)
    got = {r.cluster: (r.size, r.matched, r.share, r.purity) for r in per_cluster(c)}
    assert got == {
        0: (4, "cat", 3 / 4, 3 / 4),
        1: (3, "dog", pytest.approx(2 / 3), pytest.approx(2 / 3)),
        2: (2, None, 0, 1),
    }
    by_class = {r.label: (r.size, r.matched, r.recall, r.precision) for r in per_class(c)}
    assert by_class == {"cat": (6, 0, 0.5, 0.75), "dog": (3, 1, pytest.approx(2 / 3), pytest.approx(2 / 3))}


@pytest.mark.parametrize(("n_clusters", "n_classes"), [(3, 5), (5, 3), (4, 4)])
def test_the_diagonal_of_the_confusion_matrix_is_the_accuracy(n_clusters, n_classes):
    clusters, labels = random_labelings(2, n_clusters, n_classes, n=100)
    c = contingency(clusters, labels)
    matrix, columns = confusion(c)
    assert matrix.shape == (n_classes, max(n_classes, n_clusters))
    assert np.trace(matrix) / 100 == pytest.approx(brute_force_accuracy(clusters.tolist(), labels.tolist()))
    assert matrix.sum(axis=1).tolist() == np.bincount(labels).tolist()
    for j, cluster in enumerate(columns):
        assert matrix[:, j].tolist() == np.bincount(labels[clusters == cluster], minlength=n_classes).tolist()


def test_a_pair_without_a_common_image_is_no_match():
    # The best matching gives class b to cluster 1, which has none of it.
    c = contingency([0, 0, 0, 0, 1], ["a", "a", "a", "b", "a"])
    assert match(c).tolist() == [0, -1]
    assert accuracy(c) == pytest.approx(3 / 5)
    assert [r.matched for r in per_class(c)] == [0, None]


def test_unmatched_clusters_follow_the_diagonal_largest_first():
    clusters = [4] * 5 + [1] * 2 + [2] * 3 + [3] * 1
    matrix, columns = confusion(contingency(clusters, ["a"] * 11))
    assert columns == [4, 2, 1, 3]
    assert matrix.tolist() == [[5, 3, 2, 1]]


def test_imagenet_size_takes_less_than_a_second():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 1000, 1_281_167)
    clusters = np.where(rng.random(len(labels)) < 0.5, (labels * 7) % 1000, rng.integers(0, 1000, len(labels)))
    times = []
    for _ in range(3):
        start = time.process_time()
        c = contingency(clusters, labels)
        matched = match(c)
        assert 0.5 < scores(clusters, labels)["acc"] < 0.51
        assert len(per_cluster(c, matched)) == len(per_class(c, matched)) == 1000
        times.append(time.process_time() - start)
    assert min(times) < 1
