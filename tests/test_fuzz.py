"""Damaged images through the decoder, `fit` and `predict`; CDCLUST_FUZZ=20000 in the environment makes it that many."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from cdclust.networks.resnet import ResNet
from fuzzing import damaged, sound

MANY = int(os.environ.get("CDCLUST_FUZZ", "0"))
SECONDS = 5.0  # of the processor, for one small image
QUICK = ("-k", "3", "--device", "cpu", "--set", "epochs=1", "--set", "head.hidden=16")


def decoded(n: int, seed: int) -> dict:
    """What a process of its own makes of n damaged images."""
    script = Path(__file__).with_name("fuzzing.py")
    ran = subprocess.run(
        [sys.executable, str(script), str(n), str(seed)],
        capture_output=True,
        text=True,
        timeout=120 + n / 10,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    return json.loads(ran.stdout.splitlines()[-1])


def test_the_decoder_neither_crashes_nor_hangs_on_damaged_images():
    found = decoded(600, seed=0)
    refused = sum(count for _, count in found["reasons"])
    assert found["readable"] > 100  # small damage is no reason to lose a photo
    assert refused > 100
    assert found["slowest"][0] < SECONDS, found["slowest"]


@pytest.mark.slow
@pytest.mark.skipif(not MANY, reason="say how many in CDCLUST_FUZZ")
def test_the_decoder_neither_crashes_nor_hangs_on_very_many():
    found = decoded(MANY, seed=1)
    print(json.dumps(found))
    assert found["slowest"][0] < SECONDS, found["slowest"]


@pytest.fixture
def album(tmp_path):
    """Damaged images between sound ones, under their names."""
    folder = tmp_path / "album"
    folder.mkdir()
    n = max(240, MANY // 20)
    for name, content in damaged(n, seed=2):
        (folder / name).write_bytes(content)
    chance = np.random.default_rng(3)
    for i in range(n // 2):
        (folder / f"sound-{i:05}.png").write_bytes(sound("png", {}, chance))
    return folder


def table(path: Path) -> dict[str, dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len({row["image"] for row in rows}) == len(rows)
    return {row["image"]: row for row in rows}


def accounted(rows: dict[str, dict[str, str]], folder: Path) -> int:
    """Every file has its line, with a cluster or else with a reason; how many have none."""
    assert set(rows) == {path.name for path in folder.iterdir()}
    for name, row in rows.items():
        if row["status"] == "ok":
            assert row["cluster"] in ("0", "1", "2")
        else:
            assert row["status"].startswith("unreadable: ")
            assert row["cluster"] == row["probability"] == ""
            assert not name.startswith("sound-")
    return sum(row["status"] != "ok" for row in rows.values())


@pytest.mark.parametrize("engine", ["frozen", "scratch"])
def test_every_damaged_file_is_accounted_for_by_fit_and_predict(shell, album, tmp_path, monkeypatch, engine):
    monkeypatch.setenv("CDCLUST_CACHE", str(tmp_path / "cache"))
    if engine == "frozen":
        torch.manual_seed(0)
        torch.save(ResNet("resnet18", 4, "small", (1, 1)).state_dict(), tmp_path / "w.pth")
        words = ("--backbone", tmp_path / "w.pth", "--set", "features.size=32", "--set", "views=1")
    else:
        small = ("data.size=16", "network.width=4", "network.blocks=[1,1]", "batch_size=64", "queue=64")
        words = ("--recipe", "cifar10", *(word for change in small for word in ("--set", change)))
    said = shell("fit", album, *QUICK, *words, "--out", tmp_path / "run")
    assert said.status == 0, said.err
    rows = table(tmp_path / "run" / "assignments.csv")
    bad = accounted(rows, album)
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert (metrics["n_images"], metrics["n_unreadable"]) == (len(rows), bad)
    assert bad > 20
    said = shell("predict", tmp_path / "run", album, "--out", tmp_path / "p.csv", "--device", "cpu")
    assert said.status == 0, said.err
    again = table(tmp_path / "p.csv")
    assert accounted(again, album) == bad
    assert {n: row["status"] for n, row in again.items()} == {n: row["status"] for n, row in rows.items()}
    assert {n: row["cluster"] for n, row in again.items()} == {n: row["cluster"] for n, row in rows.items()}
