"""Ops of one communicator on several streams of the caller."""

import pytest

from hccl_py.program.program import Call
from hccl_py.verifier import Options, TaskAt, verify_program
from tests.recording import op_of, recorded
from tests.verifier.programs import written

RING = "AllGatherComm"
COPY = {"0": {"0": [["copy", ["IN", 0, 8], ["OUT", 0, 8]]]}}


def found(*calls: Call) -> list[str]:
    program = recorded(RING, op_of("all_gather"), 3)
    return [f.name for f in verify_program(program, Options(calls=calls)).errors]


@pytest.mark.parametrize(
    "calls",
    [
        (Call(0), Call(0)),
        (Call(0), Call(1, after=(0,))),
        (Call(0), Call(1, after=(0,)), Call(0, after=(1,))),
        (Call(0), Call(1, after=(0,)), Call(2, after=(1,))),
        (Call(5),),
    ],
)
def test_calls_that_streams_or_events_order_are_clean(calls: tuple[Call, ...]) -> None:
    assert found(*calls) == []


@pytest.mark.parametrize(
    ("calls", "loose"),
    [
        ((Call(0), Call(1)), (1, 0)),
        ((Call(0), Call(1, after=(0,)), Call(0)), (2, 1)),
        ((Call(0), Call(1), Call(1, after=(0,))), (1, 0)),
    ],
)
def test_the_first_two_that_nothing_orders_are_named(
    calls: tuple[Call, ...], loose: tuple[int, int]
) -> None:
    program = recorded(RING, op_of("all_gather"), 3)
    report = verify_program(program, Options(calls=calls))
    (finding,) = report.of_class("CONCURRENT_OPS")
    length = int((program.tasks.rank == 0).sum())
    assert finding.tasks == tuple(TaskAt(0, 0, copy * length) for copy in loose)
    assert (finding.repeat, finding.ranks) == (loose[0] + 1, (0, 1, 2))
    assert "stream" in finding.hint


def test_a_file_states_its_calls() -> None:
    tasks = {str(r): {"0": [["post", 1 - r, 0], ["wait", 1 - r, 0]]} for r in range(2)}
    op = {"name": "barrier", "dtype": "fp32"}
    loose = written(tasks, op=op, calls=[{"stream": 0}, {"stream": 3}])
    assert "CONCURRENT_OPS" in {f.name for f in verify_program(loose)}
    ordered = written(tasks, op=op, calls=[{"stream": 0}, {"stream": 3, "after": [0]}])
    assert "CONCURRENT_OPS" not in {f.name for f in verify_program(ordered)}


def test_what_uses_nothing_of_the_communicator_may_run_at_once() -> None:
    op = {"name": "all_gather", "dtype": "uint8", "count": 8}
    buffers = {"0": {"IN": 8, "OUT": 8}}
    program = written(
        COPY, op=op, ranks=1, buffers=buffers, exported=[], calls=[{"stream": 0}, {"stream": 1}]
    )
    assert verify_program(program).findings == ()
