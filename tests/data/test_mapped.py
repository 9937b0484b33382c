"""Arrays larger than memory: what a file holds is mapped, and only the images asked for are touched; measured."""

import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.lib.format import open_memmap

from cdclust.data import load_source, open_stream, read_batches
from cdclust.networks.resnet import ResNet

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks /proc")
MIB = 2**20


def resident(kind: str = "VmRSS") -> int:
    """Bytes of this process that are in memory; RssAnon leaves out what is mapped from files."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{kind}:"):
            return int(line.split()[1]) * 1024
    raise KeyError(kind)


def large(path: Path, shape: tuple[int, ...], dtype: str) -> int:
    """A file of that size, of holes: nothing is written, but every page that is read takes memory."""
    array = open_memmap(path, mode="w+", dtype=dtype, shape=shape)
    array[:, 0, 0] = 1
    array.flush()
    return array.nbytes


@pytest.mark.parametrize("dtype", ["uint8", "float32", "int32"])
def test_a_mapped_array_is_not_read_whole_to_be_opened(tmp_path, dtype):
    n_bytes = large(tmp_path / "a.npy", (2_000, 512, 512, 3) if dtype == "uint8" else (2_000, 256, 256, 3), dtype)
    assert n_bytes > 1_400 * MIB
    before = resident()
    stream = open_stream(tmp_path / "a.npy")
    stream.fingerprint()
    rows = sum(len(rows) for rows, _, _ in read_batches(stream, range(0, 2_000, 100), 16, 8))
    assert rows == 20
    assert resident() - before < n_bytes / 4


def test_what_the_sample_did_not_show_is_a_bad_image_and_no_more(tmp_path):
    images = np.random.default_rng(0).random((1_000, 6, 6, 3), dtype=np.float32)
    images[502] *= 200
    images[503, 2, 2] = np.nan
    images[505, 1] = -1
    np.save(tmp_path / "a.npy", images)
    stream = open_stream(tmp_path / "a.npy")
    bad = {}
    for _, _, these in read_batches(stream, range(1_000), 8, 100):
        bad |= these
    assert set(bad) == {502, 503, 505}
    assert "NaN" in bad[503]
    sound = np.delete(images, [502, 503, 505], axis=0)
    np.save(tmp_path / "b.npy", sound)
    pixels = torch.cat([each for _, each, _ in read_batches(open_stream(tmp_path / "b.npy"), range(997), 8, 100)])
    torch.testing.assert_close(pixels, load_source(tmp_path / "b.npy", size=8).images, rtol=0, atol=0)


def test_training_on_a_backbone_never_holds_the_images(shell, tmp_path, monkeypatch):
    """The whole of `fit`, and then `predict`, on half a gigabyte of pixels."""
    monkeypatch.setenv("CDCLUST_CACHE", str(tmp_path / "cache"))
    n_bytes = large(tmp_path / "a.npy", (160, 1024, 1024, 3), "uint8")
    torch.manual_seed(0)
    torch.save(ResNet("resnet18", 4, "small", (1, 1)).state_dict(), tmp_path / "w.pth")
    quick = [word for each in ("features.size=32", "views=1", "epochs=1", "head.hidden=16") for word in ("--set", each)]
    words = ("--backbone", tmp_path / "w.pth", *quick, "-k", 3, "--device", "cpu")
    np.save(tmp_path / "small.npy", np.zeros((40, 64, 64, 3), np.uint8))
    assert (
        shell("fit", tmp_path / "small.npy", *words, "--out", tmp_path / "first").status == 0
    )  # what is imported stays
    before, most, done = resident("RssAnon"), [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.002):
            most[0] = max(most[0], resident("RssAnon"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        fitted = shell("fit", tmp_path / "a.npy", *words, "--out", tmp_path / "run")
        told = shell("predict", tmp_path / "run", tmp_path / "a.npy", "--out", tmp_path / "p.csv", "--device", "cpu")
    finally:
        done.set()
        watcher.join()
    assert fitted.status == told.status == 0, fitted.err + told.err
    assert most[0] - before < n_bytes / 3
