"""Runs on a frozen backbone, end to end, on small pictures of coloured shapes."""

import csv
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from cdclust import CDC
from cdclust.networks.resnet import ResNet

K = ("-k", "3")
QUICK = ("--set", "features.size=32", "--set", "views=2", "--set", "epochs=3", "--set", "head.hidden=32")
N = 60


@pytest.fixture(autouse=True)
def _a_cache_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("CDCLUST_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def weights(tmp_path) -> Path:
    """A tiny backbone's file."""
    torch.manual_seed(0)
    torch.save({f"module.encoder_q.{n}": v for n, v in ResNet("resnet18", 4, "small", (1, 1)).state_dict().items()},
               tmp_path / "w.pth")  # fmt: skip
    return tmp_path / "w.pth"


def paint(folder: Path, n: int = N) -> Path:
    """Photographs in three classes: red, green and blue, each with noise."""
    chance = np.random.default_rng(0)
    for i in range(n):
        pixels = chance.integers(0, 60, (40 + i % 7, 48, 3), dtype=np.uint8)
        pixels[..., i % 3] += 150
        path = folder / "rgb"[i % 3] / f"{i:03d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    return folder


@pytest.fixture
def photos(tmp_path) -> Path:
    return paint(tmp_path / "photos")


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_folder_of_photos_is_sorted_without_labels_or_preparation(shell, photos, tmp_path):
    """The default backbone, offline, on 60 small pictures."""
    longer = ("--set", "epochs=20", "--set", "features.size=64")
    said = shell("fit", photos, *K, *QUICK, *longer, "--out", tmp_path / "run", "--device", "cpu")
    assert said.status == 0, said.err
    rows = table(tmp_path / "run" / "assignments.csv")
    assert len(rows) == N
    by_class = [{row["cluster"] for row in rows if row["image"].startswith(name)} for name in "rgb"]
    assert all(len(found) == 1 for found in by_class)
    assert len(set.union(*by_class)) == 3
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["protocol"]["backbone_saw_labels"] is True
    assert "acc" not in metrics


@pytest.fixture
def fitted(shell, photos, weights, tmp_path) -> Path:
    run = tmp_path / "run"
    said = shell(
        "fit", photos, *K, *QUICK, "--backbone", weights, "--out", run, "--labels", "folders", "--device", "cpu"
    )
    assert said.status == 0, said.err
    return run


def test_a_run_says_what_its_backbone_has_seen_and_how_many_tensors_matched(fitted):
    protocol = json.loads((fitted / "metrics.json").read_text())["protocol"]
    assert protocol["backbone_saw_labels"] is False
    assert protocol["backbone_trained_with"] == "MoCo v2, images alone"
    assert " of " in protocol["backbone_weights"]


def test_a_second_k_embeds_nothing_again(shell, fitted, photos, weights, tmp_path):
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.npy")}
    said = shell("fit", photos, "-k", 2, *QUICK, "--backbone", weights, "--out", tmp_path / "k2", "--device", "cpu")
    assert said.status == 0, said.err
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.npy")} == before
    assert "embedded_images_per_second" not in json.loads((tmp_path / "k2" / "metrics.json").read_text())


def test_a_changed_photo_is_embedded_again(shell, fitted, photos, weights, tmp_path):
    Image.new("RGB", (50, 50), "white").save(photos / "r" / "000.png")
    said = shell("fit", photos, *K, *QUICK, "--backbone", weights, "--out", tmp_path / "new", "--device", "cpu")
    assert said.status == 0, said.err
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_predictions_on_the_same_photos_are_the_runs_own(shell, fitted, photos, tmp_path):
    for ending in ("csv", "jsonl", "parquet"):
        said = shell("predict", fitted, photos, "--out", tmp_path / f"p.{ending}", "--device", "cpu")
        assert said.status == 0, said.err
    ours, theirs = table(tmp_path / "p.csv"), table(fitted / "assignments.csv")
    assert [(row["image"], row["cluster"]) for row in ours] == [(row["image"], row["cluster"]) for row in theirs]
    lines = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert [line["cluster"] for line in lines] == [int(row["cluster"]) for row in ours]


def test_an_evaluation_scores_the_run_as_it_scored_itself(shell, fitted, photos):
    said = shell("evaluate", fitted, photos, "--labels", "folders", "--json", "--device", "cpu")
    assert said.status == 0, said.err
    assert json.loads(said.out)["acc"] == pytest.approx(json.loads((fitted / "metrics.json").read_text())["acc"])


def test_other_weights_under_the_same_name_are_refused(shell, fitted, photos, weights, tmp_path):
    torch.manual_seed(1)
    torch.save(ResNet("resnet18", 4, "small", (1, 1)).state_dict(), weights)
    said = shell("predict", fitted, photos, "--out", tmp_path / "p.csv", "--device", "cpu")
    assert said.status == 1
    assert "other weights" in said.err


def test_bad_files_are_listed_with_their_reason_and_stop_nothing(shell, photos, weights, tmp_path):
    (photos / "cut.jpg").write_bytes(b"\xff\xd8\xff\xe0 cut short")
    (photos / "page.png").write_text("<!doctype html><title>404</title>")
    (photos / "empty.jpg").touch()
    run = tmp_path / "bad"
    said = shell("fit", photos, *K, *QUICK, "--backbone", weights, "--out", run, "--device", "cpu")
    assert said.status == 0, said.err
    bad = {row["image"]: row["status"] for row in table(run / "assignments.csv") if row["status"] != "ok"}
    assert set(bad) == {"cut.jpg", "page.png", "empty.jpg"}
    assert "web page" in bad["page.png"]
    assert json.loads((run / "metrics.json").read_text())["n_unreadable"] == 3
    said = shell("predict", run, photos, "--out", tmp_path / "p.csv", "--device", "cpu")
    assert "3 unreadable" in said.out
    assert {row["image"]: row["status"] for row in table(tmp_path / "p.csv") if row["status"] != "ok"} == bad


def test_strict_makes_a_bad_file_fatal_with_a_cache_and_without(shell, photos, weights, tmp_path):
    (photos / "empty.jpg").touch()
    strict = ("fit", photos, *K, *QUICK, "--backbone", weights, "--device", "cpu", "--strict")
    for out in ("one", "two"):
        said = shell(*strict, "--out", tmp_path / out)
        assert said.status == 1
        assert "empty.jpg" in said.err
        assert not (tmp_path / out).exists()
        shell("fit", photos, *K, *QUICK, "--backbone", weights, "--device", "cpu", "--out", tmp_path / f"filled-{out}")


@pytest.mark.parametrize("positives", ["views", "neighbours", "both"])
@pytest.mark.parametrize("framework", ["moco-v2", "simclr", "moco-v3"])
def test_every_framework_trains_on_features_with_any_positives(shell, photos, weights, tmp_path, framework, positives):
    changes = (f"framework={framework}", f"positives={positives}", "queue=64", "predictor_hidden=16", "neighbours=5")
    more = [word for change in changes for word in ("--set", change)]
    out = ("--out", tmp_path / "run", "--device", "cpu")
    said = shell("fit", photos, *K, *QUICK, *more, "--backbone", weights, *out)
    assert said.status == 0, said.err


def test_exact_views_train_too_and_are_said_so(shell, photos, weights, tmp_path):
    more = ("--set", "exact=true", "--set", "epochs=1")
    said = shell("fit", photos, *K, *QUICK, *more, "--backbone", weights, "--out", tmp_path / "run", "--device", "cpu")
    assert said.status == 0, said.err
    assert "fresh views" in json.loads((tmp_path / "run" / "metrics.json").read_text())["protocol"]["features"]


def test_a_run_that_was_interrupted_resumes_bit_identical(shell, photos, weights, tmp_path):
    words = ("fit", photos, *K, *QUICK, "--backbone", weights, "--device", "cpu", "--set", "checkpoint_seconds=0")
    assert shell(*words, "--out", tmp_path / "whole").status == 0
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [
        sys.executable,
        "-c",
        "from cdclust.cli import main; main()",
        *map(str, words),
        "--out",
        str(tmp_path / "cut"),
    ]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (tmp_path / "cut" / "checkpoint.pt").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert shell(*words, "--out", tmp_path / "cut", "--resume").status == 0
    for name in ("model.safetensors", "assignments.csv"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_more_clusters_than_photos_are_refused_before_anything_is_embedded(shell, photos, weights, tmp_path):
    said = shell("fit", photos, "-k", 61, *QUICK, "--backbone", weights, "--out", tmp_path / "run", "--device", "cpu")
    assert said.status == 2
    assert "more than the 60 images" in said.err
    assert not (tmp_path / "cache").exists()


def test_a_small_folder_gets_a_smaller_batch_and_is_told(fitted):
    metrics = json.loads((fitted / "metrics.json").read_text())
    assert any("training.batch_size is 16 here, not 256" in note for note in metrics["notes"])


def test_the_estimator_takes_a_folder_and_gives_unreadable_photos_minus_one(photos, weights):
    (photos / "empty.jpg").touch()
    settings = {"features.size": 32, "features.views": 2, "epochs": 2, "head.hidden": 32}
    model = CDC(3, backbone=str(weights), settings=settings, device="cpu").fit(photos)
    assert model.labels_.shape == (N + 1,)
    assert (model.labels_ == -1).sum() == 1
    assert model.predict_proba([photos / "r" / "000.png"]).shape == (1, 3)
    assert np.array_equal(model.predict(photos), model.labels_)


def test_an_unknown_backbone_is_refused_before_a_folder_is_made(shell, photos, tmp_path):
    said = shell("fit", photos, *K, "--backbone", "efficientnet-light0", "--out", tmp_path / "run")
    assert said.status == 1
    assert "did you mean efficientnet-lite0" in said.err
    assert not (tmp_path / "run").exists()
