"""What the shell shows: a live line while training, plain lines where nobody looks, tables at the end."""

import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column, Table

from cdclust.recipe import FIELDS, Recipe, described

PLAIN_SECONDS = 30.0  # between lines where the output is no terminal
MOST_OF_A_NAME = max(map(len, FIELDS))  # a field's name is to be typed, and so is never cut
SHOWN = (
    ("loss", "loss"),
    ("cross_entropy_over_ln_k", "CE/ln K"),
    ("size_entropy", "evenness"),
    ("confidence", "confidence"),
    ("acc", "ACC"),
)

# File names and messages are data: nothing in them is markup.
out = Console(highlight=False, markup=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


class Watcher:
    """Draws a run's progress with a time left; warnings are said once each."""

    def __init__(self, title: str, folder: Path | None = None) -> None:
        self.title, self.folder = title, folder
        self.live = err.is_terminal
        self.bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("epochs"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False),
            TextColumn("{task.fields[speed]}  {task.fields[figures]}", markup=False),
            console=err,
            transient=True,
        )
        self._said: set[str] = set()
        self._work: Progress | None = None
        self._last = time.monotonic()
        self._start = (0, time.monotonic())
        self._total = self._per_epoch = 1

    def on_start(self, step: int, total: int, steps_per_epoch: int) -> None:
        """Show an empty bar, or one that starts where the run goes on."""
        self._start, self._total, self._per_epoch = (step, time.monotonic()), total, steps_per_epoch
        if self.folder is not None:
            err.print(f"{self.title}: run folder {self.folder}")
        if step:
            err.print(f"{self.title}: going on from epoch {step // steps_per_epoch} of {total // steps_per_epoch}")
        if self.live:
            self.bar.start()
            epochs = total / steps_per_epoch
            self._task = self.bar.add_task(
                self.title, total=round(epochs), completed=step // steps_per_epoch, speed="", figures=""
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
            err.print(
                f"{self.title}: epoch {figures['epoch']:.0f}/{self._total // self._per_epoch}, {left} left, {shown}"
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
                err.print(f"{self.title}: {what}, {done:,} of {total:,}")
            return
        if self._work is None:
            columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
            self._work = Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=err, transient=True)
            self._work.add_task(f"{self.title}: {what}", total=total)
            self._work.start()
        self._work.update(self._work.task_ids[0], completed=done)
        if done >= total:
            self._work.stop()
            self._work = None

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


def show_metrics(metrics: dict[str, Any]) -> None:
    """The scores, where there are labels, and a bar a cluster."""
    protocol = metrics["protocol"]
    out.print(f"{metrics['n_images']:,} images of {protocol['trained_on']}, {metrics['n_clusters']} clusters")
    if "acc" in metrics:
        scores = "  ".join(f"{name.upper()} {metrics[name]:.3f}" for name in ("acc", "nmi", "ari"))
        where = f"on {protocol['split']} ({protocol['n_scored']:,} images), last epoch"
        out.print(f"{scores}  {where}", style="bold")
    table = Table("cluster", "images", "", box=None, header_style="dim")
    sizes = metrics["cluster_sizes"]
    for cluster, size in sorted(enumerate(sizes), key=lambda pair: -pair[1])[:40]:
        table.add_row(str(cluster), f"{size:,}", "█" * round(30 * size / max(sizes)))
    out.print(table)
    if metrics["n_unreadable"]:
        out.print(
            f"{metrics['n_unreadable']:,} of {metrics['n_images']:,} images could not be read; see assignments.csv"
        )
    for note in (*metrics["notes"], *metrics["warnings"]):
        out.print(f"note: {note}", style="yellow")


def show_comparison(rows: dict[str, dict[str, float]]) -> None:
    """Methods below each other, the best last."""
    table = Table("", "ACC", "NMI", "ARI", "seconds", box=None, header_style="dim")
    for name, row in rows.items():
        cells = [f"{row[key]:.3f}" for key in ("acc", "nmi", "ari")]
        table.add_row(name, *cells, f"{row['seconds']:.1f}")
    out.print(table)


def show_summary(summary: dict[str, Any]) -> None:
    """Mean and standard deviation over seeds."""
    table = Table("", "mean", "std", "each seed", box=None, header_style="dim")
    for name, entry in summary.items():
        values = " ".join(f"{value:.3f}" for value in entry["values"])
        table.add_row(name, f"{entry['mean']:.3f}", f"{entry['std']:.3f}", values)
    out.print(table)


def show_scores(found: dict[str, Any]) -> None:
    """Scores of an evaluation, and a row a class."""
    scores = "  ".join(f"{name.upper()} {found[name]:.3f}" for name in ("acc", "nmi", "ari"))
    purity = f"purity (many-to-one) {found['purity']:.3f}"
    out.print(f"{scores}  {purity}  on {found['split']} ({found['n_images']:,} images)", style="bold")
    table = Table("class", "images", "cluster", "recall", "precision", box=None, header_style="dim")
    names = found["class_names"]
    for row in found["classes"]:
        label = names[row["label"]] if names else str(row["label"])
        cluster = "-" if row["matched"] is None else str(row["matched"])
        table.add_row(label, f"{row['size']:,}", cluster, f"{row['recall']:.3f}", f"{row['precision']:.3f}")
    out.print(table)


def show_recipes(about: dict[str, str]) -> None:
    """Names and what they are for."""
    table = Table("recipe", "", box=None, header_style="dim")
    for name, text in about.items():
        table.add_row(name, text)
    out.print(table)


def show_recipe(recipe: Recipe) -> None:
    """Every field with its value, where the value is from, and what the field means."""
    out.print(f"{recipe.name}: {recipe.about}", style="bold")
    table = Table(
        Column("field", no_wrap=True, min_width=MOST_OF_A_NAME),
        "value",
        "from",
        "meaning",
        box=None,
        header_style="dim",
    )
    for field, value, meaning in described(recipe):
        table.add_row(field, str(value), recipe.origin.get(field, "default"), meaning)
    out.print(table)


def show_examination(found: dict[str, Any]) -> None:
    """What the doctor found."""
    table = Table("", "", box=None, show_header=False)
    for name, value in found.items():
        table.add_row(name, str(value))
    out.print(table)
