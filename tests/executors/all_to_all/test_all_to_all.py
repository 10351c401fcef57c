"""The all_to_all family: right for any amounts, and moved the way that each executor promises."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_executors.all_to_all.continuous_pipeline import RunAlltoAllVContinuousPipeline
from hccl_executors.all_to_all.direct_full_mesh import RunAlltoAllDirectFullmesh
from hccl_executors.all_to_all.for_310p import RunAlltoAllVFor310PExecutor
from hccl_executors.all_to_all.full_mesh import RunAlltoAllVFullMesh
from hccl_executors.all_to_all.pipeline_for_91093 import RunAlltoAllVPipelineFor91093
from hccl_executors.all_to_all.staged import RunAlltoAllVStaged
from hccl_executors.all_to_all.two_level_pipeline import RunAlltoAllVTwoLevelPipeline
from hccl_py.call.op_param import OpParam
from hccl_py.enums import Buffer, DataType, Mode, TaskKind
from hccl_py.operators import make_operator
from hccl_py.orchestration.record import record
from hccl_py.plugins.executor import ops_of
from hccl_py.program.program import Program
from hccl_py.simulator import CostModel, simulate_tasks
from hccl_py.topology import Topology, topology_of
from tests.executors.parts import EVEN, UNEVEN, exchanges, judged

SMALL_CCL = 16 << 10
EVERYWHERE = (RunAlltoAllVFullMesh, RunAlltoAllDirectFullmesh)
DUO = topology_of(4, preset="300i-duo")
PODS = topology_of(superpods=2, servers=1, devices=3, preset="atlas-900-a3")
HIERARCHICAL = (RunAlltoAllVStaged, RunAlltoAllVTwoLevelPipeline)
CONTINUOUS = (RunAlltoAllVContinuousPipeline, RunAlltoAllVPipelineFor91093)
FAMILY = (*EVERYWHERE, RunAlltoAllVFor310PExecutor, *HIERARCHICAL, *CONTINUOUS)

OP = OpParam("all_to_all", 1000, DataType.FP32)


def program_of(executor: Any, topology: Topology, op: OpParam = OP) -> Program:
    return record(executor, op, topology, make_operator(op.name), 200 << 20)


def crossing(program: Program, topology: Topology) -> npt.NDArray[Any]:
    """Return how many data tasks of each rank go to or come from another server."""
    tasks = program.tasks
    moves = (tasks.end >= 0) & tasks.table.moves_data[tasks.instruction]
    peers = program.transports.peer[tasks.end[moves]]
    ranks = tasks.rank[moves]
    away = topology.server[ranks] != topology.server[peers]
    return np.bincount(ranks[away], minlength=program.ranks)


@pytest.mark.sweep
@pytest.mark.parametrize("executor", FAMILY)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_any_amounts(executor: type[Any], data: st.DataObject) -> None:
    layouts = [t for t in (*EVEN, *UNEVEN, DUO, PODS) if executor().suits(OP, t)]
    topology = data.draw(st.sampled_from(layouts))
    modes = [Mode.OP_BASE] if executor in CONTINUOUS else list(Mode)
    op = data.draw(exchanges(topology.size, names=ops_of(executor()), modes=modes))
    judged(executor(), op, topology, data.draw(st.sampled_from([1 << 20, SMALL_CCL])))


@pytest.mark.parametrize("executor", [*HIERARCHICAL, *CONTINUOUS])
def test_hierarchies_refuse_uneven_servers(executor: type[Any]) -> None:
    verdict = executor().suits(OP, UNEVEN[0])
    assert "equal sizes" in repr(verdict)


@pytest.mark.parametrize("executor", CONTINUOUS)
def test_what_works_through_ccl_buffers_takes_no_graph(executor: type[Any]) -> None:
    op = OpParam("all_to_all", 4, DataType.FP32, mode=Mode.GRAPH)
    assert "op-base mode only" in repr(executor().suits(op, topology_of(4)))


def test_continuous_pipelines_need_several_servers_of_several_devices() -> None:
    pods = topology_of(superpods=2, servers=2, devices=2, preset="atlas-900-a3")
    refused: list[tuple[type[Any], Topology, str]] = [
        (RunAlltoAllVContinuousPipeline, topology_of(4), "needs several servers"),
        (RunAlltoAllVContinuousPipeline, topology_of(servers=2, devices=1), "several devices"),
        (RunAlltoAllVPipelineFor91093, topology_of(servers=2, devices=2), "several superpods"),
        (RunAlltoAllVPipelineFor91093, pods, "superpods of one server"),
    ]
    for executor, topology, reason in refused:
        assert reason in repr(executor().suits(OP, topology))


def test_one_pipeline_needs_several_servers_another_four_dies() -> None:
    assert "several servers" in repr(RunAlltoAllVTwoLevelPipeline().suits(OP, topology_of(4)))
    assert "4 ranks, not 8" in repr(RunAlltoAllVFor310PExecutor().suits(OP, topology_of(8)))


def test_hierarchies_send_to_one_rank_of_each_server() -> None:
    topology = topology_of(servers=4, devices=8)
    sent = {
        executor: set(crossing(program_of(executor(), topology), topology))
        for executor in (RunAlltoAllVFullMesh, *HIERARCHICAL)
    }
    assert sent == {
        RunAlltoAllVFullMesh: {24},
        RunAlltoAllVStaged: {24},  # part by part, 8 to each
        RunAlltoAllVTwoLevelPipeline: {3},
    }


def test_data_that_fits_is_staged_and_delivered_at_once() -> None:
    program = program_of(RunAlltoAllVFullMesh(), topology_of(6, preset="mesh"))
    kinds = program.tasks.table.kind[program.tasks.instruction]
    assert (kinds == TaskKind.COPY).sum() == 6 * 3
    assert (kinds == TaskKind.READ).sum() == 6 * 5


@pytest.mark.parametrize(
    ("executor", "reads"),
    [
        (RunAlltoAllVFullMesh, 3 * 3),  # parts of 36 000 bytes in pieces of 16 KiB
        (RunAlltoAllVStaged, 3 * 3),
        (RunAlltoAllDirectFullmesh, 3 * 9),  # slots of 4 KiB
    ],
)
def test_data_that_does_not_fit_goes_in_pieces(executor: Any, reads: int) -> None:
    topology, operator = topology_of(4, preset="mesh"), make_operator("all_to_all")
    op = OpParam("all_to_all", 9000, DataType.FP32)
    program = record(executor(), op, topology, operator, SMALL_CCL)
    kinds = program.tasks.table.kind[program.tasks.instruction]
    assert program.rounds == 1
    assert (kinds == TaskKind.READ).sum() == 4 * reads


def test_empty_parts_say_nothing_where_pieces_are_counted() -> None:
    """HCCL's rank posts and waits for what goes, of a peer that has nothing for it for nothing."""
    op = OpParam("all_to_all_vc", 9000, DataType.FP32, matrix=((0, 9000), (0, 0)))
    for executor in EVERYWHERE:
        program = record(executor(), op, topology_of(2), make_operator(op.name), SMALL_CCL)
        assert program.tasks.first.tolist() != [0, 0, 0]
        kinds = program.tasks.table.kind[program.tasks.instruction]
        assert {int(r) for r in program.tasks.rank[kinds == TaskKind.READ]} == {1}


