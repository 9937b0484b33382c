"""Torchvision's data sets from files as their authors publish them, written here."""

import gzip
import struct

import numpy as np
import pytest
import torch

from cdclust.data import available_splits, load_source, open_stream, read_batches
from cdclust.errors import UserError

SIZES = {"train": 12, "t10k": 5}


@pytest.fixture
def fashion(tmp_path):
    """Fashion-MNIST in small: its images and labels a split."""
    raw = tmp_path / "FashionMNIST" / "raw"
    raw.mkdir(parents=True)
    chance, found = np.random.default_rng(0), {}
    for split, n in SIZES.items():
        images = chance.integers(0, 256, (n, 28, 28), dtype=np.uint8)
        labels = np.arange(n, dtype=np.uint8) % 10
        found[split] = images, labels
        (raw / f"{split}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, n, 28, 28) + images.tobytes())
        (raw / f"{split}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, n) + labels.tobytes())
    return tmp_path, found


def test_a_data_set_by_its_name_has_its_images_labels_and_splits(fashion):
    root, found = fashion
    assert available_splits("torchvision:FashionMNIST", root) == ["train", "test"]
    images = load_source("torchvision:FashionMNIST", root=root)
    np.testing.assert_array_equal(images.images[:, 0].numpy(), found["train"][0])
    assert images.labels.tolist() == found["train"][1].tolist()
    assert images.class_names[9] == "Ankle boot"
    assert (images.name, images.split) == ("torchvision:FashionMNIST", "train")
    np.testing.assert_array_equal(
        load_source("torchvision:FashionMNIST", split="test", root=root).images[:, 0].numpy(), found["t10k"][0]
    )


def test_a_stream_of_it_is_the_same_in_colour(fashion):
    root, found = fashion
    stream = open_stream("torchvision:FashionMNIST", split="all", root=root)
    images = torch.cat([images for _, images, _ in read_batches(stream, range(len(stream)), 28, 8)])
    whole = np.concatenate([found[split][0] for split in SIZES])
    np.testing.assert_array_equal(images.numpy(), np.repeat(whole[:, None], 3, axis=1))
    assert stream.labels.tolist() == np.concatenate([found[split][1] for split in SIZES]).tolist()
    assert stream.split == "train+test"
    assert stream.class_names[0] == "T-shirt/top"


def test_what_is_not_there_is_said_with_the_line_that_fetches_it(tmp_path):
    with pytest.raises(UserError, match=r"KMNIST\('.*', train=True, download=True\)"):
        open_stream("torchvision:KMNIST", root=tmp_path)
    with pytest.raises(UserError, match=r"split='train', download=True"):
        open_stream("torchvision:SVHN", root=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_splits_are_what_torchvision_calls_them(tmp_path):
    assert available_splits("torchvision:SVHN") == ["train", "test", "extra"]
    assert available_splits("torchvision:OxfordIIITPet") == ["trainval", "test"]
    assert available_splits("torchvision:EuroSAT") == []
    with pytest.raises(UserError, match="has no 'val'; it has train, test"):
        open_stream("torchvision:Food101", split="val", root=tmp_path)


@pytest.mark.parametrize(
    ("name", "words"), [("FashionMnist", "did you mean torchvision:FashionMNIST"), ("x", "there are ")]
)
def test_another_name_is_refused_with_the_nearest(name, words):
    with pytest.raises(UserError, match=words):
        open_stream(f"torchvision:{name}")


@pytest.mark.parametrize("name", ["FakeData", "VisionDataset", "ImageFolder", "HMDB51", "Kinetics", "os"])
def test_what_holds_no_images_of_its_own_is_no_data_set(name):
    with pytest.raises(UserError, match="is no data set of images"):
        open_stream(f"torchvision:{name}")


def test_damaged_files_are_one_line(fashion):
    root, _ = fashion
    (root / "FashionMNIST" / "raw" / "train-images-idx3-ubyte").write_bytes(gzip.compress(b"x"))
    with pytest.raises(UserError, match="is not under") as error:
        open_stream("torchvision:FashionMNIST", root=root)
    assert "\n" not in str(error.value)
