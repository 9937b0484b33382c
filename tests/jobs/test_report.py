"""The page from the shell: `cdclust fit` leaves one, `cdclust report` draws it again."""

import json
import re
import sys

import numpy as np
import pytest
from PIL import Image

from cdclust.run import Run


@pytest.fixture
def fitted(shell, settings, source, tmp_path):
    """A run of the shell on labelled noise."""
    said = shell("fit", source, *settings(), "--device", "cpu", "--out", tmp_path / "run")
    assert said.status == 0, said
    return tmp_path / "run"


def data(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])


def test_fit_leaves_a_page_with_every_image(fitted, pictures):
    page = data(fitted / "report.html")
    assert page["summary"]["n_shown"] == len(pictures)
    assert page["summary"]["scores"]["acc"] == json.loads((fitted / "metrics.json").read_text())["acc"]
    assert all(page["images"]["thumbnail"])
    assert page["labels"]["n_labelled"] == len(pictures)


def test_the_page_is_drawn_again_from_the_run_folder_alone(fitted, source, shell):
    before = (fitted / "report.html").read_bytes()
    source.unlink()
    (fitted / "report.html").unlink()
    said = shell("report", fitted)
    assert (said.status, said.out) == (0, f"Written to {fitted / 'report.html'}\n")
    assert (fitted / "report.html").read_bytes() == before


def test_a_run_whose_pictures_were_not_kept_gets_them_from_its_source(fitted, source, shell):
    (fitted / "report.npz").unlink()
    assert shell("report", fitted).status == 0
    assert not any(data(fitted / "report.html")["images"]["thumbnail"])
    assert shell("report", fitted, "--source", source, "--labels", "y").status == 0
    assert all(data(fitted / "report.html")["images"]["thumbnail"])


def test_another_source_is_refused_with_nothing_overwritten(fitted, shell, tmp_path):
    np.save(tmp_path / "other.npy", np.zeros((9, 12, 12, 3), np.uint8))
    before = {path.name: path.read_bytes() for path in fitted.iterdir() if path.is_file()}
    said = shell("report", fitted, "--source", tmp_path / "other.npy")
    assert said.status == 1
    assert "give the source that the run was made from" in said.err
    assert {path.name: path.read_bytes() for path in fitted.iterdir() if path.is_file()} == before


def test_a_page_that_cannot_be_made_fails_no_run_and_is_said(shell, settings, source, tmp_path, monkeypatch):
    from cdclust.jobs import report

    def broken(*_, **__):
        raise RuntimeError("no ink")

    monkeypatch.setattr(report, "keep", broken)
    said = shell("fit", source, *settings(), "--device", "cpu", "--out", tmp_path / "run")
    assert said.status == 0
    assert "report.html could not be made (no ink)" in said.out.replace("\n", " ")
    assert Run(tmp_path / "run").finished


def test_an_image_that_vanishes_while_the_page_is_drawn_is_black(shell, settings, tmp_path):
    (tmp_path / "photos").mkdir()
    for i in range(40):
        Image.new("RGB", (20, 16), (6 * i, 0, 99)).save(tmp_path / f"photos/{i:02}.png")
    words = (*settings({"data.size": 12}), "--backbone", "scratch", "--device", "cpu", "--out", tmp_path / "run")
    assert shell("fit", tmp_path / "photos", *words).status == 0
    (tmp_path / "photos/07.png").write_bytes(b"")
    assert shell("report", tmp_path / "run", "--source", tmp_path / "photos").status == 0
    assert len(data(tmp_path / "run/report.html")["images"]["name"]) == 40


def test_a_folder_of_seeds_stands_for_its_seeds(shell, settings, source, tmp_path):
    out = tmp_path / "runs"
    assert shell("fit", source, *settings(), "--seeds", "2", "--device", "cpu", "--out", out).status == 0
    said = shell("report", out)
    assert said.out.splitlines() == [f"Written to {out / f'seed-{n}' / 'report.html'}" for n in (0, 1)]


@pytest.mark.parametrize(
    ("words", "status", "expected"),
    [
        (["--out", "nowhere/at/all.html"], 1, "there is no folder"),
        (["--out", "."], 1, "is a folder"),
        (["--labels", "folders"], 2, "--labels goes with --source"),
        (["--figures", "figs", "--format", "bmp"], 2, "svg or pdf"),
    ],
)
def test_what_cannot_work_is_refused_in_a_line(make_empty_run, shell, words, status, expected):
    said = shell("report", make_empty_run, *words)
    assert said.status == status
    assert expected in said.err
    assert len(said.err.strip().splitlines()) == 1


@pytest.fixture
def make_empty_run(tmp_path):
    """A folder that looks like a run."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run/recipe.yaml").write_text("")
    (tmp_path / "run/model.safetensors").write_bytes(b"")
    return tmp_path / "run"


def test_a_folder_that_is_no_run_is_refused(shell, tmp_path):
    said = shell("report", tmp_path)
    assert (said.status, "is not a run folder" in said.err) == (1, True)


@pytest.mark.parametrize("ending", ["svg", "pdf"])
def test_every_figure_is_written_for_papers(fitted, shell, tmp_path, ending):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'cdclust[figures]'")
    assert shell("report", fitted, "--figures", tmp_path / "figs", "--format", ending).status == 0
    start = {"svg": b"<?xml", "pdf": b"%PDF"}[ending]
    found = {path.name: path.read_bytes()[: len(start)] for path in (tmp_path / "figs").iterdir()}
    names = ("curves", "sizes", "confidence", "similarity", "map", "confusion")
    assert found == {f"{name}.{ending}": start for name in names}


def test_figures_of_two_runs_show_both(fitted, shell, settings, source, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'cdclust[figures]'")
    other = tmp_path / "a $name_ of its own"
    assert shell("fit", source, *settings({"seed": 1}), "--device", "cpu", "--out", other).status == 0
    assert shell("report", fitted, other, "--figures", tmp_path / "figs").status == 0
    assert other.name in (tmp_path / "figs/curves.svg").read_text()
    assert (tmp_path / "figs/map-pair.svg").exists()
    assert (tmp_path / "figs/sizes-a-name_-of-its-own.svg").exists()


def test_figures_without_matplotlib_are_refused_before_anything_is_drawn(fitted, shell, tmp_path, monkeypatch):
    (fitted / "report.html").unlink()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said = shell("report", fitted, "--figures", tmp_path / "figs")
    assert said.status == 1
    assert "pip install 'cdclust[figures]'" in said.err
    assert not (fitted / "report.html").exists()
