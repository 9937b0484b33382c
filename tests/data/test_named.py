import os
import pickle
import urllib.error
import urllib.request

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from cdclust.data import DATA_SETS, data_root, load_source
from cdclust.data import official as official_module
from cdclust.errors import UserError

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (12, 3, 32, 32), dtype=np.uint8)  # (N, C, H, W), as CIFAR's files have them


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*_, **__):
        raise urllib.error.URLError("no network in tests")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)


def records(labels, pixels):
    return np.concatenate([np.array(labels, np.uint8), pixels.reshape(len(pixels), -1)], axis=1).tobytes()


@pytest.fixture
def cifar10(tmp_path):
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    for i in range(5):
        batch = slice(2 * i, 2 * i + 2)
        (folder / f"data_batch_{i + 1}.bin").write_bytes(records([[i], [i + 5]], PIXELS[batch]))
    (folder / "test_batch.bin").write_bytes(records([[3], [4]], PIXELS[10:]))
    (folder / "batches.meta.txt").write_text("\n".join(f"class{i}" for i in range(10)) + "\n\n")
    return tmp_path


@pytest.fixture
def cifar100(tmp_path):
    folder = tmp_path / "cifar-100-binary"
    folder.mkdir()
    coarse_and_fine = [[i % 20, 99 - i] for i in range(10)]
    (folder / "train.bin").write_bytes(records(coarse_and_fine, PIXELS[:10]))
    (folder / "test.bin").write_bytes(records([[19, 0], [7, 1]], PIXELS[10:]))
    (folder / "coarse_label_names.txt").write_text("\n".join(f"coarse{i}" for i in range(20)))
    (folder / "fine_label_names.txt").write_text("\n".join(f"fine{i}" for i in range(100)))
    return tmp_path


def test_digits_are_spread_over_all_greys():
    images = load_source("digits")
    source = load_digits()
    assert images.images.shape == (1797, 1, 8, 8)
    np.testing.assert_allclose(images.images[:, 0].numpy() / 255, source.images / 16, atol=0.5 / 255)
    assert images.labels.tolist() == source.target.tolist()
    assert load_source("digits", size=16).images.shape == (1797, 1, 16, 16)
    with pytest.raises(UserError, match="digits has no splits"):
        load_source("digits", split="train")


def test_cifar10_binary(cifar10):
    train = load_source("cifar10", root=cifar10)
    np.testing.assert_array_equal(train.images.numpy(), PIXELS[:10])
    assert train.labels.tolist() == [0, 5, 1, 6, 2, 7, 3, 8, 4, 9]
    assert train.class_names == [f"class{i}" for i in range(10)]
    test = load_source("cifar10", root=cifar10, split="test")
    np.testing.assert_array_equal(test.images.numpy(), PIXELS[10:])
    assert load_source("cifar10", root=cifar10, split="all").n_total == 12
    with pytest.raises(UserError, match="no 'unlabeled'; it has train, test"):
        load_source("cifar10", root=cifar10, split="train+unlabeled")


def test_cifar100_has_its_own_fine_and_coarse_labels(cifar100):
    fine = load_source("cifar100", root=cifar100)
    coarse = load_source("cifar100-20", root=cifar100)
    np.testing.assert_array_equal(fine.images.numpy(), PIXELS[:10])
    assert fine.labels.tolist() == [99 - i for i in range(10)]
    assert coarse.labels.tolist() == list(range(10))
    assert (len(fine.class_names), len(coarse.class_names)) == (100, 20)
    assert load_source("cifar100-20", root=cifar100, split="test").labels.tolist() == [19, 7]


def test_stl10_columns_come_first_and_labels_from_one(tmp_path):
    folder = tmp_path / "stl10_binary"
    folder.mkdir()
    images = {s: RNG.integers(0, 256, (n, 3, 96, 96), dtype=np.uint8) for s, n in (("train", 3), ("test", 2))}
    images["unlabeled"] = images["train"][:2] // 2
    for split, pixels in images.items():
        (folder / f"{split}_X.bin").write_bytes(pixels.transpose(0, 1, 3, 2).tobytes())
    (folder / "train_y.bin").write_bytes(bytes([1, 10, 4]))
    (folder / "test_y.bin").write_bytes(bytes([2, 3]))
    (folder / "class_names.txt").write_text("airplane\nbird\n")
    train = load_source("stl10", root=tmp_path)
    np.testing.assert_array_equal(train.images.numpy(), images["train"])
    assert train.labels.tolist() == [0, 9, 3]
    both = load_source("stl10", root=tmp_path, split="train+unlabeled")
    assert both.labels.tolist() == [0, 9, 3, -1, -1]
    assert load_source("stl10", root=tmp_path, split="unlabeled").labels is None
    assert load_source("stl10", root=tmp_path, split="test").labels.tolist() == [1, 2]


