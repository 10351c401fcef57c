"""Doubling executors: steps, and what they refuse."""

from typing import Any

import pytest

from hccl_executors.all_reduce.doubling import AllReduceDoubling
from hccl_executors.all_reduce.doubling_direct import AllReduceDoublingDirect
from hccl_py.enums import Mode, TaskKind
from hccl_py.plugins.executor import Unsuitable
from hccl_py.topology import topology_of
from tests.executors.flat import moves
from tests.recording import op_of, recorded


@pytest.mark.parametrize(
    ("executor", "ranks"),
    [(AllReduceDoubling, 2), (AllReduceDoubling, 16)]
    + [(AllReduceDoublingDirect, ranks) for ranks in (2, 4, 8)],
)
def test_steps(executor: Any, ranks: int) -> None:
    program = recorded(executor, op_of("all_reduce"), topology_of(ranks, preset="300i-duo"))
    steps = ranks.bit_length() - 1
    assert moves(program) == ([steps] * ranks, [4000 * steps] * ranks)


def test_direct_saves_the_last_copy() -> None:
    """Plain doubling copies in, out and before both steps; direct doubling in and before the last
    step only, as the first one writes.
    """
    copies = [
        int((recorded(executor, op_of("all_reduce"), 4).tasks.kind == TaskKind.COPY).sum()) // 4
        for executor in (AllReduceDoubling, AllReduceDoublingDirect)
    ]
    assert copies == [4, 2]


@pytest.mark.parametrize(
    ("executor", "op", "preset", "ranks", "reason"),
    [
        (AllReduceDoubling, op_of("all_reduce"), "mesh", 6, "power of two ranks, there are 6"),
        (AllReduceDoubling, op_of("all_reduce", dtype="int64"), "mesh", 4, "reduce int64"),
        (
            AllReduceDoublingDirect,
            op_of("all_reduce"),
            "atlas-800t-a2",
            16,
            "three steps at most: 8 ranks, there are 16",
        ),
        (
            AllReduceDoublingDirect,
            op_of("all_reduce", mode=Mode.GRAPH),
            "mesh",
            4,
            "op-base mode only",
        ),
    ],
)
def test_refusals(executor: Any, op: Any, preset: str, ranks: int, reason: str) -> None:
    refusal = executor().suits(op, topology_of(ranks, preset=preset))
    assert isinstance(refusal, Unsuitable)
    assert reason in refusal.reason
