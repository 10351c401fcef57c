"""Sub streams that are awake: by forks, one by one, several sets at once."""

from collections.abc import Callable
from typing import Any

import pytest

from hccl_py.errors import OrchestrationError
from hccl_py.plugins.executor import PlaneRequest, ResourceRequest
from hccl_py.program.program import Program
from tests.orchestration.authors import Author
from tests.recording import actions, op_of, recorded


def program_of(body: Callable[[Any], object], subs: int = 3) -> Program:
    request = ResourceRequest((PlaneRequest("flat", "mesh"),), sub_streams=subs)
    return recorded(Author(body, request), op_of("all_gather"), 2)


def test_a_worker_lives_through_forks_of_others() -> None:
    def body(rank: Any) -> None:
        far = rank.wake(2)
        for _ in range(2):
            with rank.fork(subs=range(1)) as streams:
                assert [stream.index for stream in streams] == [1]
        far.compute(1.0)
        rank.join(far)

    program = program_of(body)
    once = [
        "main posts notify 0 of sub 0",
        "sub 0 waits for notify 0 of sub 0",
        "sub 0 posts notify 0 of main",
        "main waits for notify 0 of main",
    ]
    assert actions(program, 0) == [
        "main posts notify 0 of sub 2",
        "sub 2 waits for notify 0 of sub 2",
        *once,
        *once,
        "sub 2 computes 1 us",
        "sub 2 posts notify 2 of main",
        "main waits for notify 2 of main",
    ]
    program.linked.check(program)


def test_forks_of_different_workers_may_be_open_at_once() -> None:
    def body(rank: Any) -> None:
        with rank.fork(1), rank.fork(subs=[rank.subs[2], 1]) as streams:
            assert [stream.index for stream in streams] == [3, 2]

    program = program_of(body)
    assert [a for a in actions(program, 1) if a.startswith("main")] == [
        "main posts notify 0 of sub 0",
        "main posts notify 0 of sub 2",
        "main posts notify 0 of sub 1",
        "main waits for notify 2 of main",
        "main waits for notify 1 of main",
        "main waits for notify 0 of main",
    ]
    program.linked.check(program)


def test_a_worker_may_wake_and_join_another_one() -> None:
    def body(rank: Any) -> None:
        with rank.fork(1) as (first,):
            rank.wake(1, by=first)
            rank.join(1, to=first)
            with rank.fork(subs=[2], by=first):
                pass

    program = program_of(body)
    assert [a for a in actions(program, 0) if a.startswith("sub 0")] == [
        "sub 0 waits for notify 0 of sub 0",
        "sub 0 posts notify 0 of sub 1",
        "sub 0 waits for notify 1 of main",
        "sub 0 posts notify 0 of sub 2",
        "sub 0 waits for notify 2 of main",
        "sub 0 posts notify 0 of main",
    ]
    program.linked.check(program)


def test_a_fork_of_a_plane_takes_the_workers_that_it_is_given() -> None:
    def body(rank: Any) -> None:
        with rank.flat.fork(subs=[2]) as members:
            (sub, _, link) = members[0]
            link.tx_ack(sub)
            link.rx_ack(sub)

    assert "sub 2 posts Ack of rank 1" in actions(program_of(body), 0)


def nested(rank: Any) -> None:
    with rank.fork(2), rank.fork(subs=(2, 1)):
        pass


def twice(rank: Any) -> None:
    rank.wake(0)
    rank.wake(0)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (nested, "Sub stream 1 is awake already, since orchestration/test_workers.py:"),
        (twice, "Sub stream 0 is awake already, since orchestration/test_workers.py:"),
        (lambda rank: rank.join(1), "Sub stream 1 is not awake"),
        (lambda rank: rank.wake(3), "There is no sub stream 3: 3 were requested"),
        (lambda rank: rank.wake(rank.main), "The main stream is always awake"),
        (lambda rank: rank.wake(1, by=rank.subs[1]), "Sub stream 1 cannot wake itself"),
        (lambda rank: rank.fork(1, subs=[1]).__enter__(), "how many sub streams, or which ones"),
        (lambda rank: rank.fork(subs=[1, 1]).__enter__(), "Sub stream 1 is named twice"),
        (lambda rank: rank.flat.fork(subs=[0, 1]).__enter__(), "2 sub streams are named for the 1"),
    ],
)
def test_what_cannot_be_woken_or_joined_is_refused(body: Any, words: str) -> None:
    with pytest.raises(OrchestrationError) as caught:
        program_of(body)
    assert words in caught.value.message
    assert "test_workers.py" in caught.value.line


@pytest.mark.parametrize("notifies", [4, 5])
def test_a_fork_needs_two_notifies_for_each_sub_stream(notifies: int) -> None:
    def body(rank: Any) -> None:
        rank.wake(0)

    planes = (PlaneRequest("flat", "mesh"),)
    request = ResourceRequest(planes, sub_streams=3, notifies=notifies)
    with pytest.raises(OrchestrationError) as caught:
        recorded(Author(body, request), op_of("all_gather"), 2)
    assert f"3 sub streams need 6 notifies, {notifies} were requested" in caught.value.message
    assert caught.value.finding == "NOTIFY_INDEX_OUT_OF_RANGE"
