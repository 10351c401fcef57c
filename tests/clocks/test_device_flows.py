"""Streams that may move data at once, found from the notifies inside a rank."""

import numpy as np

from hccl_py.clocks.device_flows import NO_SORT, Lanes, flows_at_once
from hccl_py.enums import TaskKind
from hccl_py.program.instruction import Instruction

FIRST_LOCAL = 100


def move(stream: int) -> Instruction:
    return Instruction(TaskKind.READ, stream, end=0, size=8)


def post(stream: int, cell: int) -> Instruction:
    return Instruction(TaskKind.NOTIFY_POST, stream, cell=cell)


def wait(stream: int, cell: int) -> Instruction:
    return Instruction(TaskKind.NOTIFY_WAIT, stream, cell=cell)


def flows(*tasks: Instruction, sort: Lanes = 1) -> list[Lanes]:
    """Return the flows of the transfers, all of which are of one sort."""
    sorts = [sort if i.kind == TaskKind.READ else NO_SORT for i in tasks]
    found = flows_at_once(tasks, sorts, FIRST_LOCAL)
    return [f for f, i in zip(found, tasks, strict=True) if i.kind == TaskKind.READ]


def test_a_fork_divides_and_what_comes_before_and_behind_it_does_not() -> None:
    before, after = move(0), move(0)
    fork = [post(0, 101), post(0, 102), wait(1, 101), wait(2, 102), move(1), move(2), move(0)]
    join = [post(1, 103), post(2, 104), wait(0, 103), wait(0, 104)]
    assert flows(before, *fork, *join, after) == [1, 3, 3, 3, 1]


def test_tasks_may_be_listed_in_any_order_of_streams() -> None:
    listed = [wait(1, 101), move(1), post(1, 103), move(0), post(0, 101), wait(0, 103), move(0)]
    assert flows(*listed) == [1, 1, 1]


def test_notifies_between_ranks_order_nothing() -> None:
    assert flows(move(0), post(0, 5), wait(1, 5), move(1)) == [2, 2]


def test_a_notify_that_is_used_twice_orders_twice() -> None:
    turn = [move(0), post(0, 101), wait(1, 101), move(1), post(1, 102), wait(0, 102)]
    assert flows(*turn, *turn) == [1, 1, 1, 1]


def test_other_sorts_and_lanes_of_other_sorts_do_not_share() -> None:
    tasks = move(1), move(2), move(3)
    found = flows_at_once(tasks, [1, np.array([1, 3]), 3], FIRST_LOCAL)
    assert [np.broadcast_to(f, 2).tolist() for f in found] == [[2, 1], [2, 2], [1, 2]]


def test_streams_that_can_never_go_on_share_with_all_others() -> None:
    assert flows(wait(1, 101), move(1), move(2)) == [2, 2]
