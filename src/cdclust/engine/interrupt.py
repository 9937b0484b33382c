"""Ctrl-C and a polite kill end a run at the next step, with a checkpoint."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(Exception):
    """The run was asked to stop and has left a checkpoint."""


class StopFlag:
    """Set once somebody asks the run to stop."""

    def __init__(self) -> None:
        self.set = False


@contextmanager
def stop_on_signals() -> Iterator[StopFlag]:
    """A flag that Ctrl-C or SIGTERM sets; a second one ends the process as usual."""
    flag = StopFlag()
    if threading.current_thread() is not threading.main_thread():
        yield flag  # only the main thread may listen to signals
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def stop(_number: int, _frame: FrameType | None) -> None:
        flag.set = True
        for each, handler in before.items():
            signal.signal(each, handler)

    for number in before:
        signal.signal(number, stop)
    try:
        yield flag
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
