"""A run as it goes: a live line in a terminal, plain lines where nobody looks."""

import time
from collections.abc import Iterable
from pathlib import Path

from rich.console import RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from cdclust.console import screen
from cdclust.console.screen import err

PLAIN_SECONDS = 30.0  # between lines where the output is no terminal
SHOWN = (
    ("loss", "loss"),
    ("cross_entropy_over_ln_k", "CE/ln K"),
    ("size_entropy", "evenness"),
    ("confidence", "confidence"),
    ("acc", "ACC"),
)


class _WithFigures(Progress):
    """A bar, and the figures of health on a line below it, so that neither is cut in a narrow terminal."""

    def get_renderables(self) -> Iterable[RenderableType]:
        """One line each."""
        yield self.make_tasks_table(self.tasks)
        for task in self.tasks:
            if figures := task.fields["figures"]:
                yield Text(f"  {figures}", style="dim")


class Watcher:
    """Draws a run's progress with a time left; warnings are said once each."""

    def __init__(self, title: str, folder: Path | None = None) -> None:
        self.title, self.folder = title, folder
        self.quiet = screen.quiet
        self.live = err.is_terminal and not self.quiet
        self.bar = _WithFigures(
            TextColumn("{task.description}", markup=False, table_column=Column(max_width=30, no_wrap=True)),
            BarColumn(bar_width=20),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TextColumn("epochs"),
            TimeRemainingColumn(elapsed_when_finished=False, table_column=Column(no_wrap=True, min_width=7)),
            TextColumn("left"),
            TextColumn("{task.fields[speed]}", markup=False, table_column=Column(no_wrap=True)),
            console=err,
            transient=True,
        )
        self._said: set[str] = set()
        self._work: Progress | None = None
        self._last = time.monotonic()
        self._start = (0, time.monotonic())
        self._total = self._per_epoch = 1
        self._name = title

    def on_attempt(self, number: int, of: int) -> None:
        """Say from now on which network it is."""
        self._name = f"{self.title}, network {number + 1} of {of}"

    def on_start(self, step: int, total: int, steps_per_epoch: int) -> None:
        """Show an empty bar, or one that starts where the run goes on."""
        self._start, self._total, self._per_epoch = (step, time.monotonic()), total, steps_per_epoch
        if self.folder is not None:
            self._say(f"{self.title}: run folder {self.folder}")
            self.folder = None  # said once
        if 0 < step < total:
            self._say(f"{self._name}: going on from epoch {step // steps_per_epoch} of {total // steps_per_epoch}")
        if self.live and step < total:
            self.bar.start()
            epochs = total / steps_per_epoch
            for task in self.bar.task_ids:
                self.bar.remove_task(task)
            self._task = self.bar.add_task(
                self._name, total=round(epochs), completed=step // steps_per_epoch, speed="", figures=""
            )

    def on_step(self, step: int, images_per_second: float) -> None:
        """Move the bar."""
        if self.live:
            done = step / self._per_epoch
            self.bar.update(self._task, completed=round(done, 2), speed=f"{images_per_second:,.0f} images/s")
            if step == self._total:
                self.bar.stop()

    def on_epoch(self, figures: dict[str, float], cautions: list[str]) -> None:
        """Show the figures, and anything that looks wrong."""
        shown = "  ".join(f"{label} {figures[name]:.3f}" for name, label in SHOWN if name in figures)
        if self.live:
            self.bar.update(self._task, figures=shown)
        elif time.monotonic() - self._last > PLAIN_SECONDS or figures["step"] == self._total:
            self._last = time.monotonic()
            left = self._seconds_left(int(figures["step"]))
            self._say(
                f"{self._name}: epoch {figures['epoch']:.0f}/{self._total // self._per_epoch}, {left} left, {shown}"
            )
        for caution in cautions:
            if caution not in self._said:
                self._said.add(caution)
                err.print(f"warning: epoch {figures['epoch']:.0f}: {caution}", style="yellow")

    def on_work(self, what: str, done: int, total: int) -> None:
        """A bar of its own for what is not training; a line now and then where nobody looks."""
        if not self.live:
            if time.monotonic() - self._last > PLAIN_SECONDS:
                self._last = time.monotonic()
                self._say(f"{self.title}: {what}, {done:,} of {total:,}")
            return
        if self._work is None:
            columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=20), MofNCompleteColumn())
            self._work = Progress(*columns, TimeRemainingColumn(), TextColumn("left"), console=err, transient=True)
            self._work.add_task(f"{self.title}: {what}", total=total)
            self._work.start()
        self._work.update(self._work.task_ids[0], completed=done)
        if done >= total:
            self._work.stop()
            self._work = None

    def _say(self, line: str) -> None:
        if not self.quiet:
            err.print(line)

    def _seconds_left(self, step: int) -> str:
        first, began = self._start
        seconds = (time.monotonic() - began) / max(1, step - first) * (self._total - step)
        return time.strftime("%H:%M:%S", time.gmtime(seconds))

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._work is not None:
            self._work.stop()
        if self.live:
            self.bar.stop()
