"""Features as a file: the same in every format, in the order of the source, with every file accounted for."""

import csv
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from cdclust.jobs import embed as job

N = 30


@pytest.fixture(autouse=True)
def _a_cache_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("CDCLUST_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def photos(tmp_path):
    """Grey squares, from black to white, in two folders; one file is no image."""
    for i in range(N):
        path = tmp_path / "photos" / "ab"[i % 2] / f"{i:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (20, 20), 8 * i).save(path)
    (tmp_path / "photos" / "a" / "page.jpg").write_text("<!doctype html>")
    return tmp_path / "photos"


def names(photos) -> list[str]:
    return sorted(str(path.relative_to(photos)) for path in photos.rglob("*.*"))


def pixels(photos) -> np.ndarray:
    """What `pixels` makes of a grey square: its value 768 times."""
    values = [np.nan if name.endswith(".jpg") else 8 * int(name[2:4]) / 255 for name in names(photos)]
    return np.repeat(np.array(values, dtype=np.float32)[:, None], 768, axis=1)


@pytest.fixture
def embed(shell, photos, tmp_path):
    def command(out, *words):
        return shell("embed", photos, "--backbone", "pixels", "--out", tmp_path / out, "--device", "cpu", *words)

    return command


def test_an_npy_has_its_names_beside_it(embed, photos, tmp_path):
    said = embed("f.npy", "--precision", "fp32")
    assert said.status == 0, said.err
    np.testing.assert_allclose(np.load(tmp_path / "f.npy"), pixels(photos), atol=1e-3)
    with (tmp_path / "f.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["image"] for row in rows] == names(photos)
    assert [row["image"] for row in rows if row["status"] != "ok"] == ["a/page.jpg"]
    assert "1 of them unreadable" in said.out


def test_an_npz_holds_features_views_names_statuses_and_labels(embed, photos, tmp_path, monkeypatch):
    monkeypatch.setattr(job, "ROWS", 7)  # no divisor of 31
    said = embed("f.npz", "--views", "2", "--labels", "folders", "--precision", "fp32")
    assert said.status == 0, said.err
    found = np.load(tmp_path / "f.npz", allow_pickle=False)
    np.testing.assert_allclose(found["features"], pixels(photos), atol=1e-3)
    assert found["views"].shape == (N + 1, 2, 768)
    assert found["keys"].tolist() == names(photos)
    assert [status == "ok" for status in found["status"]] == [name != "a/page.jpg" for name in names(photos)]
    assert found["labels"].tolist() == ["ab".index(name[0]) for name in names(photos)]


def test_a_parquet_holds_the_same(embed, photos, tmp_path, monkeypatch):
    monkeypatch.setattr(job, "ROWS", 7)
    assert embed("f.parquet", "--views", "1").status == 0
    assert embed("f.npz", "--views", "1").status == 0
    table, arrays = pq.read_table(tmp_path / "f.parquet"), np.load(tmp_path / "f.npz")
    assert table.column("image").to_pylist() == arrays["keys"].tolist()
    assert table.column("status").to_pylist() == arrays["status"].tolist()
    for column, array in (("features", arrays["features"]), ("view_0", arrays["views"][:, 0])):
        for row, expected in zip(table.column(column).to_pylist(), array, strict=True):
            assert (row is None) == bool(np.isnan(expected).all())
            if row is not None:
                np.testing.assert_array_equal(np.float32(row), expected)


def test_a_name_that_is_no_utf8_is_written_to_every_format(embed, photos, tmp_path):
    (photos / "caf\udce9.png").write_bytes((photos / "a" / "00.png").read_bytes())
    for ending in ("npy", "npz", "parquet"):
        said = embed(f"f.{ending}")
        assert said.status == 0, said.err
    assert "caf\\xe9.png" in np.load(tmp_path / "f.npz")["keys"].tolist()
    assert "caf\\xe9.png" in pq.read_table(tmp_path / "f.parquet").column("image").to_pylist()
    assert "caf\\xe9.png" in (tmp_path / "f.csv").read_text(encoding="utf-8")


def test_a_second_file_embeds_nothing_again(embed, tmp_path):
    assert json.loads(embed("one.npy", "--json").out)["images_per_second"] > 0
    assert json.loads(embed("two.npz", "--json").out)["images_per_second"] is None


@pytest.mark.parametrize(
    ("out", "words", "status", "reason"),
    [
        ("f.csv", (), 2, "must be one of .npy, .npz, .parquet"),
        ("f.npy", ("--views", "2"), 2, "a .npy holds one array"),
        ("nowhere/f.npy", (), 1, "there is no folder"),
        ("f.npz", ("--strict",), 1, "page.jpg"),
    ],
)
def test_what_cannot_work_is_refused_in_words_and_leaves_nothing(embed, tmp_path, out, words, status, reason):
    said = embed(out, *words)
    assert said.status == status
    assert reason in said.err
    assert not (tmp_path / out).exists()


def test_scratch_is_no_backbone_to_embed_with(shell, photos, tmp_path):
    said = shell("embed", photos, "--backbone", "scratch", "--out", tmp_path / "f.npy")
    assert said.status == 2
    assert "trained backbone" in said.err


@pytest.mark.parametrize("there", ["f.npy", "f.csv"])
def test_nothing_that_exists_is_overwritten(embed, tmp_path, there):
    (tmp_path / there).write_text("mine")
    said = embed("f.npy")
    assert said.status == 1
    assert "exists already" in said.err
    assert (tmp_path / there).read_text() == "mine"