def test_direct_full_mesh_reads_from_eight_peers_at_a_time() -> None:
    program = program_of(RunAlltoAllDirectFullmesh(), topology_of(16, preset="atlas-900-a3"))
    tasks = program.tasks
    reads = tasks.table.kind[tasks.instruction] == TaskKind.READ
    mine = reads & (tasks.rank == 0)
    peers = program.transports.peer[tasks.end[mine]]
    streams = tasks.table.stream[tasks.instruction][mine]
    by_stream = {int(s): peers[streams == s].tolist() for s in np.unique(streams)}
    assert by_stream == {
        1: [15, 11], 2: [14, 10], 3: [13, 9], 4: [12, 5],
        5: [1, 6], 6: [2, 7], 7: [3, 8], 8: [4],
    }  # fmt: skip


def test_direct_full_mesh_sends_to_other_pods_on_streams_of_their_own() -> None:
    topology = topology_of(superpods=3, servers=1, devices=4, preset="atlas-900-a3")
    program = program_of(RunAlltoAllDirectFullmesh(), topology)
    tasks = program.tasks
    kinds, streams = (c[tasks.instruction] for c in (tasks.table.kind, tasks.table.stream))
    writes = kinds == TaskKind.RDMA_WRITE
    assert writes.sum() == 12 * 8
    assert set(streams[writes]) == {10}
    first = program.transports.peer[tasks.end[writes & (tasks.rank == 1)]]
    assert first.tolist() == [5, 6, 7, 8, 9, 10, 11, 4]
    assert len(program.batches) == 1


