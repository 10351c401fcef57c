"""CCL buffers: any size will do, and they are free for other ops before and after every op."""

from dataclasses import replace

import numpy as np
import pytest

from hccl_executors import EXECUTORS
from hccl_executors.flat import AllGatherComm
from hccl_py.enums import Buffer, TaskKind
from hccl_py.plugins.executor import Executor
from hccl_py.program.instruction import Batch, Instruction
from hccl_py.program.program import Program
from hccl_py.testing.calls import recorded
from hccl_py.topology import topology_of
from hccl_py.verifier import verify
from hccl_py.verifier.classes import Severity
from hccl_py.verifier.sweeps.cases import Case
from tests.executors.calls import some_calls
from tests.recording import op_of

BUFFERS = (Buffer.CCL_IN.spelling, Buffer.CCL_OUT.spelling)
ODD_SIZES = (16384 + 1000, 50002)
"""No multiples of 128 bytes; larger than the 16 KiB that HCCL leaves free."""

SEVERAL = [cls for cls in EXECUTORS if not cls.__name__.endswith("SingleExecutor")]
"""All but the copies on one rank, which touch no peer's buffer."""

RACES = ("RACE_RW", "RACE_WW", "RDMA_SOURCE_REUSE")


def is_small(case: Case) -> bool:
    return not case.is_trivial and case.topology.size <= 12


def races(program: Program, case: Case) -> list[str]:
    report = verify(program, product=case.topology.product)
    return [f.message for f in report.findings if f.name in RACES]


@pytest.mark.sweep
@pytest.mark.parametrize("executor", SEVERAL, ids=lambda executor: executor.__name__)
def test_any_size_of_buffers_will_do(executor: type[Executor]) -> None:
    for case, size in zip(some_calls(executor, 2, "size", accept=is_small), ODD_SIZES, strict=True):
        op = case.op
        if not (op.counts or op.matrix or op.pairs):
            op = replace(op, count=size // op.unit + 1)  # several rounds
        odd = Case(case.topology, op, size)
        report = verify(recorded(executor, odd), product=case.topology.product)
        found = [f.message for f in report.findings if f.severity is Severity.ERROR]
        assert not found, (odd.text, found)


@pytest.mark.sweep
@pytest.mark.parametrize("executor", SEVERAL, ids=lambda executor: executor.__name__)
def test_other_ops_may_use_the_buffers_before_and_after(executor: type[Executor]) -> None:
    """Peers touch a rank's buffers between the beginning and the end of the op on its main stream
    only.
    """
    for case in some_calls(executor, 2, "between", accept=is_small):
        program = between_others(recorded(executor, case), case.ccl_bytes)
        assert not races(program, case), case.text


def test_an_op_that_another_one_cuts_in_two_is_found_out() -> None:
    """The test before this one sees what it looks for."""
    case = Case(topology_of(4), op_of("all_gather"), 1 << 20)
    program = recorded(AllGatherComm, case)
    # The end: Ack posted, Ack awaited, DataSignal posted, DataSignal awaited, 4 slots copied out.
    # The right neighbour reads this rank's slots until it posts that Ack.
    assert races(between_others(program, case.ccl_bytes, early=4 + 3), case)
    assert not races(between_others(program, case.ccl_bytes, early=4 + 2), case)


def between_others(program: Program, size: int, early: int = 0) -> Program:
    """Return the program between two ops that fill all of a rank's buffers, on main streams; the
    second one comes `early` tasks before the end.
    """
    if not set(BUFFERS) <= set(program.buffers):
        return program
    other = len(program.buffers)
    fills = tuple(
        Instruction(
            TaskKind.COPY,
            0,
            src_buffer=other,
            dst_buffer=program.buffers.index(buffer),
            size=size,
        )
        for buffer in BUFFERS
    )
    batches = []
    for ranks, instructions in program.batches:
        end = len(instructions) - early
        batches.append(Batch(ranks, (*fills, *instructions[:end], *fills, *instructions[end:])))
    room = np.full((program.ranks, 1), size)
    return replace(
        program,
        buffers=(*program.buffers, "other"),
        buffer_sizes=np.column_stack([program.buffer_sizes, room]),
        batches=tuple(batches),
    )
