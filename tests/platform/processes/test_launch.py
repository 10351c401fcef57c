"""The launcher: as many processes as ranks, the worst exit status, and nothing left behind."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hccl_platform.processes.launch import INTERRUPTED, launch
from hccl_platform.processes.world import World, world_of_environment
from hccl_py.errors import ExecTimeoutError, ParameterError
from tests.platform.distributed.processes import in_processes


def rank() -> int:
    return world_of_environment().rank


def of_rank(which: int, then: Callable[[], int]) -> Callable[[], int]:
    """Do something as one rank; the others wait for what never comes."""

    def work() -> int:
        if rank() == which:
            return then()
        signal.pause()
        return 0

    return work


def children() -> set[str]:
    """Return the processes that this one has started and not waited for, other tests' too."""
    lists = Path("/proc/self/task").glob("*/children")
    return {process for found in lists for process in found.read_text("ascii").split()}


def test_every_process_knows_who_it_is() -> None:
    found = in_processes(
        4, lambda w: (w.rank, w.size, w.local_rank, len(set(w.hosts)), os.getpid())
    )
    assert [f[:4] for f in found] == [(r, 4, r, 1) for r in range(4)]
    assert len({f[4] for f in found} | {os.getpid()}) == 5


def test_the_store_hands_on_what_others_set() -> None:
    def body(world: World) -> bytes:
        world.store.set(f"mine/{world.rank}", bytes([world.rank]) * world.rank)
        return b"".join(world.store.get(f"mine/{r}", 30) for r in range(world.size))

    assert in_processes(3, body) == [b"\1\2\2"] * 3


def test_what_nobody_sets_is_missed_in_time_and_found_later() -> None:
    def body(world: World) -> tuple[str, bytes]:
        with pytest.raises(
            ExecTimeoutError, match="No process set 'late' in the job's store"
        ) as late:
            world.store.get("late", 0.01)
        world.store.set("late", b"now")
        return late.value.hint, world.store.get("late", 30)

    ((hint, found),) = in_processes(1, body)
    assert found == b"now"
    assert "its own output says why" in hint


def test_the_worst_status_wins() -> None:
    assert launch(4, lambda: (0, 1, 2, 1)[rank()]) == 2


def test_a_killed_rank_ends_all_at_once(capfd: pytest.CaptureFixture[str]) -> None:
    def kill() -> int:
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    before = children()
    assert launch(3, of_rank(2, kill)) == 128 + signal.SIGKILL
    assert "error: rank 2 was ended by SIGKILL.\nhint: " in capfd.readouterr().err
    assert children() <= before


def test_only_who_fails_first_is_heard(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hccl_platform.processes.launch.GRACE_S", 0.1)
    assert launch(2, of_rank(1, lambda: (sys.stderr.write("no\n"), 2)[1])) == 2
    assert capfd.readouterr().err == "rank 1: no\n"


def test_an_exception_is_shown_and_is_a_defect(capfd: pytest.CaptureFixture[str]) -> None:
    def work() -> int:
        raise RuntimeError("boom")

    assert launch(1, work) == 3
    assert "RuntimeError: boom" in capfd.readouterr().err


def test_an_interrupt_ends_all_without_a_word(capfd: pytest.CaptureFixture[str]) -> None:
    parent, before = os.getpid(), children()

    def interrupt() -> int:
        os.kill(parent, signal.SIGINT)
        signal.pause()
        return 0

    assert launch(3, of_rank(1, interrupt)) == INTERRUPTED
    assert capfd.readouterr().err == ""
    assert children() <= before


def test_nothing_stays_open() -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    in_processes(2, lambda world: world.hosts)
    assert sorted(os.listdir("/proc/self/fd")) == before
    assert f"hccl_py-{os.getpid()}-" not in Path("/proc/net/unix").read_text()


@pytest.mark.parametrize("ranks", [0, 1025])
def test_numbers_of_processes_that_no_machine_has(ranks: int) -> None:
    with pytest.raises(ParameterError, match=f"{ranks} ranks are {ranks} processes"):
        launch(ranks, lambda: 0)
