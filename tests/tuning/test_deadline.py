"""Giving up in time: what is interrupted, what is not, what a timer of others keeps."""

import gc
import signal
import threading

import pytest

from hccl_py.tuning.deadline import TooLongError, at_most


def busy() -> None:
    """Run for ever, and stop for no exception that an author may catch."""
    while True:
        try:
            while True:
                pass
        except Exception:
            continue


@pytest.mark.parametrize("seconds", [0.0, 1e-9, 0.01])
def test_what_takes_too_long_is_interrupted(seconds: float) -> None:
    with pytest.raises(TooLongError), at_most(seconds):
        busy()


def test_callbacks_of_the_garbage_collector_do_not_swallow_it() -> None:
    def callback(phase: str, info: dict[str, int]) -> None:
        sum(range(20_000))

    def collecting() -> None:
        while True:
            gc.collect(0)
            sum(range(5_000))

    gc.callbacks.append(callback)
    try:
        for _ in range(10):
            with pytest.raises(TooLongError), at_most(0.01):
                collecting()
    finally:
        gc.callbacks.remove(callback)


def test_nothing_is_left_behind() -> None:
    handler = signal.getsignal(signal.SIGPROF)
    with at_most(60.0):
        assert signal.getitimer(signal.ITIMER_PROF)[0] > 0
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGPROF) is handler


def test_a_profilers_timer_goes_on() -> None:
    ticks: list[int] = []
    before = signal.signal(signal.SIGPROF, lambda number, frame: ticks.append(number))
    try:
        signal.setitimer(signal.ITIMER_PROF, 50.0, 70.0)
        with at_most(60.0):
            pass
        left, every = signal.getitimer(signal.ITIMER_PROF)
        assert 40 < left <= 50.1
        assert every == pytest.approx(70.0, abs=0.1)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def test_other_threads_and_no_limit_go_on_to_the_end() -> None:
    done: list[str] = []

    def work() -> None:
        with at_most(1e-6):
            sum(range(100_000))
            done.append("thread")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    with at_most(None):
        done.append("main")
    assert done == ["thread", "main"]
