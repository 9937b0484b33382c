import numpy as np
import pytest

from cdclust.data import available_splits


def test_arrays_say_their_splits(tmp_path):
    np.savez(tmp_path / "a.npz", x_train=np.zeros(1), x_test=np.zeros(1), y_train=np.zeros(1))
    assert available_splits(tmp_path / "a.npz") == ["train", "test"]


def test_folders_say_their_splits(tmp_path):
    for name in ("train", "val"):
        (tmp_path / name).mkdir()
    assert available_splits(tmp_path) == ["train", "val"]


def test_a_class_called_train_is_no_split(tmp_path):
    for name in ("train", "car", "plane"):
        (tmp_path / name).mkdir()
    assert available_splits(tmp_path) == []


def test_an_album_called_test_beside_loose_images_is_no_split(tmp_path):
    (tmp_path / "test").mkdir()
    (tmp_path / "a.jpg").touch()
    assert available_splits(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "splits"),
    [
        ("digits", []),
        ("cifar10", ["train", "test"]),
        ("cifar100-20", ["train", "test"]),
        ("stl10", ["train", "test", "unlabeled"]),
        ("imagenet-100", ["train", "val"]),
    ],
)
def test_named_sets_say_their_splits(tmp_path, name, splits):
    assert available_splits(name, tmp_path) == splits


def test_an_array_file_in_place_of_the_official_files_says_what_it_has(tmp_path):
    np.savez(tmp_path / "stl10.npz", x_train=np.zeros(1))
    assert available_splits("stl10", tmp_path) == ["train"]


def test_images_handed_over_and_unreadable_files_have_none(tmp_path):
    (tmp_path / "b.npz").write_bytes(b"no zip")
    assert available_splits(np.zeros((2, 4, 4))) == available_splits(tmp_path / "b.npz") == []
