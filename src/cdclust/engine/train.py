"""The training loop: read it from top to bottom."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from cdclust.engine.checkpoint import Checkpoints
from cdclust.engine.compute import Compute
from cdclust.engine.feed import Feed
from cdclust.engine.interrupt import Interrupted, StopFlag
from cdclust.engine.optim import build_optimizer, lr_factor
from cdclust.engine.order import batches, generator, mix
from cdclust.engine.seeding import seed_clusters
from cdclust.engine.watch import Watch, check_weights, warnings
from cdclust.methods import Losses, Method
from cdclust.recipe import Recipe

CHECK_EVERY = 50  # steps between looks at the losses, each of which waits for the device


class Listener(Protocol):
    """Who is told how a run goes."""

    def on_attempt(self, number: int, of: int) -> None:
        """One of several networks is trained next, counted from 0."""

    def on_start(self, step: int, total: int, steps_per_epoch: int) -> None:
        """Training starts, or goes on, at `step`."""

    def on_step(self, step: int, images_per_second: float) -> None:
        """A step is done."""

    def on_epoch(self, figures: dict[str, float], cautions: list[str]) -> None:
        """An epoch is done: its figures, and what looks wrong."""

    def on_work(self, what: str, done: int, total: int) -> None:
        """Something else than training takes its time: reading, assigning."""


@dataclass
class Progress:
    """Where training is; a checkpoint holds it."""

    step: int = 0
    seconds: float = 0.0


class Trainer:
    """Trains `method` on what `feed` gives, from the last checkpoint where there is one.

    `score` is asked on clean images every `evaluate_every` epochs; what it answers is logged and never used.
    """

    def __init__(
        self,
        method: Method,
        feed: Feed,
        recipe: Recipe,
        compute: Compute,
        listener: Listener,
        checkpoints: Checkpoints | None = None,
        score: Callable[[], dict[str, float]] | None = None,
    ) -> None:
        self.recipe, self.settings, self.compute = recipe, recipe.training, compute
        self.steps_per_epoch = len(feed) // self.settings.batch_size
        self.total = self.steps_per_epoch * self.settings.epochs
        objective = recipe.objective
        seeds = recipe.head.split and objective.pretext > 0 and objective.seeding_starts > 0
        self.seeding_step = math.ceil(objective.pretext * self.total) if seeds else -1
        self.method = prepare(method, compute, self.settings.channels_last)
        self.feed = feed
        self.listener, self.checkpoints, self.score = listener, checkpoints, score
        self.optimizer = build_optimizer(recipe.optimizer, method)
        self.scaler = torch.amp.GradScaler(compute.device.type, enabled=compute.precision == "fp16")
        self.watch, self.progress = Watch(recipe.n_clusters), Progress()

    def train(self, stop: StopFlag | None = None) -> Progress:
        """To the end, or until `stop` is set."""
        if self.settings.threads:
            torch.set_num_threads(self.settings.threads)  # tiny networks lose more by sharing than they win
        self._restore()
        self.method.train()
        self.listener.on_start(self.progress.step, self.total, self.steps_per_epoch)
        first, place = divmod(self.progress.step, self.steps_per_epoch)
        for epoch in range(first, self.settings.epochs):
            order = batches(len(self.feed), self.settings.batch_size, self.recipe.seed, epoch)
            for rows in order[place:]:
                start = time.perf_counter()
                if self.progress.step == self.seeding_step:
                    self._seed_clusters()
                self.watch.add(self._step(rows))
                self.progress.step += 1
                if self.progress.step % CHECK_EVERY == 0:
                    self.watch.check(epoch, self.progress.step)
                self.progress.seconds += time.perf_counter() - start
                self.listener.on_step(self.progress.step, self._images_per_second())
                if self.progress.step % self.steps_per_epoch == 0:
                    self._end_epoch(epoch)
                self._pause(epoch, stop)
            place = 0
        return self.progress

    def _step(self, rows: Tensor) -> Losses:
        """One batch: two views, the losses, a move of the weights."""
        step, seed = self.progress.step, self.recipe.seed
        # All chance in a step comes from its number: views here, shuffles and dropout from the global generator.
        torch.manual_seed(mix(seed, "step", step))
        pretext = step < self.recipe.objective.pretext * self.total
        views = self.feed.views(rows, generator(seed, "views", step), pretext)

        self.method.progress = step / self.total
        for group in self.optimizer.param_groups:
            group["lr"] = self._lr()

        losses = self.method.step(views)
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(losses.total).backward()  # type: ignore[no-untyped-call]
        if self.recipe.optimizer.clip:
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.method.parameters(), self.recipe.optimizer.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.method.after_step()
        return losses

    def _seed_clusters(self) -> None:
        """The pretext part is over. A run resumed at this very step comes by here again, from the same state."""
        self.watch.check(self.progress.step // self.steps_per_epoch, self.progress.step)
        check_weights(self.method, self.progress.step // self.steps_per_epoch)
        chance = generator(self.recipe.seed, "clusters")
        seed_clusters(self.method, self.feed, self.optimizer, chance)

    def _lr(self) -> float:
        settings = self.recipe.optimizer
        warmup = math.ceil(settings.warmup_epochs * self.steps_per_epoch)
        return settings.lr * lr_factor(self.progress.step, self.total, warmup, settings.schedule)

    def _images_per_second(self) -> float:
        return self.progress.step * self.settings.batch_size / max(self.progress.seconds, 1e-9)

    def _end_epoch(self, epoch: int) -> None:
        self.watch.check(epoch, self.progress.step)
        figures = {"epoch": epoch + 1, "step": self.progress.step, **self.watch.figures(), "lr": self._lr()}
        pretext = self.progress.step <= self.recipe.objective.pretext * self.total
        n_negatives = self.method.n_negatives(self.settings.batch_size)
        cautions = warnings(figures, n_negatives, self.recipe.n_clusters, pretext)
        figures |= {"seconds": self.progress.seconds, "images_per_second": self._images_per_second()}
        if self.score and ((epoch + 1) % self.settings.evaluate_every == 0 or self.progress.step == self.total):
            figures |= self.score()
            self.method.train()
        self.listener.on_epoch(figures, cautions)
        self.watch = Watch(self.recipe.n_clusters)

    def _pause(self, epoch: int, stop: StopFlag | None) -> None:
        """Leave a checkpoint when it is time, at the end, and before stopping."""
        stopping = stop is not None and stop.set
        if self.checkpoints and (stopping or self.progress.step == self.total or self.checkpoints.due()):
            self.watch.check(epoch, self.progress.step)  # a diverged state must not replace a good one
            check_weights(self.method, epoch)
            self.checkpoints.save(
                {name: part.state_dict() for name, part in self._parts().items()} | vars(self.progress)
            )
        if stopping:
            raise Interrupted

    def _restore(self) -> None:
        if self.checkpoints and (saved := self.checkpoints.load(self.compute.device)):
            for name, part in self._parts().items():
                part.load_state_dict(saved[name])
            self.progress = Progress(saved["step"], saved["seconds"])

    def _parts(self) -> dict[str, Any]:
        return {"model": self.method, "optimizer": self.optimizer, "scaler": self.scaler, "watch": self.watch}


def prepare(method: Method, compute: Compute, channels_last: bool) -> Method:
    """The method on its device, in the layout and precision of its networks."""
    method.to(compute.device)
    if channels_last:
        method.to(memory_format=torch.channels_last)
    method.autocast = compute.autocast
    return method
