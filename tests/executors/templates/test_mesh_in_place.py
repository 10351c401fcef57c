"""Mesh in place: all links at once, on as many streams as there are; one server shows it alone."""

from dataclasses import replace

import pytest

from hccl_executors.hierarchical import (
    AllGatherMeshExecutor,
    BroadCastMeshExecutor,
    GatherMeshExecutor,
    Hierarchical,
    ScatterMeshExecutor,
)
from hccl_executors.mixed import AllGatherMixExecutor
from hccl_py.program.program import Program
from hccl_py.topology import Topology, topology_of
from hccl_py.verifier import verify
from hccl_py.verifier.numeric import run_numeric
from tests.executors.flat import FORMULA, SCHEDULES, formula_us, moves
from tests.recording import filled, op_of, recorded

ALPHA, BETA = FORMULA.hccs.alpha_us, FORMULA.hccs.beta_us
ROCE = ("300i-duo", "atlas-800-9000")
"""Products whose servers may be linked by RoCE inside."""


def on_mesh(
    executor: type[Hierarchical], where: Topology | int, count: int = 320, root: int = 0
) -> Program:
    topology = topology_of(where, preset="mesh") if isinstance(where, int) else where
    op = filled(op_of(executor.op, count), topology.size)
    op = replace(op, root=root if op.root is not None else None)
    return recorded(executor, op, topology)


@pytest.mark.parametrize("p", [1, 2, 3, 5, 8])
def test_everyone_reads_every_peer_once(p: int) -> None:
    tasks, sizes = moves(on_mesh(AllGatherMeshExecutor, p))
    assert tasks == [p - 1] * p
    assert sizes == [(p - 1) * 1280] * p


def test_a_scatter_is_read_by_everyone_a_gather_by_the_root() -> None:
    assert moves(on_mesh(ScatterMeshExecutor, 5, root=2))[0] == [1, 1, 0, 1, 1]
    assert moves(on_mesh(GatherMeshExecutor, 5, root=2))[0] == [0, 0, 4, 0, 0]


@pytest.mark.parametrize("p", [2, 4, 7])
@pytest.mark.parametrize("executor", [AllGatherMeshExecutor, AllGatherMixExecutor])
def test_it_takes_one_step(executor: type[Hierarchical], p: int) -> None:
    assert formula_us(on_mesh(executor, p)) == pytest.approx(ALPHA + 1280 * BETA, rel=1e-9)


@pytest.mark.parametrize(("p", "barriers"), [(2, 1), (4, 5), (7, 11)])
def test_a_scatter_takes_one_step_and_its_barriers(p: int, barriers: int) -> None:
    """Of 2p - 3 steps: ranks meet in pairs, rank 0 with 1 first, the last two at last."""
    program = on_mesh(ScatterMeshExecutor, p)
    assert formula_us(program) == pytest.approx((1 + barriers) * ALPHA + 1280 * BETA)


def test_a_gather_takes_one_step_at_the_root() -> None:
    assert formula_us(on_mesh(GatherMeshExecutor, 6, root=4)) == pytest.approx(ALPHA + 1280 * BETA)


def test_a_broadcast_is_a_scatter_and_an_all_gather() -> None:
    program = on_mesh(BroadCastMeshExecutor, 4, count=32 * 4)
    assert formula_us(program) == pytest.approx(2 * (ALPHA + 128 * BETA))


@pytest.mark.parametrize(
    ("executor", "on_main"), [(AllGatherMeshExecutor, 1), (AllGatherMixExecutor, 0)]
)
def test_main_serves_the_last_peer_where_subs_are_one_short(
    executor: type[Hierarchical], on_main: int
) -> None:
    program = on_mesh(executor, 6)
    tasks = program.tasks
    on_links = tasks.table.moves_data[tasks.instruction] & (tasks.end >= 0)
    streams = tasks.stream[on_links & (tasks.rank == 3)]
    assert sorted(streams) == list(range(1 - on_main, 6 - on_main))


@pytest.mark.parametrize("executor", [AllGatherMeshExecutor, ScatterMeshExecutor])
@pytest.mark.parametrize("preset", ROCE)
def test_links_inside_a_server_may_be_rdma(executor: type[Hierarchical], preset: str) -> None:
    topology = topology_of(8, preset=preset).linked(inter_hccs=True, intra_roce=True)
    assert topology.has_rdma
    program = on_mesh(executor, topology, root=5)
    assert not verify(program, product=topology.product).errors
    assert run_numeric(program, SCHEDULES).ok
