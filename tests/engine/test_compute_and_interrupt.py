import os
import signal
import threading

import pytest
import torch

from cdclust.engine.compute import resolve_compute
from cdclust.engine.interrupt import stop_on_signals
from cdclust.errors import UsageError

no_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="says what happens without a GPU")


@pytest.mark.parametrize(("name", "dtype"), [("fp32", None), ("bf16", torch.bfloat16)])
def test_a_precision_asked_for_is_used(name, dtype):
    compute = resolve_compute("cpu", name)
    assert (compute.precision, compute.autocast) == (name, dtype)


@pytest.mark.parametrize(("there", "precision"), [(True, "bf16"), (False, "fp32")])
def test_auto_is_bf16_only_where_the_processor_has_it(monkeypatch, there, precision):
    monkeypatch.setattr("cdclust.engine.compute.cpu_has_bf16", lambda: there)
    assert resolve_compute("cpu").precision == precision


@pytest.mark.parametrize(
    ("device", "precision", "words"),
    [
        ("gpu", "auto", "--device gpu: unknown"),
        ("cpu", "fp16", "write --precision bf16"),
        ("cpu", "fp64", "--precision fp64: unknown"),
        pytest.param("cuda", "auto", "write --device cpu", marks=no_gpu),
        pytest.param("cuda:7", "auto", "write --device cpu", marks=no_gpu),
    ],
)
def test_what_a_machine_does_not_have_is_refused_with_what_to_write(device, precision, words):
    with pytest.raises(UsageError, match=words) as error:
        resolve_compute(device, precision)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_sets_the_flag_and_a_second_one_ends_as_usual(number):
    heard = []
    before = signal.signal(number, lambda *_: heard.append(number))
    try:
        with stop_on_signals() as flag:
            assert not flag.set
            os.kill(os.getpid(), number)
            assert flag.set
            assert heard == []
            os.kill(os.getpid(), number)
            assert heard == [number]
    finally:
        signal.signal(number, before)


def test_afterwards_signals_do_what_they_did():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ZeroDivisionError), stop_on_signals():
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGINT) is before


def test_in_another_thread_there_is_a_flag_that_nobody_sets():
    flags = []

    def work() -> None:
        with stop_on_signals() as flag:
            flags.append(flag.set)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert flags == [False]
