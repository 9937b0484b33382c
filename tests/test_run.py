import csv
import io
import json

import numpy as np
import pytest
import torch

from cdclust import run as runs
from cdclust.data import ImageSet
from cdclust.engine.assign import Assigned
from cdclust.errors import UserError
from cdclust.jobs.results import rows
from cdclust.recipe import Recipe
from cdclust.run import Run


@pytest.fixture
def run(tmp_path) -> Run:
    return runs.create(tmp_path / "run", Recipe(), resume=False)


def test_a_new_folder_holds_its_recipe(tmp_path):
    run = runs.create(tmp_path / "deep" / "run", Recipe(n_clusters=7), resume=False)
    assert run.recipe() == Recipe(n_clusters=7)
    assert not run.finished


def test_an_existing_folder_is_refused_and_left_as_it_is(run):
    run.write_text("metrics.json", "{}")
    with pytest.raises(UserError, match="exists already; add --resume"):
        runs.create(run.path, Recipe(n_clusters=3), resume=False)
    assert run.file("metrics.json").read_text() == "{}"
    assert run.recipe() == Recipe()


def test_an_empty_folder_is_as_good_as_none(tmp_path):
    assert runs.create(tmp_path, Recipe(), resume=False).recipe() == Recipe()


def test_a_folder_of_something_else_is_no_run_to_resume(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UserError, match="is not a run"):
        runs.create(tmp_path, Recipe(), resume=True)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    for resume in (True, False):
        with pytest.raises(UserError, match="is a file; name a folder"):
            runs.create(tmp_path / "file", Recipe(), resume)


def test_a_folder_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be made"):
        runs.create(tmp_path / "file" / "run", Recipe(), resume=False)


def test_the_same_recipe_is_gone_on_with(run):
    assert runs.create(run.path, Recipe(), resume=True) == run


def test_another_name_or_origin_is_the_same_recipe(run):
    assert runs.create(run.path, Recipe(name="mine", about="x", origin={"seed": "me"}), resume=True) == run


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("objective.alpha", 2.0, "objective.alpha was 5.0 in this run and is 2.0 now"),
        ("seed", 1, "seed was 0 in this run and is 1 now"),
        ("network.blocks", [1, 1], r"network.blocks was None in this run and is \[1, 1\] now"),
        ("views.change.hue", 0.2, "views.change was {} in this run and is {'hue': 0.2} now"),
    ],
)
def test_a_resume_with_another_recipe_names_the_field_with_both_values(run, field, value, words):
    with pytest.raises(UserError, match=words):
        runs.create(run.path, Recipe().changed({field: value}), resume=True)
    assert run.recipe() == Recipe()


@pytest.mark.parametrize("error", [OSError, ValueError, KeyboardInterrupt])
def test_a_failing_writer_leaves_the_old_file_and_nothing_beside_it(run, error):
    run.write_text("table.csv", "old")

    def fail(file):
        file.write(b"new, but half")
        raise error("on purpose")

    with pytest.raises((UserError, ValueError, KeyboardInterrupt)):
        run.write("table.csv", fail)
    assert run.file("table.csv").read_text() == "old"
    assert not list(run.path.glob("*.part"))


def test_a_reader_never_sees_half_a_file(run):
    run.write_text("table.csv", "old")

    def look(file):
        file.write(b"half")
        file.flush()
        assert run.file("table.csv").read_text() == "old"
        file.write(b" and half")

    run.write("table.csv", look)
    assert run.file("table.csv").read_text() == "half and half"


def test_an_array_is_written_without_pickle(run):
    run.write_array("embeddings.npy", np.arange(6.0).reshape(2, 3))
    assert np.load(run.file("embeddings.npy"), allow_pickle=False).shape == (2, 3)
    with pytest.raises(ValueError):
        run.write_array("objects.npy", np.array([{}]))
    assert not list(run.path.glob("objects*"))


def test_a_log_forgets_what_came_after_the_checkpoint(run):
    for step in (3, 6, 9):
        run.append_log({"step": step, "loss": step / 7})
    run.trim_log(6)
    assert run.log() == [{"step": 3, "loss": 3 / 7}, {"step": 6, "loss": 6 / 7}]
    run.trim_log(0)
    assert run.log() == []


def test_a_line_that_was_cut_short_is_no_part_of_the_log(run):
    run.append_log({"step": 3})
    with run.file("log.jsonl").open("a") as file:
        file.write('{"step": 6, "lo')
    assert run.log() == [{"step": 3}]
    run.trim_log(6)
    run.append_log({"step": 6})
    assert run.log() == [{"step": 3}, {"step": 6}]


HOSTILE = ['a"b.png', "a,b.png", "two\nlines.png", "back\rward.png", "=cmd()", " edges ", "ünïcode 猫.png", "x;y\t'z'"]


def test_hostile_names_survive_the_csv():
    n = len(HOSTILE)
    rows = [(name, str(i), "0.5", "0", "0.25", "ok") for i, name in enumerate(HOSTILE)]
    file = io.BytesIO()
    runs.write_csv(file, rows)
    read = list(csv.DictReader(io.StringIO(file.getvalue().decode(), newline="")))
    assert [row["image"] for row in read] == HOSTILE
    assert [row["cluster"] for row in read] == [str(i) for i in range(n)]


def test_bytes_that_are_no_utf_8_can_be_written(run):
    name = b"caf\xe9.png".decode("utf-8", "surrogateescape")
    row = (name, "0", "1.000000", "1", "0.000000", "ok")
    run.write("assignments.csv", lambda file: runs.write_csv(file, [row]))
    assert b"caf\xe9.png,0,1.000000,1,0.000000,ok" in run.file("assignments.csv").read_bytes()


def test_an_unreadable_image_has_a_status_and_nothing_else():
    images = ImageSet("photos/", torch.zeros(1, 3, 4, 4), ["a", "b"], ["unreadable: cut short", "ok"], np.array([1]))
    one = np.ones(1)
    assigned = Assigned(np.array([3]), 0.75 * one, np.array([1]), 0.2 * one, one[:, None], one[:, None])
    assert list(rows(images, assigned)) == [
        ("a", "", "", "", "", "unreadable: cut short"),
        ("b", "3", "0.750000", "1", "0.200000", "ok"),
    ]


def test_a_folder_that_is_no_finished_run_cannot_be_opened(run, tmp_path):
    with pytest.raises(UserError, match=r"no trained weights yet; finish it with .*--resume"):
        runs.open_run(run.path)
    with pytest.raises(UserError, match="is not a run folder"):
        runs.open_run(tmp_path)


def test_the_environment_says_what_a_run_was_computed_with(small):
    found = json.loads(json.dumps(runs.environment(["cdclust", "fit"], small({"seed": 3}), "cpu")))
    assert found["command"] == ["cdclust", "fit"]
    assert (found["seed"], found["device"], found["precision"], found["threads"]) == (3, "cpu", "fp32", 1)
    assert {"cdclust", "torch", "numpy"} <= set(found["packages"])
