import os
import time

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import TensorDataset

from cdclust.data import ImageStream, load_source, open_stream, read_batches

RNG = np.random.default_rng(0)
COLOUR = RNG.integers(0, 256, (10, 14, 12, 3), dtype=np.uint8)
GREY = RNG.integers(0, 256, (10, 9, 11), dtype=np.uint8)


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    for i, pixels in enumerate(COLOUR):
        path = folder / "ab"[i % 2] / f"{i}.{('png', 'jpg', 'webp')[i % 3]}"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    return folder


def cifar(root):
    for i in range(1, 6):
        (root / "cifar-10-batches-bin").mkdir(exist_ok=True)
        records = RNG.integers(0, 10, (3, 3073), dtype=np.uint8)
        (root / "cifar-10-batches-bin" / f"data_batch_{i}.bin").write_bytes(records.tobytes())
    return root


def specs(tmp_path, photos):
    names = sorted(os.fspath(p.relative_to(photos)) for p in photos.rglob("*.*"))
    (photos / "list.csv").write_text("path,label\n" + "".join(f"{n},{n[0]}\n" for n in names))
    np.save(tmp_path / "a.npy", COLOUR)
    np.savez(tmp_path / "stored.npz", x=GREY, y=np.arange(10))
    np.savez_compressed(tmp_path / "packed.npz", x_train=GREY[:6], x_test=GREY[6:], y_test=np.arange(4))
    return {
        "folder": (photos, {"labels": "folders"}),
        "manifest": (photos / "list.csv", {}),
        "one file": (photos / names[0], {}),
        "paths": ([photos / n for n in names], {"labels": list(range(10))}),
        "npy": (tmp_path / "a.npy", {}),
        "npz": (tmp_path / "stored.npz", {}),
        "compressed npz": (tmp_path / "packed.npz", {"split": "all"}),
        "array": (COLOUR, {"labels": ["x", "y"] * 5}),
        "floats": (GREY / 255, {}),
        "tensor": (torch.from_numpy(COLOUR), {}),
        "pictures": ([Image.fromarray(pixels) for pixels in COLOUR], {}),
        "pairs": ([(pixels, i) for i, pixels in enumerate(COLOUR)], {}),
        "data set": (TensorDataset(torch.from_numpy(COLOUR)), {}),
        "digits": ("digits", {}),
        "cifar10": ("cifar10", {"root": cifar(tmp_path)}),
    }


KINDS = [
    "folder",
    "manifest",
    "one file",
    "paths",
    "npy",
    "npz",
    "compressed npz",
    "array",
    "floats",
    "tensor",
    "pictures",
    "pairs",
    "data set",
    "digits",
    "cifar10",
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_gives_what_loading_gives(tmp_path, photos, kind):
    spec, options = specs(tmp_path, photos)[kind]
    loaded, stream = load_source(spec, size=8, **options), open_stream(spec, **options)
    batches = list(read_batches(stream, range(len(stream)), 8, 4))
    assert [row for rows, _, _ in batches for row in rows] == loaded.rows.tolist()
    images = torch.cat([images for _, images, _ in batches])
    torch.testing.assert_close(images, loaded.images.expand(-1, 3, -1, -1), rtol=0, atol=0)
    assert list(stream.keys) == list(loaded.keys)
    assert (stream.name, stream.split, stream.class_names) == (loaded.name, loaded.split, loaded.class_names)
    assert stream.notes == loaded.notes
    np.testing.assert_array_equal(stream.labels, loaded.labels)


class Counted(ImageStream):
    """Black images; which rows were read is written down."""

    def __init__(self, n):
        super().__init__("counted", [str(i) for i in range(n)])
        self.read_so_far = []

    def read(self, row, size):
        self.read_so_far.append(row)
        return np.zeros((3, size, size), np.uint8)

    def fingerprint(self):
        return ""


def test_the_next_batch_is_read_while_one_is_worked_on_and_not_much_more():
    stream = Counted(400)
    batches = read_batches(stream, range(400), 4, 100, threads=2)
    next(batches)
    deadline = time.monotonic() + 20
    while len(stream.read_so_far) < 200 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    assert 200 <= len(stream.read_so_far) <= 210
    assert sum(len(rows) for rows, _, _ in batches) == 300
