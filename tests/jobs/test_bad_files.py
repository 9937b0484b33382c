"""What a real folder holds beside photographs, through every door: `fit` on both engines, `predict`, the estimator."""

import csv
import json
import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from cdclust import CDC
from cdclust.errors import UserError
from cdclust.networks.resnet import ResNet

GOOD = 40
HOSTILE = (b"new\nline.png", b'quo"te,.png', "Ω é.png".encode(), b"bad\xff\xfe.png", b"=1+1.png", b" .png")
FROZEN = {"features.size": 32, "features.views": 1, "epochs": 1, "head.hidden": 16}
SCRATCH = {"data.size": 12, "network.width": 4, "network.blocks": [1, 1], "epochs": 1, "batch_size": 16, "queue": 32}
ENGINES = ("frozen", "scratch")


@pytest.fixture(autouse=True)
def _a_cache_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("CDCLUST_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def photos(tmp_path) -> Path:
    """Sound photographs, some under names that are not."""
    folder, chance = tmp_path / "photos", np.random.default_rng(0)
    folder.mkdir()
    names = [*HOSTILE, *(f"{i:02}.png".encode() for i in range(GOOD - len(HOSTILE)))]
    for name in names:
        pixels = chance.integers(0, 256, (20, 24, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / os.fsdecode(name), "PNG")
    return folder


def small_png_of(width: int, height: int) -> bytes:
    """A PNG of a hundred bytes that says it is of that size, and might be: it is all one colour."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(10_000)))


def spoil(folder: Path) -> dict[str, str]:
    """Put every kind of bad file there; its name and a word of its reason."""
    Image.new("RGB", (64, 48), "red").save(folder / "sound.jpg")
    jpeg = (folder / "sound.jpg").read_bytes()
    (folder / "sound.jpg").unlink()
    (folder / "noise.jpg").write_bytes(np.random.default_rng(1).bytes(500))
    (folder / "truncated.jpg").write_bytes(jpeg[: len(jpeg) // 2])
    (folder / "empty.png").touch()
    (folder / "page.jpg").write_text("<!DOCTYPE html><title>404</title>")
    Image.new("RGB", (1, 1)).save(folder / "dot.gif")
    (folder / "huge.png").write_bytes(small_png_of(30_000, 30_000))
    (folder / "folder.jpg").mkdir()
    (folder / "dangling.jpg").symlink_to(folder / "nowhere.jpg")
    (folder / "loop.jpg").symlink_to(folder / "loop.jpg")
    os.mkfifo(folder / "pipe.jpg")
    return {
        "noise.jpg": "not an image",
        "truncated.jpg": "truncated",
        "empty.png": "empty file",
        "page.jpg": "web page",
        "dot.gif": "too small (1 x 1)",
        "huge.png": "too large",
        "folder.jpg": "a folder",
        "dangling.jpg": "no such file",
        "loop.jpg": "symbolic links",
        "pipe.jpg": "not a regular file",
    }


@pytest.fixture
def words(tmp_path) -> dict[str, list[object]]:
    """How each engine is asked for in the shell."""
    torch.manual_seed(0)
    torch.save(ResNet("resnet18", 4, "small", (1, 1)).state_dict(), tmp_path / "w.pth")
    asked = {"frozen": ["--backbone", tmp_path / "w.pth"], "scratch": ["--recipe", "cifar10"]}
    for engine, changes in (("frozen", FROZEN), ("scratch", SCRATCH)):
        asked[engine] += [word for name, value in changes.items() for word in ("--set", f"{name}={value}")]
        asked[engine] += ["-k", 3, "--device", "cpu"]
    return asked


def table(path: Path) -> dict[str, dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len({row["image"] for row in rows}) == len(rows)
    return {row["image"]: row for row in rows}


def check(rows: dict[str, dict[str, str]], reasons: dict[str, str]) -> None:
    """Every file is there, the bad ones with their reason and without a cluster, the others with one."""
    assert len(rows) == GOOD + len(reasons)
    assert {name for name, row in rows.items() if row["status"] != "ok"} == set(reasons)
    for name, reason in reasons.items():
        assert reason in rows[name]["status"].lower(), name
        assert rows[name]["cluster"] == ""
    assert {"new\nline.png", 'quo"te,.png', "Ω é.png", "bad\\xff\\xfe.png"} <= set(rows)
    assert all(row["cluster"] in ("0", "1", "2") for row in rows.values() if row["status"] == "ok")


@pytest.mark.parametrize("engine", ENGINES)
def test_bad_files_stop_nothing_and_none_vanishes(shell, photos, words, tmp_path, engine):
    reasons = spoil(photos)
    said = shell("fit", photos, *words[engine], "--out", tmp_path / "run")
    assert said.status == 0, said.err
    check(table(tmp_path / "run" / "assignments.csv"), reasons)
    assert f"{len(reasons)} of {GOOD + len(reasons)} images could not be read; see assignments.csv" in said.out
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert (metrics["n_images"], metrics["n_unreadable"]) == (GOOD + len(reasons), len(reasons))
    assert sum(metrics["cluster_sizes"]) == GOOD
    said = shell("predict", tmp_path / "run", photos, "--out", tmp_path / "p.csv", "--device", "cpu")
    assert said.status == 0, said.err
    assert f"{len(reasons)} unreadable" in said.out
    check(table(tmp_path / "p.csv"), reasons)


@pytest.mark.parametrize("engine", ENGINES)
def test_strict_makes_one_bad_file_fatal(shell, photos, words, tmp_path, engine):
    assert shell("fit", photos, *words[engine], "--out", tmp_path / "run").status == 0
    (photos / "empty.jpg").touch()
    for said in (
        shell("fit", photos, *words[engine], "--out", tmp_path / "strict", "--strict"),
        shell("predict", tmp_path / "run", photos, "--out", tmp_path / "p.csv", "--device", "cpu", "--strict"),
    ):
        assert said.status == 1
        assert "'empty.jpg'" in said.err
        assert len(said.err.strip().splitlines()) == 1
    assert not (tmp_path / "strict").exists()
    assert not (tmp_path / "p.csv").exists()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_folder_that_is_mostly_bad_stops_the_run_and_says_so(shell, photos, words, tmp_path, engine):
    assert shell("fit", photos, *words[engine], "--out", tmp_path / "run").status == 0
    for i in range(GOOD + 1):
        (photos / f"bad-{i}.jpg").write_bytes(b"nothing")
    for said in (
        shell("fit", photos, *words[engine], "--out", tmp_path / "other"),
        shell("predict", tmp_path / "run", photos, "--out", tmp_path / "p.csv", "--device", "cpu"),
    ):
        assert said.status == 1
        assert "of the 81 images" in said.err
        assert "cannot be read" in said.err
    assert not (tmp_path / "other").exists()
    assert not (tmp_path / "p.csv").exists()


@pytest.mark.parametrize("engine", ENGINES)
def test_the_estimator_gives_bad_files_minus_one(photos, words, tmp_path, engine):
    asked = {"backbone": str(tmp_path / "w.pth"), "settings": FROZEN}
    if engine == "scratch":
        asked = {"recipe": "cifar10", "settings": SCRATCH}
    reasons = spoil(photos)
    model = CDC(3, device="cpu", **asked).fit(photos)
    keys = list(model.model_.assign(photos)[0].keys)
    bad = np.array([key in reasons for key in keys])
    assert bad.sum() == len(reasons)
    for found in (model.labels_, model.predict(photos)):
        np.testing.assert_array_equal(found == -1, bad)
    assert not model.predict_proba(photos)[bad].any()
    assert not model.transform(photos)[bad].any()
    one = model.predict([photos / "00.png", photos / "01.png", photos / "empty.png"])
    assert one[2] == -1
    with pytest.raises(UserError, match="cannot be read"):
        model.predict([photos / "empty.png"])
