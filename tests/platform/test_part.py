"""The parts of all ranks together do what the program does."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from random import Random

import numpy as np
import pytest

from hccl_executors import EXECUTORS
from hccl_platform.lowering.moves import Bytes, run_step
from hccl_platform.lowering.part import MOVE, Cell, RankPart, part_of
from hccl_py.communicator.data import expected_outputs, first_wrong, inputs_of
from hccl_py.enums import POST, Mode, TaskKind
from hccl_py.errors import OrchestrationError
from hccl_py.operators import make_operator
from hccl_py.orchestration.record import record
from hccl_py.plugins.executor import Executor
from hccl_py.program.program import Program
from hccl_py.verifier.sweeps.cases import Cases
from hccl_py.verifier.sweeps.space import random_cases
from tests.platform.running import changed, moved, slots_of
from tests.recording import op_of, recorded


@cache
def a_program(executor: type[Executor]) -> Program | None:
    """A call of an executor by 2 to 8 ranks; None where it takes one rank only."""
    made = executor()
    for case in random_cases(made, Cases(in_place=False), Random(3), 300):
        if 2 <= case.topology.size <= 8 and case.op.extent:
            op = make_operator(case.op.name)
            return record(made, case.op, case.topology, op, case.ccl_bytes)
    return None


@contextmanager
def right_outputs(program: Program, used: Sequence[int]) -> Iterator[list[Bytes]]:
    """Give the bytes of the slots of a call on known inputs; the block must fill the outputs."""
    inputs = inputs_of(program.op, program.ranks)
    sizes = program.buffer_sizes[:, program.buffers.index("OUT")] // program.op.unit
    outputs = [np.zeros(size, program.op.dtype.numpy) for size in sizes]
    wanted = expected_outputs(make_operator(program.op.name), program.op, inputs)
    yield slots_of(program, used, inputs, outputs)
    for rank, (output, right) in enumerate(zip(outputs, wanted, strict=True)):
        if right is not None and not program.op.displs:
            assert first_wrong([output[: right.size]], [right], [rank]) is None


def run_parts(program: Program, parts: list[RankPart], slots: list[Bytes]) -> None:
    """Run the parts stream by stream; a notify is a count."""
    posted, waited = dict.fromkeys(range(program.cells), 0), dict.fromkeys(range(program.cells), 0)
    queues = [(part, list(stream)) for part in parts for stream in part.streams]
    is_moving = True
    while is_moving:
        is_moving = False
        for part, queue in queues:
            while queue:
                kind, number, _ = queue[0]
                if kind == MOVE:
                    run_step(slots, part.moves.steps[number])
                elif kind == POST:
                    posted[number] += 1
                elif posted[number] == waited[number]:
                    break
                else:
                    waited[number] += 1
                queue.pop(0)
                is_moving = True
    assert not any(queue for _, queue in queues)


@pytest.mark.sweep
@pytest.mark.parametrize("executor", EXECUTORS)
def test_parts_of_all_ranks_are_the_program(executor: type[Executor]) -> None:
    program = a_program(executor)
    if program is None:
        pytest.skip("one rank only")
    parts = [part_of(program, rank) for rank in range(program.ranks)]
    used = sorted({slot for part in parts for slot in part.moves.slots})
    with right_outputs(program, used) as slots:
        run_parts(program, parts, slots)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_cell_is_known_by_its_two_ends(executor: type[Executor]) -> None:
    program = a_program(executor)
    if program is None:
        pytest.skip("one rank only")
    posts: dict[int, Cell] = {}
    waits: dict[int, Cell] = {}
    for rank in range(program.ranks):
        part = part_of(program, rank)
        for kind, number, _ in (task for stream in part.streams for task in stream):
            if kind != MOVE:
                (posts if kind == POST else waits)[number] = part.cells[number]
                assert rank == part.cells[number][kind == POST]
    assert posts == waits
    assert len(set(posts.values())) == len(posts)


def test_reductions_that_meet_are_marked() -> None:
    program = recorded("AllReduceMeshOpbaseLoopExecutor", op_of("all_reduce", 16384), 4)
    part = part_of(program, 1)
    buffers, out = len(program.buffers), program.buffers.index("CCL_OUT")
    assert {int(part.moves.dst[k]) for k in part.atomic} == {
        rank * buffers + out for rank in (0, 2, 3)
    }
    assert not part_of(recorded("AllReduceComm", op_of("all_reduce"), 4), 1).atomic


def test_memory_of_callers_that_others_touch_is_known() -> None:
    graph = recorded("AllReduceComm", op_of("all_reduce", mode=Mode.GRAPH), 4)
    op_base = recorded("AllReduceComm", op_of("all_reduce"), 4)
    assert part_of(graph, 1).remote_user_slots
    assert not part_of(op_base, 1).remote_user_slots


def test_a_move_out_of_bounds_is_refused_with_its_task() -> None:
    program = recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather"), 4)
    instructions = program.batches[0].instructions
    index = next(k for k, i in enumerate(instructions) if i.kind is TaskKind.READ)
    broken = changed(program, 0, index, lambda i: moved(i, "dst_offset", 1 << 30))
    with pytest.raises(OrchestrationError, match=r"rank 2 sub 0 +task \d+  read "):
        part_of(broken, 2)
