"""Code of an author that works and records nothing ends, and the error names its line."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from itertools import count

import pytest

import hccl_py as hccl
from hccl_py.errors import OrchestrationError
from hccl_py.orchestration import progress
from hccl_py.plugins.executor import BaseExecutor, OpParam, RankView
from hccl_py.plugins.resources import ResourceRequest

CALL = hccl.OpParam("all_gather", 16, hccl.DataType.FP32)


class Spins(BaseExecutor):
    """Turns in a loop for ever, in spite of `except Exception`."""

    op = "all_gather"
    algorithm = "spins"

    def suits(self, op: OpParam, topology: hccl.Topology) -> bool:
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        return ResourceRequest()

    def orchestrate(self, op: OpParam, rank: hccl.Rank) -> None:
        turns = 0
        while True:
            try:
                turns += 1
            except Exception:
                turns = 0


def test_a_loop_that_records_nothing_ends_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LONGEST_S", 0.2)
    with pytest.raises(OrchestrationError, match="recorded nothing") as caught:
        hccl.record(Spins(), CALL, hccl.topology_of(ranks=2))
    assert "test_progress.py:" in caught.value.line
    assert caught.value.ranks == (0, 1)


def test_nothing_is_raised_where_something_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LONGEST_S", 0.0)
    monkeypatch.setattr(progress, "_LOOK_S", 0.001)
    counts = count()
    with progress.watched(lambda: next(counts)):
        while next(counts) < 1 << 20:  # many looks, each of which finds another number
            pass


def test_only_the_work_of_the_thread_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which other processes take the time makes no loop of what records."""
    worked, asked = [0.0], []
    monkeypatch.setattr(progress, "_worked", lambda thread: lambda: worked[0])
    monkeypatch.setattr(progress, "_raise_in", lambda thread, error: asked.append(error))
    watch = progress._Watch(lambda: 0)
    for worked[0] in (0.0, 1.0, 7.9):
        watch.look()
    assert not asked
    worked[0] = 8.0
    watch.look()
    assert asked == [progress.NoProgressError]


def test_blocks_of_several_threads_are_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """One block that never ends stops; another, which records, goes on until it has stopped."""
    monkeypatch.setattr(progress, "LONGEST_S", 0.02)
    monkeypatch.setattr(progress, "_LOOK_S", 0.01)
    counts, stopped = count(), threading.Event()

    def spin() -> None:
        with progress.watched(lambda: 0):
            while True:
                pass

    def stop() -> None:
        with pytest.raises(progress.NoProgressError):
            spin()
        stopped.set()

    spinning = threading.Thread(target=stop)
    with progress.watched(lambda: next(counts)):
        spinning.start()
        while not stopped.is_set():
            pass
    spinning.join()


def test_a_block_that_has_ended_is_not_kept() -> None:
    """Not till the next look, either: its recording may be large."""
    watcher = progress._watcher_of(os.getpid())
    with progress.watched(lambda: 0):
        assert len(watcher._watches) == 1
    assert not watcher._watches


PROFILED = """
import sys
from hccl_py.orchestration import progress

progress.LONGEST_S = 0.0
progress._LOOK_S = 0.001
try:
    with progress.watched(lambda: 0):
        while True:
            pass
except progress.NoProgressError:
    pass
progress.LONGEST_S = 8.0
with progress.watched(lambda: 0):
    pass
calls = []
sys.setprofile(lambda frame, event, argument: calls.append(event))
(lambda: 0)()
sys.setprofile(None)
print("call" in calls)
"""


def test_functions_are_profiled_as_before() -> None:
    """CPython 3.11 never begins a profiled function where an error was taken back carelessly."""
    done = subprocess.run(
        [sys.executable, "-c", PROFILED], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "True\n"
