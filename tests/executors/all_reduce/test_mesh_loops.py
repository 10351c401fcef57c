"""The deterministic all-reduces over a mesh for more data: steps and volumes."""

from typing import Any

import pytest

from hccl_executors.all_reduce.mesh_mid_count_loop import AllReduceMeshMidCountLoopExecutor
from hccl_executors.all_reduce.mesh_oneshot_loop import AllReduceMeshOneshotLoopExecutor
from hccl_py.enums import Mode
from hccl_py.executor import Unsuitable
from hccl_py.topology import topology_of
from tests.executors.flat import moves
from tests.recording import op_of, recorded

COUNT = 8 * 7 * 32
CHUNK = 4 * COUNT // 8


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(
    ("executor", "parts"),
    [(AllReduceMeshMidCountLoopExecutor, 1), (AllReduceMeshOneshotLoopExecutor, 7)],
)
def test_every_chunk_goes_over_every_link_twice(executor: Any, parts: int, mode: Mode) -> None:
    """Chunk r to rank r, whole or in p - 1 parts, and back to everybody."""
    program = recorded(executor, op_of("all_reduce", COUNT, mode=mode), 8)
    assert moves(program) == ([7 * parts + 7] * 8, [2 * 7 * CHUNK] * 8)


def test_parts_meet_peers_in_turn() -> None:
    program = recorded(AllReduceMeshOneshotLoopExecutor, op_of("all_reduce", COUNT), 8)
    steps = {f"reduce-scatter {k}/7" for k in range(1, 8)}
    assert steps <= set(program.labels)
    assert len(program.batches) == 1


@pytest.mark.parametrize(
    "executor", [AllReduceMeshMidCountLoopExecutor, AllReduceMeshOneshotLoopExecutor]
)
def test_rings_are_refused(executor: Any) -> None:
    refusal = executor().suits(op_of("all_reduce"), topology_of(4, preset="ring"))
    assert isinstance(refusal, Unsuitable)
    assert refusal.reason == "needs every device linked to every other one"
