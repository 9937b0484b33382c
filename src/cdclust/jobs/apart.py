"""Work in a process of its own: its peak memory is its own, and when it dies it takes nobody along."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from cdclust.engine.interrupt import Interrupted
from cdclust.engine.train import Listener
from cdclust.errors import UserError

PATIENCE = 20.0  # seconds that a process which was asked to stop has for its checkpoint
EVERY = 0.1  # seconds between news of the same kind
HEARD = ("on_attempt", "on_start", "on_step", "on_epoch", "on_work")

Work = Callable[[Listener], Any]


@dataclass(frozen=True)
class Ended:
    """How it ended: with a value, or with a reason why there is none."""

    value: Any = None
    reason: str | None = None
    peak_memory: int | None = None  # bytes of the whole process; none where the system does not say


def run_apart(work: Work, listener: Listener) -> Ended:
    """Run `work(listener)`, which must be picklable, and hand on what it tells."""
    context: Any = multiprocessing.get_context("forkserver" if "forkserver" in _ways() else "spawn")
    if hasattr(context, "set_forkserver_preload"):
        context.set_forkserver_preload(["cdclust.jobs.contender"])  # imported once for all
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_inside, args=(theirs, work), daemon=True)
    process.start()
    theirs.close()
    try:
        return _follow(ours, listener) or _died(process)
    finally:
        process.join(PATIENCE)
        if process.is_alive():
            process.kill()


def _ways() -> list[str]:
    return multiprocessing.get_all_start_methods()


def _follow(pipe: Connection, listener: Listener) -> Ended | None:
    while True:
        try:
            name, content = pipe.recv()
        except (EOFError, OSError):
            return None
        if name in HEARD:
            getattr(listener, name)(*content)
        elif name == "stopped":
            raise Interrupted
        else:
            return Ended(**content)


def _died(process: Any) -> Ended:
    process.join(PATIENCE)
    code = process.exitcode or 0
    if code == -signal.SIGKILL:
        return Ended(reason="its process was killed, most likely because memory ran out")
    return Ended(reason=f"its process ended with status {code}")


def _inside(pipe: Connection, work: Work) -> None:
    try:
        value = work(_Relay(pipe))
    except (KeyboardInterrupt, Interrupted):
        pipe.send(("stopped", ()))
    except UserError as error:
        pipe.send(("end", {"reason": str(error)}))
    except Exception as error:
        pipe.send(("end", {"reason": f"{type(error).__name__}: {error}"}))
    else:
        pipe.send(("end", {"value": value, "peak_memory": peak_memory()}))


def peak_memory() -> int | None:
    """The most memory this process ever had, in bytes."""
    if sys.platform == "win32":
        return None
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


class _Relay:
    """Tells the process that waits, not more often than somebody can read."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe, self._last = pipe, dict[str, float]()

    def on_attempt(self, number: int, of: int) -> None:
        self._pipe.send(("on_attempt", (number, of)))

    def on_start(self, step: int, total: int, steps_per_epoch: int) -> None:
        self._total = total
        self._pipe.send(("on_start", (step, total, steps_per_epoch)))

    def on_step(self, step: int, images_per_second: float) -> None:
        self._now_and_then("on_step", (step, images_per_second), last=step == self._total)

    def on_epoch(self, figures: dict[str, float], cautions: list[str]) -> None:
        self._pipe.send(("on_epoch", (figures, cautions)))

    def on_work(self, what: str, done: int, total: int) -> None:
        self._now_and_then("on_work", (what, done, total), last=done >= total)

    def _now_and_then(self, name: str, content: tuple[Any, ...], last: bool) -> None:
        now = time.monotonic()
        if last or now - self._last.get(name, 0.0) > EVERY:
            self._last[name] = now
            self._pipe.send((name, content))