def write_pickled(folder, protocol):
    folder.mkdir()
    data = PIXELS.reshape(12, -1)
    for name, rows in (("train", slice(0, 10)), ("test", slice(10, 12))):
        n = len(data[rows])
        content = {
            "data": data[rows],
            "fine_labels": list(range(n)),
            "coarse_labels": [19 - i for i in range(n)],
        }
        (folder / name).write_bytes(pickle.dumps(content, protocol))
    (folder / "meta").write_bytes(pickle.dumps({"coarse_label_names": ["a", "b"]}, protocol))


@pytest.mark.parametrize("protocol", [2, 4])
def test_the_pickled_version_is_read_without_running_it(tmp_path, protocol):
    write_pickled(tmp_path / "cifar-100-python", protocol)
    images = load_source("cifar100-20", root=tmp_path)
    np.testing.assert_array_equal(images.images.numpy(), PIXELS[:10])
    assert images.labels.tolist() == list(range(19, 9, -1))
    assert images.class_names == ["a", "b"]


class Evil:
    def __reduce__(self):
        return os.mkdir, ("executed",)


def test_a_pickle_that_wants_to_run_something_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_pickled(tmp_path / "cifar-100-python", 4)
    (tmp_path / "cifar-100-python" / "train").write_bytes(pickle.dumps({"data": Evil()}))
    with pytest.raises(UserError, match="cannot be read safely: it asks for"):
        load_source("cifar100", root=tmp_path)
    assert not (tmp_path / "executed").exists()


