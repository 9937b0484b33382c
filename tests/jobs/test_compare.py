"""Several methods on one cache, end to end, on small drawings told apart by their pixels."""

import csv
import json
import shutil

import numpy as np
import pytest
from sklearn.metrics import silhouette_score

from cdclust.jobs import compare as job
from cdclust.jobs.apart import Ended, run_apart

N, K = 60, 3
SMALL = ("--set", "views=2", "--set", "epochs=2", "--set", "features.size=16")
QUICK = ("--backbone", "pixels", "--device", "cpu", *SMALL)


@pytest.fixture(autouse=True)
def _a_cache_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("CDCLUST_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def drawings(tmp_path):
    """Red, green and blue noise, and which is which."""
    pixels = np.random.default_rng(0).integers(0, 60, (N, 16, 16, 3), dtype=np.uint8)
    classes = np.arange(N) % K
    pixels[np.arange(N), :, :, classes] += 150
    np.savez(tmp_path / "drawings.npz", x=pixels, y=classes)
    return tmp_path / "drawings.npz"


@pytest.fixture
def compare(shell, drawings, tmp_path):
    def command(*words, source=None, out="out"):
        return shell("compare", source or drawings, "-k", K, *QUICK, "--out", tmp_path / out, *words)

    return command


def results(tmp_path) -> dict:
    return json.loads((tmp_path / "out" / "compare.json").read_text())


def test_every_method_is_scored_on_the_same_images_in_one_table(compare, tmp_path):
    said = compare("--methods", "all")
    assert said.status == 0, said.err
    found = results(tmp_path)
    names = {"kmeans", "spherical-kmeans", "agglomerative", "spectral", "hdbscan", "scan", "cdc"}
    assert found["methods"].keys() == names
    for name in ("kmeans", "spherical-kmeans", "agglomerative", "spectral"):
        assert found["methods"][name]["acc"]["mean"] == 1
    for name, summary in found["methods"].items():
        assert name in said.out
        assert summary["seconds"]["mean"] > 0
        assert summary["peak_memory_mb"]["mean"] > 50
        with (tmp_path / "out" / name / "seed-0" / "assignments.csv").open(newline="") as file:
            assert [row["image"] for row in csv.DictReader(file)] == [str(i) for i in range(N)]
    with (tmp_path / "out" / "compare.csv").open(newline="") as file:
        assert [row["method"] for row in csv.DictReader(file)] == list(found["methods"])
    assert "| kmeans | 1.000 |" in (tmp_path / "out" / "compare.md").read_text()


def test_without_labels_there_are_figures_that_need_none(compare, drawings, tmp_path):
    np.save(tmp_path / "bare.npy", np.load(drawings)["x"])
    said = compare("--methods", "kmeans", "--seeds", "2", "--json", source=tmp_path / "bare.npy")
    assert said.status == 0, said.err
    found = json.loads(said.out)["methods"]["kmeans"]
    assert "acc" not in found
    assert found["agreement"]["mean"] == 1
    assert found["evenness"]["mean"] == pytest.approx(1)
    (embedded,) = (tmp_path / "cache").glob("*/clean.npy")
    features = np.load(embedded).astype(float)
    features -= features.mean(axis=0)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    assert found["silhouette"]["mean"] == pytest.approx(silhouette_score(features, np.arange(N) % K), abs=1e-4)


def test_a_second_call_goes_on_with_what_is_missing_and_computes_nothing_again(compare, tmp_path):
    compare("--methods", "kmeans")
    before = (tmp_path / "out" / "results" / "kmeans-0.json").read_bytes()
    said = compare("--methods", "kmeans,spherical-kmeans", "--seeds", "2")
    assert said.status == 0, said.err
    assert (tmp_path / "out" / "results" / "kmeans-0.json").read_bytes() == before
    assert results(tmp_path)["methods"]["kmeans"]["seeds"] == [0, 1]
    assert results(tmp_path)["methods"]["spherical-kmeans"]["seeds"] == [0, 1]


def fails_once(broken):
    """Stands for a process that memory ran out in."""

    def run(work, listener):
        task = work.args[0]
        if (task.method, task.recipe.seed) in broken:
            return Ended(reason="its process was killed, most likely because memory ran out")
        return run_apart(work, listener)

    return run


def test_a_seed_that_fails_loses_nothing_and_is_tried_again(compare, tmp_path, monkeypatch):
    monkeypatch.setattr(job, "run_apart", fails_once({("kmeans", 0)}))
    said = compare("--methods", "kmeans,spherical-kmeans", "--seeds", "2")
    assert said.status == 1
    assert "kmeans seed 0" in said.err
    found = results(tmp_path)["methods"]
    assert found["kmeans"]["failed"][0]["seed"] == 0
    assert found["kmeans"]["seeds"] == [1]
    assert found["spherical-kmeans"]["seeds"] == [0, 1]
    monkeypatch.undo()
    monkeypatch.setenv("CDCLUST_CACHE", str(tmp_path / "cache"))
    assert compare("--methods", "kmeans,spherical-kmeans", "--seeds", "2").status == 0
    assert results(tmp_path)["methods"]["kmeans"]["seeds"] == [0, 1]
    assert not results(tmp_path)["methods"]["kmeans"]["failed"]


def test_what_leaves_nothing_to_chance_runs_once(compare, tmp_path):
    compare("--methods", "agglomerative,kmeans", "--seeds", "3")
    found = results(tmp_path)["methods"]
    assert [len(found[name]["seeds"]) for name in ("agglomerative", "kmeans")] == [1, 3]


def test_bad_files_belong_to_no_cluster_and_keep_their_line(shell, drawings, tmp_path):
    from PIL import Image

    folder = tmp_path / "photos"
    folder.mkdir()
    for i, pixels in enumerate(np.load(drawings)["x"][:20]):
        Image.fromarray(pixels).save(folder / f"{i:02d}.png")
    (folder / "05.png").write_bytes(b"no image")
    said = shell("compare", folder, "-k", K, *QUICK, "--methods", "kmeans,scan", "--out", tmp_path / "out")
    assert said.status == 0, said.err
    for method in ("kmeans", "scan"):
        with (tmp_path / "out" / method / "seed-0" / "assignments.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["image"] for row in rows if row["status"] != "ok"] == ["05.png"]
        assert [row["image"] for row in rows if row["cluster"] == ""] == ["05.png"]
    assert "1 images could not be read" in said.out


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--methods", "kmeans,birch"), "choose among kmeans"),
        (("--methods", ","), "name at least one"),
        (("--methods", "kmeans,kmeans"), "twice"),
        (("--backbone", "scratch"), "trained backbone"),
        (("-k", "61"), "more than the 60 images"),
        (("--recipe", "cifar10"), "works on features"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_written(shell, drawings, tmp_path, words, reason):
    usual = () if "--recipe" in words else QUICK
    said = shell("compare", drawings, "-k", K, *usual, "--out", tmp_path / "out", *words)
    assert said.status == 2
    assert reason in said.err
    assert not (tmp_path / "out").exists()


def test_another_k_or_other_images_are_refused(compare, drawings, tmp_path, shell):
    compare("--methods", "kmeans")
    said = shell("compare", drawings, "-k", 2, *QUICK, "--methods", "kmeans", "--out", tmp_path / "out")
    assert said.status == 1
    assert "n_clusters was 3" in said.err
    shutil.copy(drawings, tmp_path / "other.npz")
    np.savez(tmp_path / "other.npz", x=np.load(drawings)["x"][::-1], y=np.arange(N) % K)
    said = compare("--methods", "kmeans", source=tmp_path / "other.npz")
    assert said.status == 1
    assert "other images" in said.err


def test_a_cdc_that_failed_before_it_began_is_tried_again(compare, tmp_path, monkeypatch):
    monkeypatch.setattr(job, "run_apart", fails_once({("cdc", 0)}))
    assert compare("--methods", "cdc").status == 1
    monkeypatch.setattr(job, "run_apart", run_apart)
    assert compare("--methods", "cdc").status == 0


def test_a_comparison_that_is_stopped_says_how_it_goes_on(compare, tmp_path, monkeypatch):
    def stopped(work, listener):
        raise KeyboardInterrupt

    monkeypatch.setattr(job, "run_apart", stopped)
    said = compare("--methods", "kmeans")
    assert said.status == 130
    assert "--out" in said.err
