"""Who hears of a run's progress: the run folder's log, and whoever watches."""

from typing import Any

from cdclust.engine.train import Listener
from cdclust.run import Run


class Silent:
    """Nobody watches."""

    def on_attempt(self, number: int, of: int) -> None:
        """Nothing to do."""

    def on_start(self, step: int, total: int, steps_per_epoch: int) -> None:
        """Nothing to do."""

    def on_step(self, step: int, images_per_second: float) -> None:
        """Nothing to do."""

    def on_epoch(self, figures: dict[str, float], cautions: list[str]) -> None:
        """Nothing to do."""

    def on_work(self, what: str, done: int, total: int) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to do."""


class Recorder:
    """Writes log.jsonl and TensorBoard events, and passes everything on to the one who watches."""

    def __init__(self, run: Run, watcher: Listener) -> None:
        self.run, self.watcher = run, watcher
        self.cautions: list[str] = []  # of the last epoch
        self._events: Any = None

    def on_attempt(self, number: int, of: int) -> None:
        """Pass it on."""
        self.watcher.on_attempt(number, of)

    def on_start(self, step: int, total: int, steps_per_epoch: int) -> None:
        """Forget what was logged after the checkpoint that training goes on from."""
        from torch.utils.tensorboard import SummaryWriter

        self.run.trim_log(step)
        logged = self.run.log()
        self.cautions = list(logged[-1].get("warnings", [])) if logged else []
        self._events = SummaryWriter(str(self.run.file("tensorboard")), purge_step=step + 1 if step else None)
        self.watcher.on_start(step, total, steps_per_epoch)

    def on_step(self, step: int, images_per_second: float) -> None:
        """Pass it on."""
        self.watcher.on_step(step, images_per_second)

    def on_epoch(self, figures: dict[str, float], cautions: list[str]) -> None:
        """Add a line to the log; a warning stands in it too."""
        rounded = {name: round(value, 6) if isinstance(value, float) else value for name, value in figures.items()}
        self.run.append_log(rounded | ({"warnings": cautions} if cautions else {}))
        for name, value in figures.items():
            self._events.add_scalar(name, value, figures["step"])
        self.cautions = cautions
        self.watcher.on_epoch(figures, cautions)

    def on_work(self, what: str, done: int, total: int) -> None:
        """Pass it on."""
        self.watcher.on_work(what, done, total)

    def close(self) -> None:
        """End the event file."""
        if self._events is not None:
            self._events.close()
