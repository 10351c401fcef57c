"""CCL buffers: any size will do, and they are free for other ops before and after every op."""

import random
from dataclasses import replace

import numpy as np
import pytest

from hccl_executors import EXECUTORS
from hccl_py.enums import Buffer, TaskKind
from hccl_py.executor import Executor
from hccl_py.program.instruction import Batch, Instruction
from hccl_py.program.program import Program
from hccl_py.testing.calls import recorded
from hccl_py.verify import verify
from hccl_py.verify.finding import Severity
from hccl_py.verify.sweeps.cases import Case, Cases
from hccl_py.verify.sweeps.space import space_of

BUFFERS = (Buffer.CCL_IN.spelling, Buffer.CCL_OUT.spelling)
ODD_SIZES = (16384 + 1000, 20001, 50002)
"""No multiples of 128 bytes, as little larger than HCCL's head-room as leaves some rounds."""

SOME = 3


def some_calls(executor: type[Executor], salt: str) -> list[Case]:
    """Return a few calls with data of up to 8 ranks."""
    cases = [
        case
        for case in space_of(executor(), Cases()).cases
        if not case.is_trivial and case.topology.size <= 8
    ]
    return random.Random(executor.__name__ + salt).sample(cases, min(SOME, len(cases)))


def errors(program: Program, case: Case) -> list[str]:
    report = verify(program, product=case.topology.product)
    return [f.message for f in report.findings if f.severity is Severity.ERROR]


@pytest.mark.parametrize("executor", EXECUTORS, ids=lambda executor: executor.__name__)
def test_any_size_of_buffers_will_do(executor: type[Executor]) -> None:
    for case, size in zip(some_calls(executor, "size"), ODD_SIZES, strict=False):
        enough = 3 * size // case.op.unit  # some rounds, where parts do not have amounts of their own
        amounts = case.op if case.op.extent != case.op.count else replace(case.op, count=enough)
        odd = Case(case.topology, amounts if not case.op.pairs else case.op, size)
        assert not errors(recorded(executor, odd), odd), odd.text


@pytest.mark.parametrize("executor", EXECUTORS, ids=lambda executor: executor.__name__)
def test_other_ops_may_use_the_buffers_before_and_after(executor: type[Executor]) -> None:
    """Peers touch a rank's buffers between the beginning and the end of the op on its main stream
    only.
    """
    for case in some_calls(executor, "between"):
        assert not errors(between_others(recorded(executor, case), case.ccl_bytes), case), case.text


def test_an_op_that_another_one_cuts_in_two_is_found_out() -> None:
    """The test before this one sees what it looks for."""
    (case, *_) = some_calls(EXECUTORS[-1], "between")
    program = recorded(EXECUTORS[-1], case)
    assert errors(between_others(program, case.ccl_bytes, early=1), case)


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
        batches.append(
            Batch(ranks, (*fills, *instructions[:end], *fills, *instructions[end:]))
        )
    room = np.full((program.ranks, 1), size)
    return replace(
        program,
        buffers=(*program.buffers, "other"),
        buffer_sizes=np.column_stack([program.buffer_sizes, room]),
        batches=tuple(batches),
    )
