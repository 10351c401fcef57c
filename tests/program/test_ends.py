"""Open ends against their definition: all paths of small programs, with waits and without."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import islice
from random import Random

import numpy as np
import pytest

from hccl_executors import EXECUTORS
from hccl_py.enums import Mode, TaskKind
from hccl_py.errors import DeadlockError, OrchestrationError
from hccl_py.operators import make_operator
from hccl_py.orchestration.record import record
from hccl_py.program.edit import without
from hccl_py.program.ends import check_ends
from hccl_py.program.program import Program
from hccl_py.topology import topology_of
from hccl_py.verifier.sweeps.cases import Cases
from hccl_py.verifier.sweeps.space import random_cases
from tests.program.paths import Node, reached, steps_from
from tests.recording import BY_NAME, op_of, recorded

NAMES = [executor.__name__ for executor in EXECUTORS]


SMALL, MOST_DRAWN = 2500, 12
"""Tasks, and programs of an executor of which one is to have fewer."""


@cache
def a_program(name: str) -> Program | None:
    """A small call of an executor by several ranks."""
    executor = BY_NAME[name]()
    drawn = random_cases(executor, Cases(in_place=False), Random(11), 300)
    cases = (case for case in drawn if 2 <= case.topology.size <= 8 and case.op.extent)
    for case in islice(cases, MOST_DRAWN):
        operator = make_operator(case.op.name)
        program = record(executor, case.op, case.topology, operator, case.ccl_bytes)
        if program.task_count < SMALL:
            return program
    return None


def open_by_definition(program: Program) -> set[tuple[int, int]]:
    """Every task and rank that it concerns where no path leads from it to main's last task."""
    tasks, ahead = program.tasks, steps_from(program)
    behind: dict[Node, set[Node]] = defaultdict(set)
    for node, later in ahead.items():
        for one in later:
            behind[one].add(node)
    last: dict[int, Node] = {}
    for row in program.linked.order.tolist():
        if tasks.stream[row] == 0:
            last[int(tasks.rank[row])] = "task", row
    before = {rank: reached(behind, node) for rank, node in last.items()}
    found = set()
    for row in range(len(tasks)):
        kind, arrival = TaskKind(int(tasks.kind[row])), ("arrival", row)
        is_write = kind.writes_remote and arrival in ahead["task", row]
        node = arrival if is_write else ("task", row)
        concerned = {int(tasks.rank[row])}
        if tasks.size[row] and (kind.reads_remote or kind.writes_remote):
            concerned.add(int(tasks.peer[row]))
        found |= {(row, rank) for rank in concerned if node not in before.get(rank, ())}
    return found


def pairs_of(program: Program) -> Iterator[tuple[int, int]]:
    """Every post with the wait that took it, the last of the walk first."""
    for row in reversed(program.linked.order.tolist()):
        if program.linked.post_of[row] >= 0:
            yield int(program.linked.post_of[row]), row


def less(program: Program, *rows: int) -> Program:
    keep = np.ones(len(program.tasks), bool)
    keep[list(rows)] = False
    return without(program, keep)


def as_set(program: Program) -> set[tuple[int, int]]:
    return {(row, rank) for row, rank in program.open_ends.tolist()}


@pytest.mark.sweep
@pytest.mark.parametrize("name", NAMES)
def test_built_in_executors_have_none(name: str) -> None:
    program = a_program(name)
    if program is None:
        pytest.skip("no small call of several ranks among those drawn")
    assert as_set(program) == open_by_definition(program) == set()
    check_ends(program)


@pytest.mark.parametrize("name", NAMES[::6])
def test_without_a_wait_the_ends_are_those_of_the_definition(name: str) -> None:
    program = a_program(name)
    if program is None:
        pytest.skip("no small call of several ranks among those drawn")
    for number, pair in enumerate(pairs_of(program)):
        if number % 7 == 0 and number < 40:
            fewer = less(program, *pair)
            if len(fewer.linked.stuck) or len(fewer.linked.overruns):
                continue  # what was left of a notify's posts found other waits
            assert as_set(fewer) == open_by_definition(fewer)


def test_taking_one_late_wait_out_mostly_opens_an_end() -> None:
    programs = [program for name in NAMES[::3] if (program := a_program(name))]
    opened = [bool(len(less(p, *next(pairs_of(p))).open_ends)) for p in programs]
    assert len(opened) >= 20
    assert sum(opened) >= len(opened) / 2


def ends_of(program: Program) -> OrchestrationError:
    with pytest.raises(OrchestrationError) as error:
        check_ends(program)
    return error.value


def test_a_peer_that_still_reads_is_named_with_what_to_add() -> None:
    program = recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather"), 2)
    tasks = program.tasks
    read = int(np.flatnonzero((tasks.kind == TaskKind.READ) & (tasks.rank == 1))[0])
    pair = next(
        (post, wait)
        for post, wait in pairs_of(program)
        if post > read and tasks.rank[post] == 1 and tasks.rank[wait] == 0
    )
    error = ends_of(less(program, *pair))
    assert str(error).startswith("Open end: rank 1 ")
    assert "reads rank 0's CCL_Out" in str(error)
    assert "nothing says that this is over when rank 0's main ends" in str(error)
    assert "Let rank 1 post a notify after that task, and rank 0 wait for it" in error.hint


def test_a_sub_stream_that_main_does_not_join_is_named() -> None:
    program = recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather"), 2)
    tasks, pairs = program.tasks, pairs_of(program)
    pair = next(
        (post, wait)
        for post, wait in pairs
        if tasks.rank[wait] == tasks.rank[post] == 1 and tasks.stream[wait] == 0
    )
    error = ends_of(less(program, *pair))
    assert "rank 1 sub 0 task" in str(error)
    assert "this is over when rank 1's main ends." in str(error)
    assert "Let sub 0 post a notify at its end that main waits for" in error.hint


def test_an_rdma_write_that_nobody_answers_is_named() -> None:
    servers = topology_of(servers=2, devices=1)
    program = recorded("AllGatherComm", replace(op_of("all_gather"), level1="NHR"), servers)
    tasks, transports = program.tasks, program.transports
    answers = [
        (post, wait)
        for post, wait in pairs_of(program)
        if tasks.end[wait] >= 0 and tasks.cell[wait] % transports.stride == 2
    ]
    error = ends_of(less(program, *(row for pair in answers for row in pair)))
    assert "writes rank 0's" in str(error) or "writes rank 1's" in str(error)
    assert "answer with DataAck" in error.hint


def test_a_rank_without_a_main_stream_has_left_at_once() -> None:
    program = recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather", mode=Mode.OP_BASE), 2)
    tasks = program.tasks
    alone = less(program, *np.flatnonzero((tasks.rank == 0) | (tasks.cell >= 0)).tolist())
    concerned = {rank for _, rank in as_set(alone)}
    assert concerned == {0, 1}


def test_a_program_that_is_stuck_has_no_ends() -> None:
    program = recorded("AllReduceComm", op_of("all_reduce"), 4)
    posts = np.flatnonzero(program.tasks.kind == TaskKind.NOTIFY_POST).tolist()
    with pytest.raises(DeadlockError):
        _ = less(program, *posts).open_ends
