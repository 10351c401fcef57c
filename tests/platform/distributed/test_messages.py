"""Messages between hosts: real processes, every executor, and what is said when it goes wrong."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from hccl_executors import EXECUTORS
from hccl_platform.distributed.between_hosts import MessageSession
from hccl_platform.distributed.messages import open_messenger
from hccl_platform.processes.world import World
from hccl_py.plugins.platforms import Group
from tests.platform.distributed.processes import in_processes
from tests.platform.distributed.sessions import ALONE, CCL_BYTES, HALVES, ODD, Run, places, runs_of
from tests.platform.distributed.test_executors import LONG_SIZES, drawn_calls
from tests.platform.processes.children import Ended, children
from tests.recording import op_of, recorded

pytest.importorskip("torch", reason="messages over gloo need torch, which is not installed")

T = TypeVar("T")


def open_session(world: World, kind: str, limit_s: float | None = 60.0) -> MessageSession:
    group = Group.world(world.size)
    key = world.key_of(group.name)
    messages = open_messenger("gloo", world, group, key, limit_s)
    hosts = places(kind, world.size)
    return MessageSession(world.rank, hosts, world.store, key, CCL_BYTES, messages, limit_s)


def in_message_sessions(
    ranks: int, kind: str, body: Callable[[World, MessageSession], T], limit_s: float | None = 60.0
) -> list[T]:
    def work(world: World) -> T:
        session = open_session(world, kind, limit_s)
        try:
            return body(world, session)
        finally:
            session.close()

    return in_processes(ranks, work)


def wrong_results(ranks: int, kind: str, runs: Sequence[Run]) -> list[str]:
    def body(world: World, session: MessageSession) -> list[str]:
        return [wrong for run in runs if (wrong := run.wrong(session, world.rank))]

    return [text for texts in in_message_sessions(ranks, kind, body) for text in texts]


@pytest.mark.parametrize("kind", [ALONE, HALVES, ODD])
def test_some_executors_give_numpys_result(kind: str) -> None:
    runs = [run for e in EXECUTORS[::4] for run in runs_of(e, (4,), tries=60, most=1)]
    assert len(runs) > 10
    assert not wrong_results(4, kind, runs)


@pytest.mark.long
@pytest.mark.seeds(len(LONG_SIZES))
def test_drawn_calls_of_every_executor_give_numpys_result(seed: int) -> None:
    kind = (ALONE, HALVES, ODD)[seed % 3]
    ranks, runs = drawn_calls(seed)
    wrong = wrong_results(ranks, kind, runs)
    assert not wrong, "\n".join(wrong)


def test_values_of_all_hosts_are_gathered() -> None:
    def body(world: World, session: MessageSession) -> list[bytes]:
        return session.gather(b"x" * world.rank)

    assert in_message_sessions(3, HALVES, body) == [[b"", b"x", b"xx"]] * 3


# ---- what goes wrong ----

RING = Run.of(recorded("AllReduceComm", op_of("all_reduce", 1000), 4))
SHORT = Run.of(recorded("AllReduceComm", op_of("all_reduce", 999), 4))


def together(
    kind: str,
    body: Callable[[World, MessageSession], object],
    folder: Path,
    limit_s: float | None = 60.0,
) -> dict[int, Ended]:
    """Let every rank do something with a session after a first run."""

    def work(world: World) -> object:
        session = open_session(world, kind, limit_s)
        assert not RING.wrong(session, world.rank)
        return body(world, session)

    with children(4, work, folder) as started:
        return started.wait()


@pytest.mark.parametrize("kind", [ALONE, HALVES])
def test_ranks_that_differ_are_named_with_what_they_call(kind: str, tmp_path: Path) -> None:
    def body(world: World, session: MessageSession) -> None:
        (SHORT if world.rank == 2 else RING).wrong(session, world.rank)

    for found in together(kind, body, tmp_path).values():
        assert (found.error, found.code) == ("MismatchError", "EI0005"), found
        assert "calls all_reduce of 1000 fp32, sum" in found.message
        assert "rank 2 calls all_reduce of 999 fp32, sum" in found.message


def test_a_gather_where_others_run_is_a_difference(tmp_path: Path) -> None:
    def body(world: World, session: MessageSession) -> object:
        return session.gather(b"") if world.rank == 3 else RING.wrong(session, world.rank)

    for found in together(ALONE, body, tmp_path).values():
        assert found.error == "MismatchError", found
        assert "rank 3 gathers values of the hosts" in found.message


@pytest.mark.parametrize("kind", [ALONE, HALVES])
def test_a_killed_process_ends_the_others(kind: str, tmp_path: Path) -> None:
    def body(world: World, session: MessageSession) -> object:
        if world.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return RING.wrong(session, world.rank)

    ended = together(kind, body, tmp_path)
    assert ended.pop(1).error == "killed"
    assert {found.error for found in ended.values()} == {"PeerLostError"}, ended
    assert all(found.message.startswith("Rank 1") for found in ended.values()), ended


def test_a_stopped_process_of_another_host_is_named(tmp_path: Path) -> None:
    """Rank 2's host sees what holds it up, and says so to the other host."""
    goes, comes = os.pipe()

    def body(world: World) -> None:
        session = open_session(world, HALVES, 0.5)
        assert not RING.wrong(session, world.rank)
        if world.rank == 3:
            os.write(comes, b"!")
            signal.raise_signal(signal.SIGSTOP)
        RING.wrong(session, world.rank)

    with children(4, body, tmp_path) as started:
        os.read(goes, 1)
        ended = started.wait(iter([0, 1, 2]))
    for found in ended.values():
        assert found.message.startswith("Rank 3 is stopped"), ended


def while_rank_3_makes_no_call(folder: Path, first_s: float, then_s: float) -> list[Ended]:
    """Return how ranks 0 to 2 end, of which rank 0 waits so long, and the others so long."""

    def body(world: World) -> None:
        session = open_session(world, ALONE, then_s if world.rank else first_s)
        if world.rank == 3:
            os.read(os.pipe()[0], 1)  # for ever
        RING.wrong(session, world.rank)

    with children(4, body, folder) as started:
        return list(started.wait(iter([0, 1, 2])).values())


def test_who_does_not_call_is_waited_for_no_longer_than_allowed(tmp_path: Path) -> None:
    ended = while_rank_3_makes_no_call(tmp_path, 0.5, 0.5)
    assert {found.error for found in ended} == {"ExecTimeoutError"}, ended
    assert {found.code for found in ended} == {"EI0002"}
    assert any("for 0.5 s, longer than HCCL_EXEC_TIMEOUT" in found.message for found in ended)


def test_a_rank_that_is_late_first_is_not_named_as_lost(tmp_path: Path) -> None:
    """Gloo closes the connections of rank 0 a second before the others' time-out."""
    ended = while_rank_3_makes_no_call(tmp_path, 0.5, 1.5)
    assert {found.error for found in ended} == {"ExecTimeoutError"}, ended
    assert all("Rank 0 has waited" in found.message for found in ended), ended
