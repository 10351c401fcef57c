"""The small all-reduce: one step, in both modes, and the chunk mesh where it has no room."""

import pytest

from hccl_executors.all_reduce.mesh_small_count import AllReduceMeshSmallCountExecutor
from hccl_py.enums import Mode, TaskKind
from hccl_py.executor import Unsuitable
from hccl_py.program.program import Program
from hccl_py.topology import topology_of
from hccl_py.verifier import verify
from tests.executors.flat import FORMULA, formula_us, moves
from tests.recording import op_of, recorded

SIZE = 4000


def small(ranks: int, mode: Mode = Mode.OP_BASE, ccl_bytes: int = 1 << 20) -> Program:
    return recorded(
        AllReduceMeshSmallCountExecutor, op_of("all_reduce", mode=mode), ranks, ccl_bytes
    )


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("ranks", [2, 3, 5, 7])
def test_everybody_writes_its_whole_input_to_everybody(ranks: int, mode: Mode) -> None:
    program = small(ranks, mode)
    assert moves(program) == ([ranks - 1] * ranks, [SIZE * (ranks - 1)] * ranks)
    assert set(program.labels) >= {"write to all"}


def test_it_takes_one_latency() -> None:
    program = small(4)
    local = 2 * SIZE * FORMULA.gamma_us  # a tree of four
    assert formula_us(program) < 2 * FORMULA.hccs.alpha_us + SIZE * FORMULA.hccs.beta_us + local


@pytest.mark.parametrize(
    "program",
    [small(8, Mode.GRAPH), small(8, ccl_bytes=1 << 13)],
    ids=["eight ranks in graph mode", "small buffers"],
)
def test_the_chunk_mesh_helps_out(program: Program) -> None:
    assert "write to all" not in program.labels
    kinds = program.tasks.kind
    assert (kinds == int(TaskKind.READ_REDUCE)).sum() > 0


def test_several_servers_are_refused() -> None:
    refusal = AllReduceMeshSmallCountExecutor().suits(
        op_of("all_reduce"), topology_of(servers=2, devices=2)
    )
    assert isinstance(refusal, Unsuitable)
    assert refusal.reason == "needs one server, there are 2"


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("ranks", [1, 2, 7, 8, 16])
def test_nothing_to_add_is_no_special_case(ranks: int, mode: Mode) -> None:
    topology = topology_of(ranks, preset="atlas-900-a3")
    program = recorded(AllReduceMeshSmallCountExecutor, op_of("all_reduce", 0, mode=mode), topology)
    assert verify(program, product=topology.product).ok
