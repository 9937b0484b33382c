from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cdclust import origin
from cdclust import run as runs
from cdclust.errors import UserError
from cdclust.estimator import CDC
from cdclust.recipe import Recipe


@pytest.fixture
def run(tmp_path):
    return runs.create(tmp_path / "run", Recipe(), resume=False)


@pytest.fixture
def photos(tmp_path):
    (tmp_path / "photos").mkdir()
    for shade in range(3):
        Image.new("RGB", (8, 8), (100 * shade, 0, 0)).save(tmp_path / "photos" / f"{shade}.png")
    return tmp_path / "photos"


def shades(stream) -> list[int]:
    return [int(stream.read(row, None)[0, 3, 3]) for row in range(len(stream))]


def test_a_folder_is_found_again_from_anywhere(run, photos, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    origin.record(run, origin.describe("photos", "all", "folders"))
    monkeypatch.chdir("/")
    found = origin.recorded(run)
    assert (found.given, found.path, found.split, found.labels) == ("photos", str(photos), "all", "folders")
    assert shades(origin.open_images(run, [], None)) == [0, 100, 200]


def test_a_list_of_paths_is_made_again_from_the_runs_own_table(run, photos, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = ["photos/2.png", str(photos / "0.png")]
    origin.record(run, origin.describe(given, "all"))
    monkeypatch.chdir("/")
    stream = origin.open_images(run, given, None)
    assert shades(stream) == [200, 0]
    assert list(stream.keys) == given


def test_the_same_split_is_found_again(run, tmp_path):
    np.savez(tmp_path / "a.npz", x_train=np.full((4, 8, 8), 7, np.uint8), x_test=np.full((2, 8, 8), 9, np.uint8))
    origin.record(run, origin.describe(tmp_path / "a.npz", "test"))
    assert shades(origin.open_images(run, [], None)) == [9, 9]


def test_a_named_set_is_looked_for_where_it_was(run, tmp_path):
    found = origin.describe("cifar10", "train", root="data")
    assert (found.given, found.path, found.root) == ("cifar10", None, str(Path("data").absolute()))
    origin.record(run, origin.describe("digits", "all"))
    assert len(origin.open_images(run, [], None)) == 1797


@pytest.mark.parametrize("recorded", [True, False])
def test_images_that_were_handed_over_are_asked_for(run, photos, recorded):
    if recorded:
        origin.record(run, origin.describe(np.zeros((3, 8, 8)), "all", np.zeros(3)))
    with pytest.raises(UserError, match="--source"):
        origin.open_images(run, [], None)
    assert shades(origin.open_images(run, [], str(photos))) == [0, 100, 200]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"given": 1}', "[" * 100_000, '{"given": 1, "path": 2}'])
def test_a_damaged_file_is_said_in_words(run, content):
    run.write_text("source.json", content)
    with pytest.raises(UserError, match=r"source.json is damaged; .*--source"):
        origin.recorded(run)


def test_the_estimator_records_it_too(small, pictures, tmp_path):
    settings = {"network.width": 4, "network.blocks": [1, 1], "head.hidden": 16, "batch_size": 16, "epochs": 1}
    settings |= {"method.queue": 40, "method.split_batch_norm": 2, "data.size": None}
    np.save(tmp_path / "x.npy", pictures)
    CDC(4, settings=settings, out=tmp_path / "run", device="cpu", precision="fp32").fit(str(tmp_path / "x.npy"))
    assert origin.recorded(runs.Run(tmp_path / "run")).path == str(tmp_path / "x.npy")
