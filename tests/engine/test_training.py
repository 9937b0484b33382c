"""The loop: what a run leaves, that it goes on bit for bit where it was stopped, and that it says when it broke."""

import pytest
import torch
from torch import nn

from cdclust.engine.checkpoint import Checkpoints
from cdclust.engine.compute import resolve_compute
from cdclust.engine.feed import ImageFeed
from cdclust.engine.interrupt import Interrupted, StopFlag
from cdclust.engine.train import Trainer
from cdclust.engine.watch import Diverged
from cdclust.jobs.listeners import Silent
from cdclust.jobs.setup import build_network, build_views

CPU = torch.device("cpu")
UNTIMED = ("seconds", "images_per_second")


class Killed(Exception):
    """The process is gone: nothing runs after this, no checkpoint is written."""


class Log(Silent):
    """Keeps the figures of each epoch, as the run folder's log does, and kills the run behind a step."""

    def __init__(self, kill_at: int | None = None) -> None:
        self.lines, self.cautions, self.kill_at, self.steps = {}, [], kill_at, []

    def on_start(self, step, total, steps_per_epoch):
        self.lines = {epoch: line for epoch, line in self.lines.items() if line["step"] <= step}

    def on_step(self, step, images_per_second):
        self.steps.append(step)
        if step == self.kill_at:
            raise Killed

    def on_epoch(self, figures, cautions):
        self.lines[figures["epoch"]] = {name: value for name, value in figures.items() if name not in UNTIMED}
        self.cautions.append(cautions)


@pytest.fixture
def trainer(small, pictures, tmp_path):
    """trainer(changes, log): a trainer that goes on from tmp_path's checkpoint, in a network with dropout."""

    def build(changes=None, log=None, every_seconds=0.0, folder=None, score=None) -> Trainer:
        recipe = small({"epochs": 3, **(changes or {})})
        method = build_network(recipe)
        method.encoder.head.append(nn.Dropout(0.2))
        images = torch.from_numpy(pictures).permute(0, 3, 1, 2).contiguous()
        checkpoints = Checkpoints((folder or tmp_path) / "checkpoint.pt", "mine", every_seconds)
        compute = resolve_compute("cpu", "fp32")
        feed = ImageFeed(images, build_views(recipe), compute, recipe.training.channels_last)
        return Trainer(method, feed, recipe, compute, log or Log(), checkpoints, score)

    return build


RUNS = {
    "moco-v2 with a queue": {"method.framework": "moco-v2", "objective.sinkhorn_queue": 20},
    "simclr with adamw": {"method.framework": "simclr", "optimizer.name": "adamw", "warmup_epochs": 1},
    "moco-v3 with lars": {"method.framework": "moco-v3", "optimizer.name": "lars", "momentum_to_one": True},
    "plain moco-v2": {"method.framework": "moco-v2", "head.split": False},
}
all_runs = pytest.mark.parametrize("changes", RUNS.values(), ids=RUNS)


def state(trainer: Trainer) -> dict[str, torch.Tensor]:
    """Every tensor that decides what comes next: weights, statistics, twin, queue, moments of the optimiser."""
    found = dict(trainer.method.state_dict())
    for index, values in trainer.optimizer.state_dict()["state"].items():
        found |= {f"optimizer.{index}.{name}": torch.as_tensor(v) for name, v in values.items() if v is not None}
    return found


def same(one: Trainer, other: Trainer) -> None:
    a, b = state(one), state(other)
    assert a.keys() == b.keys()
    assert [name for name in a if not torch.equal(a[name], b[name])] == []


@all_runs
@pytest.mark.parametrize("stopped_at", [1, 3, 5, 8])
def test_a_run_that_was_stopped_and_resumed_is_bit_identical(trainer, tmp_path, changes, stopped_at):
    log, stop = Log(), StopFlag()
    log.on_step = lambda step, _: setattr(stop, "set", step >= stopped_at)
    with pytest.raises(Interrupted):
        trainer(changes, log, every_seconds=1e9).train(stop)
    assert torch.load(tmp_path / "checkpoint.pt", weights_only=True)["step"] == stopped_at
    log.on_step = lambda step, _: None
    resumed = trainer(changes, log)
    resumed.train()
    (tmp_path / "whole").mkdir()
    whole_log = Log()
    whole = trainer(changes, whole_log, folder=tmp_path / "whole")
    whole.train()
    same(resumed, whole)
    assert log.lines == whole_log.lines


@pytest.mark.parametrize("kills", [[1], [4, 5, 6], [2, 7], [9]])
def test_a_run_that_lost_its_last_steps_repeats_them_bit_for_bit(trainer, tmp_path, kills):
    log = Log()
    for number, kill_at in enumerate(kills):
        log.kill_at = kill_at
        attempt = trainer(None, log)
        attempt.checkpoints.due = lambda number=number: number == 0  # only the first attempt leaves any
        with pytest.raises(Killed):
            attempt.train()
    log.kill_at = None
    resumed = trainer(None, log)
    resumed.train()
    (tmp_path / "whole").mkdir()
    whole_log = Log()
    whole = trainer(None, whole_log, folder=tmp_path / "whole")
    whole.train()
    same(resumed, whole)
    assert log.lines == whole_log.lines


