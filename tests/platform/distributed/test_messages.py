"""Messages between hosts: real processes, every executor, and what is said when it goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest

from hccl_executors import EXECUTORS
from hccl_platform.distributed.between_hosts import MessageSession
from hccl_platform.distributed.messages import open_messages
from hccl_platform.distributed.world import World
from hccl_py.platforms import Group
from tests.platform.distributed.processes import in_processes
from tests.platform.distributed.sessions import CCL_BYTES, Run, runs_of
from tests.platform.distributed.test_executors import SIZES, by_size

pytest.importorskip("torch", reason="messages over gloo need torch, which is not installed")

T = TypeVar("T")

ALONE, HALVES, ODD = "every rank alone", "halves", "odd and even"


def places(kind: str, ranks: int) -> list[int]:
    return {
        ALONE: list(range(ranks)),
        HALVES: [rank * 2 // ranks for rank in range(ranks)],
        ODD: [rank % 2 for rank in range(ranks)],
    }[kind]


def open_session(world: World, kind: str, limit_s: float | None = 60.0) -> MessageSession:
    group = Group.world(world.size)
    key = world.key_of(group.name)
    messages = open_messages("gloo", world, group, key, limit_s)
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
@pytest.mark.parametrize("kind", [ALONE, HALVES, ODD])
def test_every_executor_gives_numpys_result(kind: str) -> None:
    runs = [run for e in EXECUTORS for run in runs_of(e, SIZES, tries=200, most=4, seed=2)]
    for ranks, some in by_size(runs).items():
        wrong = wrong_results(ranks, kind, some)
        assert not wrong, "\n".join(wrong)


def test_values_of_all_hosts_are_gathered() -> None:
    def body(world: World, session: MessageSession) -> list[bytes]:
        return session.gather(b"x" * world.rank)

    assert in_message_sessions(3, HALVES, body) == [[b"", b"x", b"xx"]] * 3
