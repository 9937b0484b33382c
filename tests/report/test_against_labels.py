import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, precision_score, recall_score

from cdclust.report.against_labels import against_labels, largest_classes, places_of_classes
from cdclust.report.kept import Kept


def kept(labels, names=None):
    return Kept(np.arange(len(labels)), [], None, labels, names, "photos", [])


@pytest.fixture(scope="module")
def mixed():
    """Clusters that are classes 0, 2 and 5 in another order, with one image in ten elsewhere."""
    chance = np.random.default_rng(0)
    labels = chance.choice([0, 2, 5], 300)
    clusters = np.array([2, -9, 0, -9, -9, 1])[labels]
    moved = chance.random(300) < 0.1
    clusters[moved] = chance.integers(0, 3, moved.sum())
    return clusters, labels, np.array([2, 5, 0])[clusters]  # the class each cluster is matched to


def test_the_matrix_is_scikit_learns_once_clusters_are_called_by_their_class(mixed):
    clusters, labels, called = mixed
    found = against_labels(clusters, kept(labels), {})
    assert found.matrix == confusion_matrix(labels, called).tolist()
    assert found.columns == [2, 0, 1]
    assert found.accuracy == pytest.approx(accuracy_score(labels, called))


def test_recall_and_precision_of_each_class_are_scikit_learns(mixed):
    clusters, labels, called = mixed
    scores = against_labels(clusters, kept(labels), {}).scores
    np.testing.assert_allclose([s.recall for s in scores], recall_score(labels, called, average=None), atol=1e-4)
    np.testing.assert_allclose([s.precision for s in scores], precision_score(labels, called, average=None), atol=1e-4)


def test_the_worst_confusion_is_the_largest_cell_off_the_diagonal_with_its_own_images(mixed):
    clusters, labels, called = mixed
    matrix = confusion_matrix(labels, called)
    np.fill_diagonal(matrix, 0)
    worst = against_labels(clusters, kept(labels), {}).confusions[0]
    assert worst.count == matrix.max()
    assert {int(labels[i]) for i in worst.images} == {[0, 2, 5][worst.label]}
    assert {int(clusters[i]) for i in worst.images} == {worst.cluster}


def test_images_without_a_label_or_a_cluster_do_not_count():
    clusters, labels = np.array([0, 0, 1, 1, -1, 1]), np.array([7, 7, 9, -1, 9, 9])
    found = against_labels(clusters, kept(labels), {})
    assert (found.n_labelled, found.matrix) == (4, [[2, 0], [0, 2]])
    assert places_of_classes(clusters, kept(labels)) == [0, 0, 1, -1, 1, 1]


def test_without_any_label_there_is_nothing_to_say():
    assert against_labels(np.array([0, 1]), kept(np.array([-1, -1])), {}) is None


def test_each_cluster_is_told_its_largest_class():
    clusters, labels = np.array([0, 0, 0, 1, 1]), np.array([4, 4, 8, 8, -1])
    assert largest_classes(clusters, labels) == {0: (0, pytest.approx(2 / 3)), 1: (1, 1.0)}


def test_classes_go_by_their_names():
    found = against_labels(np.array([0, 1]), kept(np.array([0, 2]), ["cat", "dog", "owl"]), {})
    assert found.classes == ["cat", "owl"]