def test_a_finished_run_does_not_train_again(trainer):
    trainer().train()
    log = Log()
    again = trainer(log=log)
    again.train()
    assert log.steps == []
    assert again.progress.step == 9


def test_scoring_changes_nothing_that_is_trained(trainer, tmp_path):
    (tmp_path / "scored").mkdir()

    def score() -> dict[str, float]:
        scored.method.eval()
        torch.rand(7)
        return {"acc": 0.5}

    log = Log()
    scored = trainer({"evaluate_every": 1}, log, folder=tmp_path / "scored", score=score)
    plain = trainer()
    scored.train()
    plain.train()
    same(scored, plain)
    assert [line["acc"] for line in log.lines.values()] == [0.5] * 3


def test_scores_are_asked_for_as_often_as_said_and_at_the_end(trainer):
    log = Log()
    trainer({"evaluate_every": 2}, log, score=lambda: {"acc": 0.5}).train()
    assert ["acc" in line for line in log.lines.values()] == [False, True, True]


def test_checkpoints_are_written_when_they_are_due_and_at_the_end(trainer, tmp_path):
    t, saved = trainer(every_seconds=1e9), []
    t.checkpoints.save = lambda state: saved.append(state["step"])
    t.train()
    assert saved == [9]


def test_the_loss_falls_on_images_that_differ(trainer):
    log = Log()
    trainer({"method.framework": "simclr", "epochs": 15, "lr": 0.1, "batch_norm": True}, log, every_seconds=1e9).train()
    losses = [line["loss"] for line in log.lines.values()]
    assert losses[-1] < losses[0] - 0.5


def test_another_seed_is_another_run(trainer, tmp_path):
    (tmp_path / "other").mkdir()
    one, other = trainer(), trainer({"seed": 1}, folder=tmp_path / "other")
    one.train()
    other.train()
    assert not torch.equal(next(one.method.parameters()), next(other.method.parameters()))


def test_clipping_bounds_the_step(trainer):
    log = Log(kill_at=1)
    t = trainer({"clip": 1e-3, "lr": 1.0, "weight_decay": 0, "momentum_to_one": False}, log)
    before = torch.cat([p.detach().flatten() for p in t.method.encoder.parameters()])
    with pytest.raises(Killed):
        t.train()
    after = torch.cat([p.detach().flatten() for p in t.method.encoder.parameters()])
    assert (after - before).norm() == pytest.approx(1e-3, rel=1e-3)


def poison_loss(t: Trainer, at: int) -> None:
    """The loss of one step is no number."""
    step = t.method.step

    def poisoned(views):
        losses = step(views)
        if t.progress.step == at:
            losses.total = losses.total * float("nan")
        return losses

    t.method.step = poisoned


def poison_weights(t: Trainer, at: int) -> None:
    """The loss is still finite, and the step behind it makes a weight infinite."""
    step = t.optimizer.step

    def poisoned(*args, **kwargs):
        step(*args, **kwargs)
        if t.progress.step == at:
            next(t.method.encoder.parameters()).data[0] = float("inf")

    t.optimizer.step = poisoned


@pytest.mark.parametrize("poison", [poison_loss, poison_weights])
@pytest.mark.parametrize("at", [4, 8])
def test_a_diverged_run_stops_in_words_and_keeps_its_last_good_checkpoint(trainer, tmp_path, poison, at):
    t = trainer()
    poison(t, at)
    with pytest.raises(Diverged, match=r"diverged in epoch \d.*optimizer\.lr"):
        t.train()
    kept = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    assert kept["step"] == at
    assert all(torch.isfinite(value).all() for value in kept["model"].values())


def test_nan_is_noticed_within_the_epoch_even_when_no_checkpoint_is_due(trainer, tmp_path):
    log = Log()
    t = trainer(log=log, every_seconds=1e9)
    poison_loss(t, at=1)
    with pytest.raises(Diverged, match="epoch 1"):
        t.train()
    assert log.lines == {}
    assert not (tmp_path / "checkpoint.pt").exists()


def test_a_collapse_is_said_at_the_end_of_its_epoch(trainer):
    log = Log()
    t = trainer({"epochs": 1}, log)
    with torch.no_grad():
        last, dropout = list(t.method.encoder.head)[-2:]
        dropout.p = 0.0
        last.weight.zero_()
        last.bias.copy_(torch.arange(12.0))
    t.optimizer.step = lambda *args, **kwargs: None
    t.train()
    assert any("in one cluster" in caution for caution in log.cautions[0])
