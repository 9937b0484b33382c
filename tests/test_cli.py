import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image

from cdclust.cli import main
from cdclust.console import Watcher, screen
from cdclust.recipe import shipped

CONTRACT = {
    "recipe.yaml",
    "environment.json",
    "source.json",
    "log.jsonl",
    "tensorboard",
    "checkpoint.pt",
    "model.safetensors",
    "assignments.csv",
    "embeddings.npy",
    "metrics.json",
    "clusters.png",
    "report.html",
    "report.npz",
}


@pytest.fixture
def fit(shell, settings, source, tmp_path):
    """fit(...): a small run; give source= or changes= to vary it, and further words."""

    def command(*words, source=source, out=tmp_path / "run", **changes):
        return shell("fit", source, *settings(changes), "--device", "cpu", "--out", out, *words)

    return command


@pytest.fixture(scope="module")
def trained(tmp_path_factory, settings, pictures, classes):
    """A finished run and the file it was trained on; not to be changed."""
    folder = tmp_path_factory.mktemp("trained")
    np.savez(folder / "noise.npz", x=pictures, y=classes)
    torch.set_num_threads(1)
    words = ["fit", folder / "noise.npz", *settings(), "--device", "cpu", "--out", folder / "run"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["cdclust", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
    assert not end.value.code
    return folder / "run", folder / "noise.npz"


def contents(folder) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(said, words: str, statuses=frozenset({1, 2})) -> None:
    assert said.status in statuses, said
    lines = said.err.strip().splitlines()
    assert len(lines) == 1, said.err
    assert lines[0].startswith("cdclust: ")
    assert re.search(words, lines[0]), lines[0]
    assert "Traceback" not in said.err


def test_a_run_folder_holds_exactly_the_contracts_files(trained):
    assert {path.name for path in trained[0].iterdir()} == CONTRACT


def test_every_line_of_the_table_is_an_image(trained, pictures):
    run, _ = trained
    rows = list(csv.DictReader((run / "assignments.csv").open(newline="")))
    assert [row["image"] for row in rows] == [str(i) for i in range(len(pictures))]
    assert {row["status"] for row in rows} == {"ok"}
    assert all(0 <= int(row["cluster"]) < 4 and row["cluster"] != row["second"] for row in rows)
    assert all(1 >= float(row["probability"]) >= float(row["second_probability"]) >= 0 for row in rows)
    assert len(np.load(run / "embeddings.npy", allow_pickle=False)) == len(rows)


def test_metrics_say_what_was_measured_and_how(trained):
    metrics = json.loads((trained[0] / "metrics.json").read_text())
    rows = list(csv.DictReader((trained[0] / "assignments.csv").open(newline="")))
    sizes = [sum(row["cluster"] == str(k) for row in rows) for k in range(4)]
    assert metrics["cluster_sizes"] == sizes
    assert (metrics["n_images"], metrics["n_unreadable"], metrics["n_clusters"]) == (48, 0, 4)
    assert all(0 <= metrics[name] <= 1 for name in ("acc", "nmi", "confidence"))
    assert metrics["protocol"]["labels_used_for_selection"] is False
    assert metrics["protocol"]["epoch"] == 2
    assert metrics["images_per_second"] > 0


def test_the_weights_hold_no_twin_and_no_queue(trained):
    from safetensors import safe_open

    with safe_open(trained[0] / "model.safetensors", "pt") as file:
        names = list(file.keys())
    assert {name.split(".")[0] for name in names} == {"encoder"}


def test_the_log_has_a_line_an_epoch(trained):
    lines = [json.loads(line) for line in (trained[0] / "log.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2]
    assert {"step", "loss", "info_nce", "cross_entropy", "cross_entropy_over_ln_k", "lr"} <= lines[0].keys()
    assert {"size_entropy", "nonempty_clusters", "confidence", "positive_n", "images_per_second"} <= lines[0].keys()
    assert "acc" in lines[-1]


def test_the_recipe_of_a_run_leaves_nothing_open(fit, tmp_path):
    assert fit("--precision", "bf16").status == 0
    from cdclust.recipe import load

    recipe = load(str(tmp_path / "run" / "recipe.yaml"))
    assert recipe.training.precision == "bf16"
    assert None not in (recipe.data.size, recipe.data.channels, recipe.data.mean, recipe.data.std)


def test_a_runs_recipe_repeats_it_bit_for_bit(shell, trained, tmp_path):
    run, source = trained
    assert shell("fit", source, "--recipe", run / "recipe.yaml", "--out", tmp_path / "again").status == 0
    for name in ("model.safetensors", "assignments.csv", "embeddings.npy", "recipe.yaml"):
        assert (tmp_path / "again" / name).read_bytes() == (run / name).read_bytes(), name


def test_labels_change_nothing_but_the_scores(shell, trained, tmp_path, pictures):
    np.save(tmp_path / "unlabelled.npy", pictures)
    run, _ = trained
    said = shell("fit", tmp_path / "unlabelled.npy", "--recipe", run / "recipe.yaml", "--out", tmp_path / "blind")
    assert said.status == 0
    assert (tmp_path / "blind" / "model.safetensors").read_bytes() == (run / "model.safetensors").read_bytes()
    assert "acc" not in json.loads((tmp_path / "blind" / "metrics.json").read_text())


def objects(path):
    np.save(path, np.array([{"evil": 1}] * 9, dtype=object), allow_pickle=True)


def not_a_number(path):
    x = np.zeros((48, 12, 12), np.float32)
    x[7, 3, 3] = np.nan
    np.save(path, x)


BAD_SOURCES = {
    "objects": (objects, "pickled objects"),
    "NaN pixels": (not_a_number, "image 7 .*NaN"),
    "a wrong shape": (lambda path: np.save(path, np.zeros((48, 144), np.uint8)), r"shape \(48, 144\)"),
    "pixels out of range": (lambda path: np.save(path, np.full((48, 12, 12), -3.0)), "-3"),
    "an empty file": (lambda path: path.write_bytes(b""), "cannot be read"),
    "an empty folder": (lambda path: path.mkdir(), "no images|empty|holds no"),
}


@pytest.mark.parametrize(("write", "words"), BAD_SOURCES.values(), ids=BAD_SOURCES)
def test_a_bad_source_is_refused_in_one_line_before_a_folder_is_made(fit, tmp_path, write, words):
    write(tmp_path / "bad.npy")
    said = fit(source=tmp_path / "bad.npy")
    refused(said, words, {1})
    assert not (tmp_path / "run").exists()


WRONG = {
    "an unknown data set": ({"source": "cifar11"}, [], "'cifar11'.*cifar10"),
    "K of 1": ({}, ["-k", 1], "n_clusters = 1"),
    "K above N": ({}, ["-k", 49], "-k 49 is more than the 48 images"),
    "a batch above N": (
        {"batch_size": 64},
        [],
        r"64 is more than the 48 images; write --set batch_size=16",
    ),
    "an unknown recipe": ({}, ["--recipe", "cifar12"], "did you mean cifar10"),
    "a typo in --set": ({}, ["--set", "alhpa=1"], "did you mean objective.alpha"),
    "a --set without value": ({}, ["--set", "alpha"], "field=value"),
    "a wrong value": ({}, ["--set", "tau=0"], "objective.tau = 0"),
    "fp16 on a processor": ({}, ["--precision", "fp16"], "--precision bf16"),
    "an unknown precision": ({}, ["--precision", "half"], "--precision half"),
    "an unknown view policy": ({"views.policy": "cifra"}, [], "did you mean 'cifar'"),
    "an unknown backbone": ({"backbone": "resnet19"}, [], "did you mean resnet1"),
    "a mean for other channels": ({"data.mean": [0.5], "data.std": [0.2]}, [], "data.mean and data.std need 3"),
}


@pytest.mark.parametrize(("changes", "words", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_command_is_refused_in_one_line_before_a_folder_is_made(fit, tmp_path, changes, words, said):
    refused(fit(*words, **changes), said)
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what happens without a GPU")
def test_a_device_that_is_not_there_is_refused(fit, tmp_path):
    refused(fit("--device", "cuda"), "--device cuda.*write --device cpu", {2})
    assert not (tmp_path / "run").exists()


def test_wrong_usage_ends_with_2_and_a_failure_with_1(shell, fit):
    assert shell("fit").status == 2
    assert shell("fit", "digits", "--no-such-option").status == 2
    assert fit("--set", "alhpa=1").status == 2
    assert fit(source="cifar11").status == 1


def test_without_k_one_is_asked_for(shell, source):
    refused(shell("fit", source), "-k is missing", {2})


def test_an_existing_run_is_not_overwritten(fit, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.txt").write_text("mine")
    before = contents(tmp_path / "run")
    refused(fit(), "exists already; add --resume", {1})
    assert contents(tmp_path / "run") == before


def test_a_resume_with_another_recipe_is_refused_and_changes_nothing(shell, trained, settings):
    run, source = trained
    before = contents(run)
    said = shell("fit", source, *settings({"alpha": 2}), "--device", "cpu", "--out", run, "--resume")
    refused(said, "objective.alpha was 5.0 in this run and is 2.0 now", {1})
    said = shell("fit", source, "--seed", 3, "--precision", "fp32", "--out", run, "--resume")
    refused(said, "seed was 0 in this run and is 3 now", {1})
    assert contents(run) == before


def test_a_resume_of_a_finished_run_changes_nothing(shell, trained):
    run, source = trained
    before = contents(run)
    assert shell("fit", source, "--out", run, "--resume").status == 0
    assert contents(run) == before


def test_resume_needs_to_know_which_run(shell, source):
    refused(shell("fit", source, "-k", 4, "--resume"), "--resume needs --out", {2})


def test_ctrl_c_ends_with_130_and_leaves_a_checkpoint_to_go_on_from(fit, shell, source, trained, tmp_path, monkeypatch):
    def press(self, step, images_per_second):
        if step == 4:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Watcher, "on_step", press)
        said = fit()
    assert said.status == 130
    assert said.err.splitlines()[-1] == "cdclust: stopped, with a checkpoint; --out FOLDER --resume goes on"
    assert torch.load(tmp_path / "run" / "checkpoint.pt", weights_only=True)["step"] == 4
    assert shell("fit", source, "--out", tmp_path / "run", "--resume", "--device", "cpu").status == 0
    for name in ("model.safetensors", "assignments.csv"):
        assert (tmp_path / "run" / name).read_bytes() == (trained[0] / name).read_bytes()


def test_ctrl_c_before_training_ends_with_130_too(fit, monkeypatch):
    monkeypatch.setattr("cdclust.jobs.setup.load_material", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    assert fit().status == 130


def test_a_run_that_breaks_for_an_unforeseen_reason_says_so_in_one_line(fit, monkeypatch):
    monkeypatch.setattr("cdclust.jobs.setup.load_material", lambda *_, **__: 1 / 0)
    refused(fit(), "ZeroDivisionError: division by zero .*--debug .* shows where", {1})


def test_a_diverged_run_ends_with_1_and_advice(fit):
    said = fit(lr=1e30, epochs=4)
    assert said.status == 1
    assert "diverged" in said.err.splitlines()[-1]
    assert "optimizer.lr" in said.err.splitlines()[-1]


def test_seeds_repeat_the_run_and_are_summed_up(fit, tmp_path, trained):
    assert fit("--seeds", 2).status == 0
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert {path.name for path in (tmp_path / "run").iterdir()} == {"seed-0", "seed-1", "summary.json"}
    for name in ("acc", "nmi", "ari"):
        values = [json.loads((tmp_path / "run" / f"seed-{i}" / "metrics.json").read_text())[name] for i in (0, 1)]
        assert summary[name]["values"] == values
        assert summary[name]["mean"] == pytest.approx(sum(values) / 2)
        assert summary[name]["std"] == pytest.approx(abs(values[0] - values[1]) / 2**0.5)
    weights = [(tmp_path / "run" / f"seed-{i}" / "model.safetensors").read_bytes() for i in (0, 1)]
    assert weights[0] == (trained[0] / "model.safetensors").read_bytes()
    assert weights[0] != weights[1]


def test_json_of_a_fit_is_its_metrics_alone(fit, tmp_path):
    said = fit("--json", **{"head.split": False, "method.framework": "simclr"})
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert json.loads(said.out) == metrics | {"run": str(tmp_path / "run")}


def test_predictions_are_the_runs_own_and_the_same_in_every_format(shell, trained, tmp_path):
    import pyarrow.parquet

    run, source = trained
    for ending in ("csv", "jsonl", "parquet"):
        said = shell(
            "predict", run, source, "--out", tmp_path / f"p.{ending}", "--device", "cpu", "--precision", "fp32"
        )
        assert said.status == 0, said.err
    assert (tmp_path / "p.csv").read_bytes() == (run / "assignments.csv").read_bytes()
    lines = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    rows = list(csv.DictReader((tmp_path / "p.csv").open(newline="")))
    assert [{name: str(value) for name, value in line.items()} for line in lines] == [
        row | {name: str(float(row[name])) for name in ("probability", "second_probability")} for row in rows
    ]
    assert pyarrow.parquet.read_table(tmp_path / "p.parquet").to_pylist() == lines


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_predictions_name_unreadable_images_and_hostile_file_names(shell, trained, tmp_path, pictures, ending):
    folder = tmp_path / "photos"
    folder.mkdir()
    for name, picture in zip(('a"b,c.png', "two\nlines.png", "plain.png"), pictures, strict=False):
        Image.fromarray(picture).save(folder / name)
    (folder / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nand no more")
    if sys.platform == "linux":
        Image.fromarray(pictures[3]).save(os.fsencode(folder) + b"/caf\xe9.png")
    assert shell("predict", trained[0], folder, "--out", tmp_path / f"p.{ending}").status == 0
    if ending == "csv":
        rows = list(csv.DictReader((tmp_path / "p.csv").open(newline="", encoding="utf-8")))
        status = {row["image"]: row["status"] for row in rows}
        assert next(row for row in rows if row["status"] != "ok")["cluster"] == ""
        assert status.pop("broken.png").startswith("unreadable")
        assert {'a"b,c.png', "two\nlines.png", "plain.png"} <= set(status)
        assert set(status.values()) == {"ok"}


def test_every_line_of_the_table_has_its_row_of_embeddings(fit, tmp_path, pictures):
    folder = tmp_path / "photos"
    folder.mkdir()
    for number, picture in enumerate(pictures[:20]):
        Image.fromarray(picture).save(folder / f"{number:02}.png")
    (folder / "05.png").write_bytes(b"no image")
    assert fit(source=folder).status == 0
    rows = list(csv.DictReader((tmp_path / "run" / "assignments.csv").open(newline="")))
    embeddings = np.load(tmp_path / "run" / "embeddings.npy")
    assert rows[5]["status"] != "ok"
    assert len(embeddings) == len(rows) == 20
    assert not embeddings[5].any()
    assert embeddings[6].any()


def test_predictions_are_not_written_over_a_file(shell, trained, tmp_path):
    (tmp_path / "p.csv").write_text("mine")
    refused(shell("predict", *trained, "--out", tmp_path / "p.csv"), "exists already", {1})
    assert (tmp_path / "p.csv").read_text() == "mine"
    refused(shell("predict", *trained, "--out", tmp_path / "p.xlsx"), r"\.csv, \.parquet, \.jsonl", {2})


def test_grey_images_are_assigned_as_their_colour_copies_are(shell, trained, tmp_path, pictures):
    grey = pictures[..., :1]
    np.save(tmp_path / "grey.npy", grey)
    np.save(tmp_path / "colour.npy", grey.repeat(3, axis=3))
    for name in ("grey", "colour"):
        said = shell("predict", trained[0], tmp_path / f"{name}.npy", "--out", tmp_path / f"{name}.csv")
        assert said.status == 0, said.err
    assert (tmp_path / "grey.csv").read_bytes() == (tmp_path / "colour.csv").read_bytes()


def test_a_folder_that_is_no_run_is_refused(shell, source, tmp_path):
    refused(shell("predict", tmp_path, source, "--out", tmp_path / "p.csv"), "is not a run folder", {1})
    refused(shell("evaluate", tmp_path), "is not a run folder", {1})


def test_damaged_weights_are_said_in_words(shell, trained, tmp_path):
    run, source = trained
    for name in ("recipe.yaml", "model.safetensors"):
        (tmp_path / name).write_bytes((run / name).read_bytes()[: None if name == "recipe.yaml" else 100])
    refused(shell("predict", tmp_path, source, "--out", tmp_path / "p.csv"), "model.safetensors cannot be read", {1})


def test_evaluation_without_a_source_gives_the_runs_own_scores(shell, trained):
    found = json.loads(shell("evaluate", trained[0], "--json").out)
    assert found == json.loads((trained[0] / "metrics.json").read_text())
    assert f"ACC {found['acc']:.3f}" in shell("evaluate", trained[0]).out


def test_evaluation_on_the_training_images_gives_the_same_scores_and_tables(shell, trained):
    run, source = trained
    found = json.loads(shell("evaluate", run, source, "--json", "--precision", "fp32").out)
    own = json.loads((run / "metrics.json").read_text())
    for name in ("acc", "nmi", "ari"):
        assert found[name] == pytest.approx(own[name], abs=1e-6)
    assert sum(row["size"] for row in found["clusters"]) == sum(row["size"] for row in found["classes"]) == 48
    assert [row["label"] for row in found["classes"]] == [0, 1, 2, 3]


def test_evaluation_prints_a_row_a_class(shell, trained):
    said = shell("evaluate", *trained, "--precision", "fp32")
    assert said.status == 0, said.err
    assert "ACC" in said.out
    assert [line.split()[:2] for line in said.out.strip().splitlines()[-4:]] == [[str(i), "12"] for i in range(4)]


def test_evaluation_needs_labels(shell, trained, tmp_path, pictures):
    np.save(tmp_path / "unlabelled.npy", pictures)
    refused(shell("evaluate", trained[0], tmp_path / "unlabelled.npy"), "no labels to score against", {1})


def test_recipes_lists_all_and_shows_one(shell):
    listed = shell("recipes")
    assert listed.status == 0
    assert all(name in listed.out for name in shipped())
    shown = shell("recipes", "cifar10")
    alpha = next(line for line in shown.out.splitlines() if "objective.alpha " in line)
    assert alpha.split()[:3] == ["objective.alpha", "5.0", "paper"]
    refused(shell("recipes", "cifar-10"), "did you mean cifar10", {1})


def test_doctor_says_what_would_be_used(shell):
    found = json.loads(shell("doctor", "--json").out)
    assert found["torch"] == torch.__version__.split("+")[0] or found["torch"] == torch.__version__
    assert "device used" in shell("doctor").out


def test_help_comes_without_torch():
    script = (
        "import sys; from cdclust.cli import main; sys.argv = ['cdclust', '--help']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "heavy = {'torch', 'sklearn', 'numpy', 'torchvision', 'timm'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    for command in ("demo", "fit", "predict", "evaluate", "recipes", "doctor"):
        assert command in done.stdout


def test_a_run_is_taken_away_from_where_its_images_are(shell, trained, tmp_path, pictures):
    run, _ = trained
    said = shell("apply", run, "--out", tmp_path / "sorted", "--json")
    assert said.status == 0, said.err
    found = json.loads(said.out)
    own = json.loads((run / "metrics.json").read_text())
    assert [found["sizes"].get(str(k), 0) for k in range(4)] == own["cluster_sizes"]
    for row in csv.DictReader((tmp_path / "sorted" / "labels.csv").open(newline="")):
        with Image.open(tmp_path / "sorted" / row["file"]) as image:
            np.testing.assert_array_equal(np.asarray(image), pictures[int(row["image"])])
    refused(shell("apply", run, "--out", tmp_path / "sorted"), "is not empty", {1})
    refused(shell("apply", run, "--format", "yolo"), "--format yolo", {2})


def test_names_are_shown_everywhere_and_never_as_markup(shell, trained, tmp_path, source):
    run = tmp_path / "named"
    shutil.copytree(trained[0], run)
    names = {k: f"[red]K{k}[/red]" for k in range(4)}
    (run / "names.csv").write_text("cluster,name\n" + "".join(f"{k},{name}\n" for k, name in names.items()))
    for words in (["predict", run, source, "--out", tmp_path / "p.csv"], ["evaluate", run], ["evaluate", run, source]):
        said = shell(*words)
        assert said.status == 0, said.err
        assert "[red]K" in said.out, words
    assert "[red]K" in shell("apply", run, "--out", tmp_path / "labels.jsonl").out
    for row in csv.DictReader((tmp_path / "p.csv").open(newline="")):
        assert row["name"] == names[int(row["cluster"])]
    for line in (tmp_path / "labels.jsonl").read_text().splitlines():
        assert json.loads(line)["name"] == names[json.loads(line)["cluster"]]
    (run / "names.csv").write_text("cluster,name\n9,cats\n")
    refused(shell("predict", run, source, "--out", tmp_path / "q.csv"), "names.csv, line 2: '9' is no cluster", {1})


def test_json_of_a_prediction_counts_what_the_table_holds(shell, trained, tmp_path):
    said = shell("predict", *trained, "--out", tmp_path / "p.csv", "--json")
    found = json.loads(said.out)
    rows = list(csv.DictReader((tmp_path / "p.csv").open(newline="")))
    assert found["sizes"] == {k: n for k in "0123" if (n := sum(row["cluster"] == k for row in rows))}
    assert (found["n_images"], found["n_unreadable"]) == (48, 0)


@pytest.fixture
def aloud(monkeypatch):
    """Whatever --quiet does ends with the test."""
    monkeypatch.setattr(screen, "quiet", False)
    monkeypatch.setattr(screen.out, "quiet", False)


@pytest.mark.parametrize("place", ["before", "after"])
def test_quiet_prints_nothing_but_what_json_asks_for(shell, trained, aloud, place):
    def command(*words):
        return shell("--quiet", *words) if place == "before" else shell(*words, "-q")

    assert command("evaluate", trained[0]) == (said := command("recipes"))
    assert (said.status, said.out, said.err) == (0, "", "")
    assert json.loads(command("evaluate", trained[0], "--json").out)["n_images"] == 48


def test_a_quiet_run_still_says_what_is_wrong(fit, aloud, tmp_path):
    said = fit("--quiet", **{"objective.alpha": 0.0})
    assert (said.status, said.out) == (0, "")
    assert all(line.startswith("warning: ") for line in said.err.splitlines())
    refused(fit("--quiet"), "exists already", {1})


def test_recipes_are_data_with_json(shell):
    assert json.loads(shell("recipes", "--json").out).keys() == set(shipped())
    assert json.loads(shell("recipes", "cifar10", "--json").out)["objective"]["alpha"] == 5.0
