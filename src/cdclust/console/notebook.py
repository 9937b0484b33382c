"""A run as it goes, in a notebook: one output that is drawn again and again, without widgets."""

import sys
import time
from html import escape
from typing import Any

from cdclust.console.watcher import SHOWN

EVERY = 0.25  # seconds between drawings


def in_notebook() -> bool:
    """Whether a notebook's kernel runs this, not a terminal."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and getattr(ipython.get_ipython(), "kernel", None) is not None


class NotebookWatcher:
    """Draws a run's progress with a time left; warnings stay below it, once each."""

    def __init__(self, title: str) -> None:
        self.title = self._name = title
        self._output: Any = None
        self._drawn = 0.0
        self._total = self._per_epoch = 1
        self._start = (0, time.monotonic())
        self._figures = self._last = ""
        self._cautions: dict[str, None] = {}

    def on_attempt(self, number: int, of: int) -> None:
        """Say from now on which network it is."""
        self._name = f"{self.title}, network {number + 1} of {of}"

    def on_start(self, step: int, total: int, steps_per_epoch: int) -> None:
        """An empty bar, or one that starts where the run goes on."""
        self._start, self._total, self._per_epoch = (step, time.monotonic()), total, steps_per_epoch
        self._draw_step(step, "", now=True)

    def on_step(self, step: int, images_per_second: float) -> None:
        """Move the bar."""
        self._draw_step(step, f"{images_per_second:,.0f} images/s", now=step == self._total)

    def on_epoch(self, figures: dict[str, float], cautions: list[str]) -> None:
        """Show the figures, and anything that looks wrong."""
        self._figures = "  ".join(f"{label} {figures[name]:.3f}" for name, label in SHOWN if name in figures)
        self._cautions |= dict.fromkeys(cautions)
        self._draw_step(int(figures["step"]), "", now=True)

    def on_work(self, what: str, done: int, total: int) -> None:
        """The same bar, for what is not training."""
        self._draw(done / max(1, total), f"{self.title}: {what}, {done:,} of {total:,}", now=done >= total)

    def close(self) -> None:
        """End with the figures of training, whatever came after it."""
        if self._last:
            self._draw(1.0, self._last, now=True)

    def _draw_step(self, step: int, speed: str, now: bool) -> None:
        first, began = self._start
        done, epochs = step / self._per_epoch, self._total // self._per_epoch
        seconds = (time.monotonic() - began) / max(1, step - first) * (self._total - step)
        left = time.strftime("%H:%M:%S left", time.gmtime(seconds)) if first < step < self._total else ""
        words = (f"{self._name}: epoch {done:.1f} of {epochs}", left, speed, self._figures)
        line = "  ".join(word for word in words if word)
        self._last = line if step == self._total else ""
        self._draw(step / self._total, line, now)

    def _draw(self, share: float, line: str, now: bool) -> None:
        if not now and time.monotonic() - self._drawn < EVERY:
            return
        from IPython.display import display

        self._drawn = time.monotonic()
        warnings = [f"warning: {caution}" for caution in self._cautions]
        bar = f'<progress value="{share:.4f}" max="1" style="width:16em;vertical-align:middle"></progress>'
        html = f"<div>{bar} {escape(line)}</div>" + "".join(f"<div>{escape(each)}</div>" for each in warnings)
        content = {"text/html": html, "text/plain": "\n".join([line, *warnings])}
        if self._output is None:
            self._output = display(content, raw=True, display_id=True)
        else:
            self._output.update(content, raw=True)