def test_npz_in_the_root(tmp_path):
    x = PIXELS.transpose(0, 2, 3, 1)
    labels = {"y_train": np.arange(10), "y_coarse_train": np.arange(10) // 5}
    np.savez(tmp_path / "cifar100.npz", x_train=x[:10], coarse_names=["p", "q"], **labels)
    fine, coarse = (load_source(n, root=tmp_path) for n in ("cifar100", "cifar100-20"))
    np.testing.assert_array_equal(fine.images.numpy(), PIXELS[:10])
    assert fine.labels.tolist() == list(range(10))
    assert coarse.labels.tolist() == [0] * 5 + [1] * 5
    assert coarse.class_names == ["p", "q"]
    with pytest.raises(UserError, match="no 'test'; it has train"):
        load_source("cifar100", root=tmp_path, split="test")
    np.savez(tmp_path / "cifar100.npz", x_train=x[:10], y_train=np.arange(10))
    with pytest.raises(UserError, match="no coarse labels"):
        load_source("cifar100-20", root=tmp_path)


def test_the_root_is_the_argument_then_the_variable_then_the_cache(monkeypatch, tmp_path, cifar10):
    monkeypatch.setenv("CDCLUST_DATA", str(cifar10))
    assert load_source("cifar10").n_total == 10
    assert data_root(tmp_path / "x") == tmp_path / "x"
    monkeypatch.delenv("CDCLUST_DATA")
    assert data_root().parts[-2:] == (".cache", "cdclust")


@pytest.mark.parametrize("name", ["cifar10", "cifar100-20", "stl10"])
def test_without_files_and_network_one_line_says_what_to_put_where(tmp_path, name):
    with pytest.raises(UserError, match=r"no network in tests.*tar\.gz.*npz there.*CDCLUST_DATA") as error:
        load_source(name, root=tmp_path)
    assert str(tmp_path) in str(error.value)
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


def test_an_archive_in_the_root_is_checked_and_unpacked(tmp_path, cifar10, monkeypatch):
    import hashlib
    import shutil
    from dataclasses import replace

    root = tmp_path / "root"
    root.mkdir()
    shutil.make_archive(str(root / "cifar-10-binary"), "gztar", cifar10, "cifar-10-batches-bin")
    with pytest.raises(UserError, match="cifar10 is not under"):
        load_source("cifar10", root=root)
    if not (archive := root / "cifar-10-binary.tar.gz").is_file():
        shutil.make_archive(str(root / "cifar-10-binary"), "gztar", cifar10, "cifar-10-batches-bin")
    digest = hashlib.md5(archive.read_bytes()).hexdigest()
    known = replace(official_module.OFFICIAL["cifar10"], md5=digest)
    monkeypatch.setitem(official_module.OFFICIAL, "cifar10", known)
    np.testing.assert_array_equal(load_source("cifar10", root=root).images.numpy(), PIXELS[:10])


def test_a_damaged_official_file_is_said(cifar10):
    path = cifar10 / "cifar-10-batches-bin" / "data_batch_3.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UserError, match=r"data_batch_3.bin is damaged"):
        load_source("cifar10", root=cifar10)
    path.unlink()
    with pytest.raises(UserError, match=r"data_batch_3.bin is missing"):
        load_source("cifar10", root=cifar10)


@pytest.fixture
def imagenet(tmp_path):
    for split in ("train", "val"):
        for i, wnid in enumerate(["n01", "n02", "n03"]):
            folder = tmp_path / "imagenet" / split / wnid
            folder.mkdir(parents=True)
            Image.new("RGB", (20, 16), (50 * i, 0, 0)).save(folder / f"{wnid}_1.JPEG")
    return tmp_path


def test_imagenet_is_folders_with_labels(imagenet):
    train = load_source("imagenet", root=imagenet, size=16)
    assert train.class_names == ["n01", "n02", "n03"]
    assert train.labels.tolist() == [0, 1, 2]
    assert (train.name, train.split) == ("imagenet", "train")
    assert load_source("imagenet", root=imagenet, size=16, split="test").split == "val"
    assert load_source("imagenet", root=imagenet, size=16, split="all").n_total == 6


def test_a_part_of_imagenet_is_a_list_of_classes(imagenet):
    with pytest.raises(UserError, match=r"imagenet-50 is not under .* imagenet-50.txt"):
        load_source("imagenet-50", root=imagenet, size=16)
    (imagenet / "imagenet-50.txt").write_text("n03 some words\nn01\n")
    part = load_source("imagenet-50", root=imagenet, size=16)
    assert part.class_names == ["n01", "n03"]
    assert part.images[:, 0, 0, 0].tolist() == [0, 100]
    (imagenet / "mine.txt").write_text("n02\n")
    assert load_source(f"imagenet:{imagenet / 'mine.txt'}", root=imagenet, size=16).class_names == ["n02"]
    (imagenet / "mine.txt").write_text("n02\nn77\n")
    with pytest.raises(UserError, match=r"1 of the 2 classes .*n77"):
        load_source(f"imagenet:{imagenet / 'mine.txt'}", root=imagenet, size=16)


@pytest.mark.parametrize(
    ("spec", "settings", "words"),
    [
        ("cifra10", {}, r"neither a folder .* \(did you mean cifar10\?\)"),
        ("CIFAR-10", {}, "did you mean cifar10"),
        ("no/such/folder", {}, "neither a folder or file"),
        ("missing.npz", {}, "neither a folder or file"),
        ("hf:./beans", {}, "there is no folder ./beans"),
        ("digits", {"labels": "folders"}, "its own labels"),
        ("digits", {"size": 0}, "size: 0 is too small"),
        ("digits:list.txt", {}, "only an ImageNet"),
        ("imagenet", {}, "imagenet is not under"),
    ],
)
def test_a_wrong_source_is_refused_in_one_line(tmp_path, spec, settings, words):
    with pytest.raises(UserError, match=words) as error:
        load_source(spec, root=tmp_path, **settings)
    assert "\n" not in str(error.value)


def test_the_names_are_those_of_the_commands():
    assert {"digits", "cifar10", "cifar100-20", "stl10", "imagenet", "imagenet-100"} <= set(DATA_SETS)


def test_a_folder_called_like_a_data_set_is_pointed_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits").mkdir()
    assert "./digits" in load_source("digits").notes[0]
    with pytest.raises(UserError, match="no image files"):
        load_source("./digits")
