"""Reduce-scatter over a mesh: as data arrives, or in turns that never change."""

from dataclasses import replace

import pytest

from hccl_executors.hierarchical import (
    Hierarchical,
    ReduceScatterMeshExecutor,
)
from hccl_executors.mixed import ReduceScatterMixExecutor
from hccl_py.enums import ReduceOp, TaskKind
from hccl_py.program.program import Program
from hccl_py.topology import topology_of
from hccl_py.verifier import verify
from hccl_py.verifier.numeric import run_numeric
from tests.executors.flat import FORMULA, formula_us, in_turn, moves
from tests.recording import op_of, recorded

STEP, BYTE = FORMULA.hccs.alpha_us, FORMULA.hccs.beta_us + FORMULA.gamma_us

ARRIVAL, TURNS = False, True
"""Whether the sums are to be deterministic."""


def on_mesh(
    turns: bool,
    p: int,
    count: int = 0,
    dtype: str = "fp32",
    preset: str = "mesh",
    executor: type[Hierarchical] = ReduceScatterMeshExecutor,
) -> Program:
    op = op_of("reduce_scatter", count or 32 * max(p - 1, 1), dtype)
    return recorded(executor, replace(op, deterministic=turns), topology_of(p, preset=preset))


@pytest.mark.sweep
@pytest.mark.parametrize("executor", [ReduceScatterMeshExecutor, ReduceScatterMixExecutor])
@pytest.mark.parametrize("turns", [ARRIVAL, TURNS])
@pytest.mark.parametrize("p", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("count", [1, 33, 400])
@pytest.mark.parametrize("dtype", ["fp32", "int64"])
def test_it_is_right_without_inline_reduce_too(
    executor: type[Hierarchical], turns: bool, p: int, count: int, dtype: str
) -> None:
    program = on_mesh(turns, p, count, dtype, executor=executor)
    assert not verify(program, product=topology_of(1).product).errors
    assert run_numeric(program, in_turn(p + count)).ok


@pytest.mark.parametrize("p", [2, 3, 5, 8])
def test_every_link_carries_one_chunk(p: int) -> None:
    each = 128 * (p - 1)
    tasks, sizes = moves(on_mesh(ARRIVAL, p))
    assert (tasks, sizes) == ([p - 1] * p, [each * (p - 1)] * p)
    tasks, sizes = moves(on_mesh(TURNS, p))
    assert (tasks, sizes) == ([(p - 1) ** 2] * p, [each * (p - 1)] * p)


@pytest.mark.parametrize("p", [2, 3, 5, 8])
def test_times_equal_the_formulas(p: int) -> None:
    each = 128 * (p - 1)
    assert formula_us(on_mesh(ARRIVAL, p)) == pytest.approx(STEP + each * BYTE)
    assert formula_us(on_mesh(TURNS, p)) == pytest.approx((p - 1) * STEP + each * BYTE)


def test_turns_are_those_of_the_table() -> None:
    tasks = on_mesh(TURNS, 4).tasks
    reads = (tasks.kind == TaskKind.READ_REDUCE) & (tasks.rank == 0)
    peers = {
        int(offset): tasks.peer[reads & (tasks.dst_offset == offset)].tolist()
        for offset in tasks.dst_offset[reads]
    }
    assert list(peers.values()) == [[1, 2, 3], [2, 3, 1], [3, 1, 2]]


def nondeterministic(program: Program) -> bool:
    return any(f.name == "REDUCE_ORDER_NONDET" for f in verify(program))


def test_only_sums_on_arrival_depend_on_timing() -> None:
    assert nondeterministic(on_mesh(ARRIVAL, 3))
    assert not nondeterministic(on_mesh(TURNS, 3))


def test_only_atlas_a2_adds_on_arrival_and_only_what_links_can_add() -> None:
    assert not nondeterministic(on_mesh(ARRIVAL, 4, preset="atlas-800-9000"))
    product = replace(op_of("reduce_scatter", 100), reduce=ReduceOp.PROD)
    assert not nondeterministic(recorded(ReduceScatterMeshExecutor, product, topology_of(4)))
