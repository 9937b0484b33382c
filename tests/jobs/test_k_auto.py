"""`-k auto`, from the shell and from Python, on pictures in four colours with a tiny backbone."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from cdclust import CDC
from cdclust.errors import UsageError
from cdclust.networks.resnet import ResNet
from cdclust.recipe import load

COLOURS = ((200, 40, 40), (40, 200, 40), (40, 40, 200), (200, 200, 40))
QUICK = (
    "--set",
    "features.size=32",
    "--set",
    "views=1",
    "--set",
    "epochs=1",
    "--set",
    "head.hidden=16",
    "--device",
    "cpu",
)


@pytest.fixture(autouse=True)
def _a_cache_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("CDCLUST_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def weights(tmp_path) -> Path:
    torch.manual_seed(0)
    torch.save(ResNet("resnet18", 4, "small", (1, 1)).state_dict(), tmp_path / "w.pth")
    return tmp_path / "w.pth"


@pytest.fixture
def photos(tmp_path) -> Path:
    chance = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    for i in range(80):
        pixels = np.clip(np.array(COLOURS[i % 4]) + chance.normal(0, 12, (32, 32, 3)), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{i:02}.png")
    return tmp_path / "photos"


def test_the_run_goes_on_with_the_number_that_is_proposed_and_shown(shell, photos, weights, tmp_path):
    said = shell("fit", photos, "-k", "auto", "--backbone", weights, *QUICK, "--out", tmp_path / "run")
    assert said.status == 0, said.err
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["n_clusters"] == load(str(tmp_path / "run" / "recipe.yaml")).n_clusters == 4
    assert "no labels" in metrics["k_chosen_by"]
    curve = metrics["k_curve"]
    assert curve["chosen"] == curve["k"][int(np.argmax(curve["score"]))] == 4
    assert "-k auto: 4 clusters" in said.out
    assert "█ <" in said.out


def test_json_stays_json(shell, photos, weights, tmp_path):
    said = shell("fit", photos, "-k", "auto", "--backbone", weights, *QUICK, "--out", tmp_path / "run", "--json")
    assert json.loads(said.out)["k_curve"]["chosen"] == 4


def test_every_seed_has_the_same_number_and_the_curve(shell, photos, weights, tmp_path):
    words = ("fit", photos, "-k", "auto", "--backbone", weights, *QUICK, "--out", tmp_path / "runs")
    assert shell(*words, "--seeds", 2).status == 0
    found = [json.loads((tmp_path / "runs" / f"seed-{i}" / "metrics.json").read_text()) for i in range(2)]
    assert [each["n_clusters"] for each in found] == [4, 4]
    assert found[0]["k_curve"] == found[1]["k_curve"]


def test_a_finished_run_is_neither_overwritten_nor_lost_by_resuming(shell, photos, weights, tmp_path):
    words = ("fit", photos, "-k", "auto", "--backbone", weights, *QUICK, "--out", tmp_path / "run")
    assert shell(*words).status == 0
    before = (tmp_path / "run" / "metrics.json").read_bytes()
    said = shell(*words)
    assert (said.status, "exists already" in said.err) == (1, True)
    assert shell(*words, "--resume").status == 0
    assert (tmp_path / "run" / "metrics.json").read_bytes() == before


def test_the_estimator_proposes_too(photos, weights):
    settings = {"features.size": 32, "features.views": 1, "epochs": 1, "head.hidden": 16}
    model = CDC("auto", backbone=str(weights), settings=settings, device="cpu").fit(photos)
    assert model.n_clusters == "auto"
    assert model.n_clusters_ == model.metrics_["k_curve"]["chosen"] == 4
    assert model.predict_proba(photos).shape == (80, 4)


def test_a_run_from_scratch_is_told_what_to_type(shell, photos, tmp_path):
    said = shell("fit", photos, "-k", "auto", "--backbone", "scratch", "--out", tmp_path / "run")
    assert said.status == 2
    assert "--backbone efficientnet-lite0" in said.err
    with pytest.raises(UsageError, match="frozen backbone"):
        CDC("auto").fit(np.zeros((40, 8, 8), np.uint8))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("k", ["many", "3.5", "1e1", ""])
def test_another_word_for_k_is_refused(shell, photos, tmp_path, k):
    said = shell("fit", photos, "-k", k, "--out", tmp_path / "run")
    assert said.status == 2
    assert "write a whole number" in said.err


def test_too_few_photos_to_tell_are_refused_in_words(shell, photos, weights, tmp_path):
    for path in sorted(photos.iterdir())[20:]:
        path.unlink()
    said = shell("fit", photos, "-k", "auto", "--backbone", weights, *QUICK, "--out", tmp_path / "run")
    assert said.status == 1
    assert "20 images are too few" in said.err
