"""Work in a process of its own. The works are top-level functions, since another process has to find them."""

import os
import signal

import pytest

from cdclust.engine.interrupt import Interrupted
from cdclust.errors import UserError
from cdclust.jobs.apart import run_apart
from cdclust.jobs.listeners import Silent


def doubles(listener):
    listener.on_work("counting", 1, 2)
    listener.on_work("counting", 2, 2)
    return 42


def needs_300_megabytes(listener):
    return len(bytearray(b"x") * 300_000_000)


def refuses(listener):
    raise UserError("k: too many")


def breaks(listener):
    raise ZeroDivisionError("nothing to divide")


def is_killed(listener):
    os.kill(os.getpid(), signal.SIGKILL)


def leaves(listener):
    os._exit(7)


def is_interrupted(listener):
    raise Interrupted


class Hears(Silent):
    def __init__(self):
        self.heard = []

    def on_work(self, what, done, total):
        self.heard.append((what, done, total))


def test_its_value_and_its_news_come_back():
    listener = Hears()
    assert run_apart(doubles, listener).value == 42
    assert listener.heard[-1] == ("counting", 2, 2)


def test_its_peak_memory_is_its_own():
    little, much = (run_apart(work, Silent()).peak_memory for work in (doubles, needs_300_megabytes))
    assert 290_000_000 < much - little < 360_000_000


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        (refuses, "k: too many"),
        (breaks, "ZeroDivisionError: nothing to divide"),
        (is_killed, "most likely because memory ran out"),
        (leaves, "status 7"),
    ],
)
def test_its_end_is_a_reason_and_no_exception(work, reason):
    ended = run_apart(work, Silent())
    assert ended.value is None
    assert reason in ended.reason


def test_when_it_is_interrupted_so_is_who_waits():
    with pytest.raises(Interrupted):
        run_apart(is_interrupted, Silent())