def test_the_pipeline_hides_the_exchange_inside_servers() -> None:
    topology = topology_of(servers=4, devices=8)
    op = OpParam("all_to_all", 1 << 18, DataType.FP32)
    times = {
        executor: simulate_tasks(
            program_of(executor(), topology, op), None, CostModel.of("atlas-800t-a2")
        ).total_us
        for executor in HIERARCHICAL
    }
    assert times[RunAlltoAllVTwoLevelPipeline] < times[RunAlltoAllVStaged]


@pytest.mark.parametrize(
    "executor",
    [
        RunAlltoAllVFullMesh,
        RunAlltoAllVStaged,
        RunAlltoAllDirectFullmesh,
    ],
)
def test_many_ranks_record_together(executor: type[Any]) -> None:
    topology = topology_of(64)
    for name in ("all_to_all", "all_to_all_v"):
        op = make_operator(name).variants()[0](OpParam(name, 50, DataType.FP32), 64)
        assert len(program_of(executor(), topology, op).batches) == 1


def test_equal_devices_of_servers_record_the_two_level_pipeline_together() -> None:
    """The stream for other servers is that of the device's own number."""
    topology = topology_of(64)
    op = make_operator("all_to_all").variants()[0](OpParam("all_to_all", 50, DataType.FP32), 64)
    program = program_of(RunAlltoAllVTwoLevelPipeline(), topology, op)
    assert len(program.batches) == topology.servers[0] == 8


def test_the_continuous_pipeline_takes_a_turn_more_for_each_piece_of_a_block() -> None:
    """With S servers and parts of k pieces, (S - 1)k + 2 turns."""
    topology = topology_of(servers=3, devices=2)
    for pieces in (1, 2, 5):
        slot = ((1 << 20) - 8 * 36) // 6 // 16384 * 16384
        op = OpParam("all_to_all_v", 1, DataType.FP32, counts=((pieces * slot // 4,) * 6,) * 6)
        operator = make_operator(op.name)
        program = record(RunAlltoAllVContinuousPipeline(), op, topology, operator, 1 << 20)
        labels = {f"pipeline {k}/{2 * pieces + 2}" for k in range(1, 2 * pieces + 3)}
        assert set(program.labels) - {""} == labels


@pytest.mark.parametrize("servers", [2, 3])
def test_pieces_that_leave_a_half_of_the_buffer_unfilled(servers: int) -> None:
    """Slots of 4 KiB: the second pieces do not fill theirs, and nobody has written the rest."""
    op, topology = (
        OpParam("all_to_all", 1500, DataType.FP32),
        topology_of(servers=servers, devices=2),
    )
    program = judged(RunAlltoAllVTwoLevelPipeline(), op, topology, SMALL_CCL)
    assert program.tasks.size.max() == 2 * 4096


def test_graph_mode_needs_no_ccl_memory() -> None:
    topology = topology_of(servers=2, devices=3)
    op = OpParam("all_to_all", 100, DataType.FP32, mode=Mode.GRAPH)
    for executor in (RunAlltoAllVFullMesh, *HIERARCHICAL):
        table = program_of(executor(), topology, op).tasks.table
        buffers = {*table.src_buffer.tolist(), *table.dst_buffer.tolist()}
        assert not buffers & {Buffer.CCL_IN, Buffer.CCL_OUT}
