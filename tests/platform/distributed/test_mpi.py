"""Messages over MPI, with a communicator of MPI's that notes what is asked of it."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hccl_platform.distributed.failures import as_text
from hccl_platform.distributed.messages import mpi, open_messenger
from hccl_platform.distributed.messages.mpi import MpiMessenger
from hccl_py.errors import ExecTimeoutError, NotSupportedError, ParameterError
from hccl_py.plugins.platforms import Group

DATA, FAILED = 0, 1
BYTE = "byte"


class Work:
    """A request that is over after some looks."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def is_over(self) -> bool:
        self.looks -= 1
        return self.looks < 0

    def Test(self) -> bool:
        return self.looks < 0


class Status:
    def Get_count(self) -> int:
        return Recorded.sent_bytes


class Recorded:
    """What MPI's communicator of the world and the one of the session are asked for."""

    sent_bytes = 0

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.reason = b""

    def __getattr__(self, name: str) -> Any:
        def note(*given: Any, **named: Any) -> Any:
            self.asked.append((name, *given, *named.values()))
            return {"Get_rank": 1, "Get_size": 3}.get(name, self)

        return note

    def Iprobe(self, tag: int) -> bool:
        assert tag == FAILED
        return bool(self.reason)

    def Recv(self, into: list[Any], tag: int, status: Status) -> None:
        assert (tag, into[1]) == (FAILED, BYTE)
        into[0][: len(self.reason)] = self.reason
        Recorded.sent_bytes = len(self.reason)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The world of a job that MPI has started; time passes with each sleep, a second each."""
    clock = SimpleNamespace(now=0.0, yields=0)

    def sleep(_: float) -> None:
        clock.now += 1.0

    def yields() -> None:
        clock.yields += 1

    def testall(works: list[Work]) -> bool:
        over = [work.is_over() for work in works]  # it looks at every one
        return all(over)

    request = SimpleNamespace(Testall=testall)
    library = SimpleNamespace(MPI=SimpleNamespace(Request=request, BYTE=BYTE, Status=Status))
    monkeypatch.setitem(sys.modules, "mpi4py", library)
    time = SimpleNamespace(sleep=sleep, monotonic=lambda: clock.now)
    monkeypatch.setattr(mpi, "time", time)
    monkeypatch.setattr(mpi, "os", SimpleNamespace(sched_yield=yields))
    return SimpleNamespace(mpi=Recorded(), clock=clock)


def messenger(world: Any, limit_s: float | None = 10.0) -> MpiMessenger:
    return MpiMessenger(world, Group("pair", (2, 5, 7)), "job/pair", limit_s)


def test_a_session_has_a_communicator_of_its_members(world: Any) -> None:
    messenger(world)
    names = [asked[0] for asked in world.mpi.asked]
    assert names == ["Get_group", "Incl", "Create_group", "Get_rank"]
    assert world.mpi.asked[1][1] == [2, 5, 7]
    assert 0 <= world.mpi.asked[2][2] <= 32767  # the tags that every MPI has


def test_data_and_failures_have_tags_of_their_own(world: Any) -> None:
    made, data = messenger(world), np.zeros(3, np.uint8)
    made.isend(2, data)
    made.irecv(0, data)
    error = ParameterError("no such count")
    made.fail(error)
    sent = [asked for asked in world.mpi.asked if asked[0] in ("Isend", "Irecv")]
    assert sent == [
        ("Isend", [data, BYTE], 2, DATA),
        ("Irecv", [data, BYTE], 0, DATA),
        *[("Isend", [as_text(error, 1), BYTE], rank, FAILED) for rank in (0, 2)],
    ]


def test_a_wait_yields_a_thousand_times_before_it_sleeps(world: Any) -> None:
    made = messenger(world)
    made.wait([(0, Work(0))])
    assert (world.clock.yields, world.clock.now) == (0, 0)
    made.wait([(0, Work(2)), (2, Work(999))])
    assert (world.clock.yields, world.clock.now) == (999, 0)
    made.wait([(0, Work(1003))])
    assert world.clock.now == 4


@pytest.mark.parametrize(("limit_s", "looks"), [(None, 9000), (10.0, 1009)])
def test_a_wait_takes_no_longer_than_allowed(world: Any, limit_s: float | None, looks: int) -> None:
    made = messenger(world, limit_s)
    made.wait([(0, Work(looks))])
    if limit_s is None:
        return
    with pytest.raises(ExecTimeoutError, match=r"Rank 1 has waited for .* from rank 2 for 10 s"):
        made.wait([(0, Work(3)), (2, Work(2000))])


def test_the_error_of_another_rank_ends_a_wait(world: Any) -> None:
    world.mpi.reason = as_text(ParameterError("no such count"), 2)
    made = messenger(world)
    with pytest.raises(ParameterError, match=r"^no such count"):
        made.wait([(0, Work(2000))])
    world.mpi.reason = b""
    assert type(made.published(0.0)) is ParameterError
    before = world.clock.now
    assert messenger(world).published(3.0) is None
    assert world.clock.now == before + 3


def test_a_session_that_has_failed_is_not_freed(world: Any) -> None:
    """Free waits for the others, which may never call it."""
    for fails in (False, True):
        made = messenger(world)
        if fails:
            made.fail(ParameterError("no such count"))
        world.mpi.asked.clear()
        made.close()
        assert ("Free",) in world.mpi.asked or fails
        assert not (fails and world.mpi.asked)


def test_mpi_is_taken_where_mpi_has_started_the_job(world: Any) -> None:
    group, alone = Group("pair", (2, 5)), SimpleNamespace(mpi=None)
    for wire in (None, "mpi"):
        assert isinstance(open_messenger(wire, world, group, "key", None), MpiMessenger)
    with pytest.raises(NotSupportedError, match="need processes that MPI has started"):
        open_messenger("mpi", alone, group, "key", None)  # type: ignore[arg-type]
