"""Several networks, of which the one with the lowest loss is kept."""

import json

import numpy as np
import pytest

from cdclust.engine.compute import resolve_compute
from cdclust.jobs.fit import fit
from cdclust.jobs.listeners import Silent
from cdclust.run import Run


def run_of(source, recipe, out, **options) -> Run:
    return fit(
        source, recipe, out, resolve_compute("cpu", "fp32"), listener=options.pop("listener", Silent()), **options
    )


def last_losses(run: Run, attempts: int) -> list[float]:
    return [Run(run.file(f"attempt-{number}")).log()[-1]["loss"] for number in range(attempts)]


def without_times(log: list[dict]) -> list[dict]:
    return [{k: v for k, v in line.items() if k not in ("seconds", "images_per_second")} for line in log]


@pytest.fixture(scope="module")
def three(small, pictures, tmp_path_factory) -> Run:
    return run_of(pictures, small({"attempts": 3}), tmp_path_factory.mktemp("attempts") / "run")


def test_the_first_attempt_is_the_run_that_would_have_been_the_only_one(three, small, pictures, tmp_path):
    alone = run_of(pictures, small(), tmp_path / "alone")
    assert without_times(Run(three.file("attempt-0")).log()) == without_times(alone.log())


def test_attempts_start_from_different_weights(three):
    assert len(set(last_losses(three, 3))) == 3


def test_the_lowest_loss_of_the_last_epoch_is_kept(three):
    losses = last_losses(three, 3)
    protocol = three.metrics()["protocol"]
    assert protocol["losses_of_attempts"] == losses
    assert three.log() == Run(three.file(f"attempt-{int(np.argmin(losses))}")).log()


def test_the_run_keeps_its_own_seed(three):
    assert three.metrics()["protocol"]["seed"] == 0


def test_seconds_are_those_of_all_attempts(three):
    each = [Run(three.file(f"attempt-{number}")).log()[-1]["seconds"] for number in range(3)]
    assert three.metrics()["seconds"] >= sum(each) - 0.01


class Fails(Silent):
    """Breaks the run off in the middle of the second attempt."""

    attempt = 0

    def on_attempt(self, number: int, of: int) -> None:
        self.attempt = number

    def on_step(self, step: int, images_per_second: float) -> None:
        if self.attempt == 1 and step == 4:
            raise KeyboardInterrupt


def test_a_run_broken_off_in_its_second_attempt_ends_as_if_it_had_not_been(three, small, pictures, tmp_path):
    recipe = small({"attempts": 3, "checkpoint_seconds": 0})
    with pytest.raises(KeyboardInterrupt):
        run_of(pictures, recipe, tmp_path / "run", listener=Fails())
    assert not (tmp_path / "run" / "metrics.json").exists()
    resumed = run_of(pictures, recipe, tmp_path / "run", resume=True)
    for name in ("model.safetensors", "assignments.csv", "embeddings.npy"):
        assert resumed.file(name).read_bytes() == three.file(name).read_bytes(), name


def test_a_finished_run_refuses_other_images(three, small, pictures):
    with pytest.raises(Exception, match="other images"):
        run_of(pictures[::-1].copy(), small({"attempts": 3}), three.path, resume=True)


def test_one_attempt_says_nothing_of_a_choice(small, pictures, tmp_path):
    run = run_of(pictures, small(), tmp_path / "run")
    assert "chosen_by" not in json.loads(run.file("metrics.json").read_text())["protocol"]
