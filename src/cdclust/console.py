"""What the shell shows: a live line while training, plain lines where nobody looks, tables at the end."""

import time
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from cdclust.recipe import Recipe, described

PLAIN_SECONDS = 30.0  # between lines where the output is no terminal
SHOWN = (
    ("loss", "loss"),
    ("cross_entropy_over_ln_k", "CE/ln K"),
    ("size_entropy", "evenness"),
    ("confidence", "confidence"),
    ("acc", "ACC"),
)

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


class Watcher:
    """Draws a run's progress with a time left; warnings are said once each."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.live = err.is_terminal
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("epochs"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False),
            TextColumn("{task.fields[speed]} [dim]{task.fields[figures]}"),
            console=err,
            transient=True,
        )
        self._said: set[str] = set()
        self._last = time.monotonic()
        self._start = (0, time.monotonic())
        self._total = self._per_epoch = 1

    def on_start(self, step: int, total: int, steps_per_epoch: int) -> None:
        """Show an empty bar, or one that starts where the run goes on."""
        self._start, self._total, self._per_epoch = (step, time.monotonic()), total, steps_per_epoch
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
                err.print(f"[yellow]warning:[/] epoch {figures['epoch']:.0f}: {escape(caution)}", soft_wrap=True)

    def _seconds_left(self, step: int) -> str:
        first, began = self._start
        seconds = (time.monotonic() - began) / max(1, step - first) * (self._total - step)
        return time.strftime("%H:%M:%S", time.gmtime(seconds))

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self.live:
            self.bar.stop()


def show_metrics(metrics: dict[str, Any]) -> None:
    """The scores, where there are labels, and a bar a cluster."""
    protocol = metrics["protocol"]
    if "acc" in metrics:
        scores = "  ".join(f"{name.upper()} {metrics[name]:.3f}" for name in ("acc", "nmi", "ari"))
        out.print(
            f"[bold]{scores}[/]  on {protocol['split']} ({protocol['n_scored']:,} images), last epoch", soft_wrap=True
        )
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
        out.print(f"[yellow]note:[/] {escape(note)}", soft_wrap=True)


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
    out.print("  ".join(f"{name.upper()} {found[name]:.3f}" for name in ("acc", "nmi", "ari", "purity")))
    table = Table("class", "images", "cluster", "recall", "precision", box=None, header_style="dim")
    names = found["class_names"]
    for row in found["classes"]:
        label = names[row["label"]] if names else str(row["label"])
        cluster = "-" if row["matched"] is None else str(row["matched"])
        table.add_row(escape(label), f"{row['size']:,}", cluster, f"{row['recall']:.3f}", f"{row['precision']:.3f}")
    out.print(table)


def show_recipes(about: dict[str, str]) -> None:
    """Names and what they are for."""
    table = Table("recipe", "", box=None, header_style="dim")
    for name, text in about.items():
        table.add_row(name, escape(text))
    out.print(table)


def show_recipe(recipe: Recipe) -> None:
    """Every field with its value, where the value is from, and what the field means."""
    out.print(f"[bold]{escape(recipe.name)}[/]  {escape(recipe.about)}", soft_wrap=True)
    table = Table("field", "value", "from", "meaning", box=None, header_style="dim")
    for field, value, meaning in described(recipe):
        table.add_row(field, escape(str(value)), escape(recipe.origin.get(field, "default")), escape(meaning))
    out.print(table)


def show_examination(found: dict[str, Any]) -> None:
    """What the doctor found."""
    table = Table("", "", box=None, show_header=False)
    for name, value in found.items():
        table.add_row(name, escape(str(value)))
    out.print(table)
