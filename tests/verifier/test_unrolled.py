"""Copies of a program back to back, with the caller in between."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.program.program import Program
from hccl_py.verifier.analysis.unrolled import CALL, unrolled
from tests.verifier.scripts import programs
from tests.verifier.sketches import all_gather


@given(programs(), st.integers(1, 4))
def test_queues_have_the_copies_in_order_and_calls_on_main(program: Program, copies: int) -> None:
    run = unrolled(program, copies)
    rows, ranks, streams = len(program.tasks), program.ranks, program.streams
    assert run.rows == rows
    assert sorted(run.nodes.tolist()) == list(range(copies * rows + (copies + 1) * ranks))
    for queue in range(ranks * streams):
        nodes = run.nodes[run.first[queue] : run.first[queue + 1]].tolist()
        assert (run.queue[nodes] == queue).all()
        assert run.place[nodes].tolist() == list(range(len(nodes)))
        calls = [run.call(node) for node in nodes]
        rank, stream = divmod(queue, streams)
        numbers = [call for call in calls if call is not None]
        assert numbers == ([(rank, k) for k in range(copies + 1)] if stream == 0 else [])
        tasks = [run.task(node) for node, call in zip(nodes, calls, strict=True) if call is None]
        assert tasks == sorted(tasks, key=lambda task: (task[1], task[0]))
        of_queue = (program.tasks.rank == rank) & (program.tasks.stream == stream)
        assert len(tasks) == copies * int(of_queue.sum())


@given(programs(), st.integers(1, 3))
def test_the_walk_respects_streams_and_posts(program: Program, copies: int) -> None:
    run = unrolled(program, copies)
    when = np.full(len(run.kind), len(run.kind))
    when[run.order] = np.arange(len(run.order))
    for queue in range(len(run.first) - 1):
        times = when[run.nodes[run.first[queue] : run.first[queue + 1]]]
        done = times[times < len(run.kind)]
        assert (np.diff(done) > 0).all()
        assert (times[: len(done)] == done).all()
    for wait in np.flatnonzero(run.post_of >= 0).tolist():
        assert when[run.post_of[wait]] < when[wait]


@pytest.mark.parametrize("copies", [1, 3])
def test_calls_stand_before_between_and_behind_the_copies(copies: int) -> None:
    program = all_gather().program()
    run = unrolled(program, copies)
    for number in range(copies + 1):
        nodes = np.array([n for n in range(len(run.kind)) if (run.call(n) or (0, -1))[1] == number])
        assert (run.kind[nodes] == CALL).all()
        assert [run.call(node) for node in nodes.tolist()] == [(rank, number) for rank in range(4)]
        assert run.place[nodes].tolist() == [number * 18] * 4
    assert not len(run.stuck)
    assert not len(run.leftover)
    assert len(run.order) == len(run.kind)


def test_a_program_without_tasks_is_calls_only() -> None:
    drawn = all_gather()
    for rank in range(4):
        drawn.at(rank).clear()
    run = unrolled(drawn.program(), 2)
    assert run.rows == 0
    assert len(run.order) == 12


def test_a_post_of_one_copy_may_be_consumed_in_the_next() -> None:
    """Patient: nothing is lost while anything else can move."""
    drawn = all_gather()
    program = drawn.program()
    run = unrolled(program, 5)
    assert not len(run.overruns)
    same_copy = run.post_of[run.post_of >= 0] // run.rows
    waits = np.flatnonzero(run.post_of >= 0) // run.rows
    assert (same_copy == waits).all()
