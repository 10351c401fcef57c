"""Pipelines over a mesh and a ring: right on every layout, and thrifty between servers."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_executors import graph_pipelines, pipelines
from hccl_py.enums import Buffer, LinkKind, Mode
from hccl_py.errors import OrchestrationError
from hccl_py.plugins.executor import Executor, Topology, Unsuitable
from hccl_py.plugins.platforms import Schedule
from hccl_py.program.program import Program
from hccl_py.testing import strategies as hccl
from hccl_py.testing.calls import recorded
from hccl_py.topology import PRESETS, topology_of
from hccl_py.verifier import verify
from hccl_py.verifier.numeric import run_numeric
from hccl_py.verifier.sweeps.cases import SMALL_CCL, Case
from hccl_py.verifier.sweeps.rounds import elements_per_round
from tests.executors.calls import executors_of
from tests.executors.flat import SCHEDULES
from tests.recording import filled, op_of, same_tasks
from tests.recording import recorded as record_it

OP_BASE = executors_of(pipelines)
EXECUTORS = OP_BASE + executors_of(graph_pipelines)
THREE_BLOCKS = (
    pipelines.ReduceScatterMeshOpbasePipelineExecutor,
    pipelines.ReduceScatterVMeshOpbasePipelineExecutor,
)
A2, A3, TRAINING = (PRESETS[n] for n in ("atlas-800t-a2", "atlas-900-a3", "atlas-800-9000"))

LAYOUTS = (
    Topology(A2, (1,)),
    Topology(A2, (4,)),
    Topology(A2, (1, 1, 1)),
    Topology(A2, (4, 4)),
    Topology(A2, (3,) * 5),
    Topology(A3, (2,) * 4, (2, 2)),
    Topology(A3, (2,) * 3, (1, 2)),
    Topology(TRAINING, (2, 2)),
)


def mode_of(executor: type[Executor]) -> Mode:
    return Mode.OP_BASE if executor in OP_BASE else Mode.GRAPH


def check(executor: type[Executor], case: Case, schedule: Schedule) -> None:
    program = recorded(executor, case)
    assert same_tasks(program, recorded(executor, case, by_rank=True)), case.text
    assert not verify(program, product=case.topology.product).errors, case.text
    assert run_numeric(program, [schedule]).wrong is None, case.text


@pytest.mark.sweep
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("topology", LAYOUTS, ids=repr)
def test_every_layout(executor: type[Executor], topology: Topology) -> None:
    for number, (count, ccl) in enumerate([(1, 1 << 20), (1001, 1 << 20), (9000, SMALL_CCL)]):
        op = filled(op_of(str(executor.op), count, mode=mode_of(executor)), topology.size)
        if bool(executor().suits(op, topology)):
            check(executor, Case(topology, op, ccl), SCHEDULES[number])
        else:
            assert topology.product is TRAINING


@given(data=st.data(), executor=st.sampled_from(EXECUTORS), schedule=hccl.schedules())
@settings(deadline=None)
def test_any_call(data: st.DataObject, executor: type[Executor], schedule: Schedule) -> None:
    topologies = hccl.topologies(presets=["atlas-800t-a2"], max_ranks=10, uneven=False)
    case = data.draw(hccl.calls(executor, topology=topologies))
    amounts = case.op.counts or case.op.mode is Mode.GRAPH
    if not amounts and data.draw(st.booleans()):  # around the ends of rounds
        most = elements_per_round(executor(), case.op, case.topology, SMALL_CCL)
        count = max(most * data.draw(st.integers(1, 3)) + data.draw(st.integers(-1, 1)), 0)
        case = replace(case, op=replace(case.op, count=count), ccl_bytes=SMALL_CCL)
    check(executor, case, schedule)


@pytest.mark.parametrize("executor", OP_BASE)
def test_buffers_without_room_are_refused(executor: type[Executor]) -> None:
    op = filled(op_of(str(executor.op), 100), 4)
    for ccl in (64, 4096, pipelines.FREE):
        if executor in THREE_BLOCKS and ccl > 64:
            continue  # three blocks without what HCCL leaves free
        with pytest.raises(OrchestrationError, match="the CCL buffer is too small"):
            recorded(executor, Case(topology_of(4), op, ccl))


def wire_bytes(program: Program) -> list[int]:
    tasks, transports = program.tasks, program.transports
    moved = tasks.table.moves_data[tasks.instruction] & (tasks.end >= 0)
    moved &= transports.kind[tasks.end] == LinkKind.RDMA
    sums = np.bincount(tasks.rank[moved], tasks.size[moved], program.ranks)
    return [int(size) for size in sums]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_between_servers_each_rank_moves_its_share(executor: type[Executor]) -> None:
    """(S - 1)/(S·n) of all data, for all-reduce twice."""
    servers, devices, whole = 4, 4, 1 << 20
    times = 2 if str(executor.op) == "all_reduce" else 1
    count = whole // 4 // (1 if times == 2 else servers * devices)
    op = op_of(str(executor.op), count, mode=mode_of(executor))
    if str(executor.op).endswith("_v"):
        op = replace(op, count=0, counts=(count,) * (servers * devices))
    program = record_it(executor, op, topology_of(servers=servers, devices=devices), 4 << 20)
    share = times * (servers - 1) * whole // (servers * devices)
    assert wire_bytes(program) == [share] * program.ranks


@pytest.mark.parametrize(
    ("topology", "mode", "dtype", "reason"),
    [
        (topology_of(4), Mode.GRAPH, "fp32", "works through CCL buffers: op-base mode only"),
        (
            topology_of(4, preset="ring"),
            Mode.OP_BASE,
            "fp32",
            "needs every device linked to every other one",
        ),
        (
            Topology(TRAINING, (8,), intra_roce=True),
            Mode.OP_BASE,
            "fp32",
            "needs SDMA between all devices of a server",
        ),
        (
            Topology(A2, (2, 4)),
            Mode.OP_BASE,
            "fp32",
            "needs servers alike, and ranks numbered by server",
        ),
        (
            topology_of(4),
            Mode.OP_BASE,
            "int64",
            "needs links that reduce this data type on their way",
        ),
    ],
)
def test_refusals_say_why(topology: Topology, mode: Mode, dtype: str, reason: str) -> None:
    executor = pipelines.AllReduceMeshOpbasePipelineExecutor()
    verdict = executor.suits(op_of("all_reduce", dtype=dtype, mode=mode), topology)
    assert isinstance(verdict, Unsuitable)
    assert verdict.reason == reason


def test_graph_mode_only() -> None:
    verdict = graph_pipelines.AllReduceMeshGraphPipelineExecutor().suits(
        op_of("all_reduce"), topology_of(4)
    )
    assert isinstance(verdict, Unsuitable)
    assert verdict.reason == "works in user memory that peers reach: graph mode only"


@pytest.mark.parametrize("name", ["ReduceScatter", "AllReduce"])
def test_the_input_stays_in_graph_mode(name: str) -> None:
    executor: type[Executor] = getattr(graph_pipelines, f"{name}MeshGraphPipelineExecutor")
    op = op_of(str(executor.op), 1001, mode=Mode.GRAPH)
    program = record_it(executor, op, topology_of(servers=3, devices=4))
    table = program.tasks.table
    written = table.dst_buffer[table.moves_data]
    assert len(written)
    assert (written != Buffer.USER_IN).all()
