"""The parts of all ranks together are the task view: queues, cells, addresses, atomic slots.

What is expected is read off the columns of `Program.tasks`, task by task.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

import pytest

from hccl_executors import EXECUTORS
from hccl_executors.send_recv.send import SendExecutor
from hccl_platform.lowering.part import MOVE, RankPart, part_of
from hccl_py.enums import POST, WAIT, DataType, TaskKind
from hccl_py.operators import make_operator
from hccl_py.orchestration.record import record
from hccl_py.plugins.executor import Executor, OpParam
from hccl_py.program.program import Program
from hccl_py.program.slots import exposed_slots
from hccl_py.topology import topology_of
from hccl_py.values import IntArray
from hccl_py.verifier.sweeps.cases import Cases
from hccl_py.verifier.sweeps.space import random_cases

MOST_TASKS = 3000
"""Of a program in the quick selection."""

ADDS = {"read_reduce", "write_reduce", "rdma_write_reduce"}


class Notify(NamedTuple):
    """A post or a wait: where on its stream, and the notify by its two ends."""

    is_post: bool
    place: int
    waiter: int
    poster: int
    plane: str
    number: int
    turn: int  # of the transport among those of the plane that join the two


class Move(NamedTuple):
    """A copy or a reduction between (rank, buffer, offset) and (rank, buffer, offset)."""

    place: int
    into: tuple[int, str, int]
    out_of: tuple[int, str, int]
    size: int
    op: int
    dtype: int


Queues = dict[tuple[int, int], list[Notify | Move]]


def queues_in_the_view(program: Program) -> Queues:
    """Every (rank, stream) of the task view; tasks that move nothing are left out."""
    view, table, transports = program.tasks, program.tasks.table, program.transports
    found: Queues = defaultdict(list)
    lengths: dict[tuple[int, int], int] = defaultdict(int)
    for row in range(len(view)):
        at, rank = int(view.instruction[row]), int(view.rank[row])
        queue = rank, int(table.stream[at])
        place, kind = lengths[queue], TaskKind(int(table.kind[at]))
        lengths[queue] += 1
        if kind in (TaskKind.NOTIFY_POST, TaskKind.NOTIFY_WAIT):
            cell = int(view.cell[row])
            if cell < transports.stride * len(transports.rank):
                end, number = cell // transports.stride, cell % transports.stride
                plane = transports.planes[transports.plane[end]]
                sides = list(zip(transports.plane, transports.rank, transports.peer, strict=True))
                turn = sides[:end].count(sides[end])
                waiter, poster = int(transports.rank[end]), int(transports.peer[end])
                ends = waiter, poster, plane, number, turn
            else:
                ends = rank, rank, "", cell - transports.stride * len(transports.rank), 0
            found[queue].append(Notify(kind is TaskKind.NOTIFY_POST, place, *ends))
        elif kind.moves_data and view.size[row]:
            found[queue].append(move_in_the_view(program, row, place))
    return found


def move_in_the_view(program: Program, row: int, place: int) -> Move:
    view, table = program.tasks, program.tasks.table
    at, rank, peer = int(view.instruction[row]), int(view.rank[row]), int(view.peer[row])
    word = TaskKind(int(table.kind[at])).spelling
    pushes, pulls = "write" in word, "read" in word
    into = program.buffers[table.dst_buffer[at]], int(view.dst_offset[row])
    out_of = program.buffers[table.src_buffer[at]], int(view.src_offset[row])
    reduces = "reduce" in word
    return Move(
        place,
        (peer if pushes else rank, *into),
        (peer if pulls else rank, *out_of),
        int(view.size[row]),
        int(table.reduce[at]) if reduces else -1,
        int(table.dtype[at]) if reduces else -1,
    )


def queues_in_parts(program: Program, parts: list[RankPart]) -> Queues:
    """The same of parts, from slots and offsets."""
    found: Queues = defaultdict(list)
    for part in parts:
        for stream, tasks in enumerate(part.streams):
            for kind, number, place in tasks:
                if kind in (POST, WAIT):
                    task: Notify | Move = Notify(kind == POST, place, *part.cells[number])
                else:
                    assert kind == MOVE
                    task = move_of_part(program, part, number, place)
                found[part.rank, stream].append(task)
    return found


def move_of_part(program: Program, part: RankPart, number: int, place: int) -> Move:
    moves, names = part.moves, program.buffers

    def side(slots: IntArray, offsets: IntArray) -> tuple[int, str, int]:
        rank, buffer = divmod(int(slots[number]), len(names))
        return rank, names[buffer], int(offsets[number])

    op = int(moves.op[number])
    dtype = int(moves.dtype[number]) if op >= 0 else -1
    into, out_of = side(moves.dst, moves.dst_offset), side(moves.src, moves.src_offset)
    return Move(place, into, out_of, int(moves.size[number]), op, dtype)


def owners_touched_by_peers(program: Program) -> dict[int, set[str]]:
    """By rank, its buffers that tasks of other ranks read or write."""
    found: dict[int, set[str]] = defaultdict(set)
    for (rank, _), queue in queues_in_the_view(program).items():
        for task in queue:
            if isinstance(task, Move):
                for owner, buffer, _ in (task.into, task.out_of):
                    if owner != rank:
                        found[owner].add(buffer)
    return found


def met_additions(program: Program) -> set[Move]:
    """Reductions that hardware makes atomic, into a buffer where several ranks have such, not all
    of them over RDMA.
    """
    who: dict[tuple[int, str], set[int]] = defaultdict(set)
    over_sdma: set[tuple[int, str]] = set()
    moves: list[Move] = []
    view, table = program.tasks, program.tasks.table
    for row in range(len(view)):
        kind = TaskKind(int(table.kind[int(view.instruction[row])]))
        if kind.spelling in ADDS and view.size[row]:
            move = move_in_the_view(program, row, 0)
            moves.append(move)
            who[move.into[:2]].add(int(view.rank[row]))
            if kind.spelling != "rdma_write_reduce":
                over_sdma.add(move.into[:2])
    return {move for move in moves if len(who[move.into[:2]]) > 1 and move.into[:2] in over_sdma}


def check_parts(program: Program) -> None:
    """Hold the parts of all ranks to the task view, which they are made without."""
    parts = [part_of(program, rank) for rank in range(program.ranks)]
    assert not {"tasks", "linked"} & vars(program).keys(), "parts need no rows of other ranks"
    queues = queues_in_parts(program, parts)
    assert queues == {queue: tasks for queue, tasks in queues_in_the_view(program).items() if tasks}
    atomic = {move_of_part(program, part, number, 0) for part in parts for number in part.atomic}
    assert atomic == met_additions(program)
    touched = owners_touched_by_peers(program)
    for rank in range(program.ranks):
        shown = {divmod(slot, len(program.buffers)) for slot in exposed_slots(program, rank)}
        assert shown == {(rank, program.buffers.index(name)) for name in touched[rank]}


def drawn(executor: type[Executor], seed: int, most_ranks: int, tries: int) -> Iterator[Program]:
    """Calls of an executor by 2 to `most_ranks` ranks."""
    made = executor()
    for case in random_cases(made, Cases(), Random(seed), tries):
        if 2 <= case.topology.size <= most_ranks and case.op.extent:
            operator = make_operator(case.op.name)
            yield record(made, case.op, case.topology, operator, case.ccl_bytes)


def test_parts_of_ranks_without_tasks() -> None:
    """Ranks 2 and 3 of a message from rank 0 to rank 1."""
    op = OpParam("send_recv", 64, DataType.FP32, pairs=((0, 1),))
    topology = topology_of(4)
    check_parts(record(SendExecutor(), op, topology, make_operator(op.name), 1 << 20))


@pytest.mark.sweep
@pytest.mark.parametrize("executor", EXECUTORS)
def test_parts_are_the_task_view(executor: type[Executor]) -> None:
    small = (p for p in drawn(executor, 5, 16, 300) if p.task_count < MOST_TASKS)
    program = next(small, None)
    if program is None:
        pytest.skip("no small call of several ranks among those drawn")
    check_parts(program)


@pytest.mark.long
@pytest.mark.seeds(len(EXECUTORS) // 3)
def test_parts_are_the_task_view_for_every_number_of_ranks(seed: int) -> None:
    seen: dict[int, int] = defaultdict(int)
    for program in drawn(EXECUTORS[seed % len(EXECUTORS)], seed, 16, 600):
        seen[program.ranks] += 1
        if seen[program.ranks] <= 3:
            check_parts(program)
    if not seen:
        pytest.skip("no call of several ranks among those drawn")
