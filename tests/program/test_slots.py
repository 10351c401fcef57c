"""Parts of the task view, levels and slots against the task view of all ranks."""

from collections.abc import Iterator
from functools import cache
from random import Random

import numpy as np
import pytest

from hccl_executors import EXECUTORS
from hccl_py.enums import TaskKind
from hccl_py.errors import DeadlockError
from hccl_py.operators import make_operator
from hccl_py.orchestration.record import record
from hccl_py.program.instruction import COLUMNS
from hccl_py.program.levels import levels
from hccl_py.program.program import Program
from hccl_py.program.slots import atomic_slots, remote_slots
from hccl_py.program.tasks import expand
from hccl_py.verifier.sweeps.cases import Cases
from hccl_py.verifier.sweeps.space import random_cases
from tests.recording import op_of, recorded, without

INLINE = (TaskKind.READ_REDUCE, TaskKind.WRITE_REDUCE, TaskKind.RDMA_WRITE_REDUCE)
USER = ("IN", "OUT")
NAMES = [executor.__name__ for executor in EXECUTORS]


@cache
def programs(name: str) -> tuple[Program, ...]:
    """Some calls of an executor, of up to 8 ranks."""
    executor = next(e for e in EXECUTORS if e.__name__ == name)()
    found: list[Program] = []
    for case in random_cases(executor, Cases(), Random(name), 40):
        if 2 <= case.topology.size <= 8 and case.op.extent and len(found) < 3:
            op = make_operator(case.op.name)
            found.append(record(executor, case.op, case.topology, op, case.ccl_bytes))
    return tuple(program for program in found if program.task_count < 4000)


def remote_rows(program: Program) -> Iterator[tuple[TaskKind, int, int, int, int]]:
    """Kind, rank, peer, source and destination buffer of every task that moves bytes."""
    tasks, table = program.tasks, program.tasks.table
    for row in np.flatnonzero(tasks.size):
        at = tasks.instruction[row]
        kind = TaskKind(int(table.kind[at]))
        if kind.moves_data:
            buffers = int(table.src_buffer[at]), int(table.dst_buffer[at])
            yield kind, int(tasks.rank[row]), int(tasks.peer[row]), *buffers


@pytest.mark.sweep
@pytest.mark.parametrize("name", NAMES)
def test_some_ranks_have_the_rows_of_all(name: str) -> None:
    for program in programs(name):
        whole, ranks = program.tasks, sorted({0, program.ranks // 2, program.ranks - 1})
        part = expand(program, ranks)
        rows = np.concatenate([np.arange(*whole.first[rank : rank + 2]) for rank in ranks])
        assert set(part.rank.tolist()) == set(whole.rank[rows].tolist())
        assert (part.rank == whole.rank[rows]).all()
        assert all((getattr(part, c) == getattr(whole, c)[rows]).all() for c in COLUMNS)
        mine, theirs = part.meaning(), whole.meaning()
        assert all((mine[key] == theirs[key][rows]).all() for key in mine)


def test_no_ranks_have_no_rows() -> None:
    program = recorded("AllReduceComm", op_of("all_reduce"), 4)
    assert len(expand(program, [])) == 0


@pytest.mark.parametrize("name", NAMES)
def test_slots_are_those_of_the_task_view(name: str) -> None:
    for program in programs(name):
        buffers, remote = len(program.buffers), set()
        atomic: dict[int, set[int]] = {}
        over_sdma = set[int]()
        for kind, rank, peer, src, dst in remote_rows(program):
            target = (peer if kind.writes_remote else rank) * buffers + dst
            if kind in INLINE:
                atomic.setdefault(target, set()).add(rank)
            if kind in INLINE[:2]:
                over_sdma.add(target)
            if kind.reads_remote and program.buffers[src] in USER:
                remote.add(peer * buffers + src)
            if kind.writes_remote and program.buffers[dst] in USER:
                remote.add(target)
        shared = {slot for slot, who in atomic.items() if len(who) > 1}
        assert atomic_slots(program) == shared & over_sdma
        assert remote_slots(program, USER) == remote


def test_some_executors_reduce_into_one_place_at_once() -> None:
    found = {name for name in NAMES if any(atomic_slots(p) for p in programs(name))}
    assert "AllReduceMeshOpbaseLoopExecutor" in found
    assert "AllReduceMeshOpbasePipelineExecutor" in found
    assert "AllReduceRing" not in found


@pytest.mark.parametrize("name", NAMES)
def test_levels_grow_along_streams_and_from_posts_to_waits(name: str) -> None:
    for program in programs(name):
        tasks, level, post_of = program.tasks, levels(program), program.linked.post_of
        last: dict[tuple[int, int], int] = {}
        is_remote = [TaskKind(k).reads_remote or TaskKind(k).writes_remote for k in tasks.kind]
        for row in program.linked.order.tolist():
            queue = int(tasks.rank[row]), int(tasks.stream[row])
            before = [level[p] for p in (last.get(queue, -1), int(post_of[row])) if p >= 0]
            counts = bool(is_remote[row] and tasks.size[row])
            assert level[row] == max(before, default=0) + counts
            last[queue] = row


@pytest.mark.parametrize(("name", "ranks", "steps"), [("AllReduceComm", 8, 14)])
def test_a_ring_has_a_level_for_every_step(name: str, ranks: int, steps: int) -> None:
    assert levels(recorded(name, op_of("all_reduce"), ranks)).max() == steps


def test_a_program_that_is_stuck_has_no_levels() -> None:
    program = recorded("AllReduceComm", op_of("all_reduce"), 4)
    with pytest.raises(DeadlockError):
        levels(without(program, lambda i: i.kind is TaskKind.NOTIFY_POST))
