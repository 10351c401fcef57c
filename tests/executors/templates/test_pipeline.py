"""The pipeline over a mesh and a ring: right, clean, in the steps and volumes of its docstring."""

from time import process_time
from typing import Any

import numpy as np
import pytest

from hccl_executors.templates.pipeline import (
    pipeline_all_gather,
    pipeline_all_reduce,
    pipeline_reduce_scatter,
)
from hccl_py.enums import Buffer, DataType, Mode, ReduceOp, TaskKind
from hccl_py.operators import make_operator
from hccl_py.orchestration import Chunks, Region
from hccl_py.orchestration.record import record
from hccl_py.plugins.executor import (
    OpParam,
    PlaneRequest,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)
from hccl_py.program.program import Program
from hccl_py.testing import check_executor
from hccl_py.topology import PRESETS
from hccl_py.verifier.numeric import run_numeric
from hccl_py.verifier.subject import Options
from hccl_py.verifier.sweeps.cases import Cases
from hccl_py.verifier.verifier import verify_program
from tests.executors.flat import in_turn
from tests.executors.kept import BARRIER, PIPELINE, lines_of

SHAPES = [(1, 1), (1, 4), (4, 1), (2, 2), (2, 8), (3, 4), (4, 3), (5, 2), (2, 5), (8, 2), (9, 1)]


def region(memory: Region, number: int, size: int) -> Region:
    return memory[number * size : (number + 1) * size]


class Pipelined:
    """Op-base: two blocks in both CCL buffers, or three in one. Graph mode: through scratch."""

    op: str | tuple[str, ...] = "all_gather"
    algorithm = "level0:mesh;level1:pipeline"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        inline = topology.reduces_inline(op.dtype, op.reduce)
        return require(
            (topology.is_even and len(topology.superpods) == 1, "needs servers alike"),
            (topology.has_mesh, "needs a mesh in the server"),
            (op.reduce is None or inline, "needs inline reduce"),
        )

    def blocks(self, op: OpParam) -> int:
        return 3 if op.name == "reduce_scatter" else 2

    def slot_bytes(self, op: OpParam, size: int) -> int:
        if op.name == "all_reduce":
            return (op.size + size * 128 - 1) // (size * 128) * 128
        return op.size

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        n, servers = int(rank.level0.size), int(rank.level1.size)
        graph = op.mode is Mode.GRAPH
        memories = (Buffer.USER_IN, Buffer.SCRATCH) if graph else (None, None)
        each = self.room(op, rank.ccl_bytes)
        each *= rank.size if self.op == "all_reduce" else 1
        planes = ("level0", "mesh", n), ("level1", "ring", servers)
        return ResourceRequest(
            planes=tuple(PlaneRequest(p, links, *memories) for p, links, k in planes if k > 1),
            sub_streams=n,
            scratch_bytes=self.blocks(op) * self.slot_bytes(op, rank.size) if graph else 0,
            max_count=each // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Any, Any]) -> None:
        slots = rank.user_in if op.name == "reduce_scatter" else rank.user_out
        if op.name == "all_reduce":
            slots = rank.user_out.split(rank.size)
        images = [self.image(block, slots) for block in self.places(op, rank, slots.largest)]
        mesh, ring = rank.level0, rank.level1
        if op.name == "all_gather":
            rank.main.copy(images[0][rank.id], rank.user_in)
            pipeline_all_gather(rank, mesh, ring, slots, images)
        elif op.name == "reduce_scatter":
            rank.main.copy(rank.user_out, pipeline_reduce_scatter(rank, mesh, ring, slots, images))
        else:
            inputs = rank.user_in.split(rank.size)
            pipeline_all_reduce(rank, mesh, ring, inputs, slots, images)

    def room(self, op: OpParam, ccl_bytes: int) -> int:
        return ccl_bytes // (3 if op.name == "reduce_scatter" else 1) // 128 * 128

    def places(self, op: OpParam, rank: Rank[Any, Any], size: int) -> list[Region]:
        if op.mode is Mode.GRAPH:
            return [region(rank.scratch, k, size) for k in range(self.blocks(op))]
        if op.name == "reduce_scatter":
            return [region(rank.ccl_in, k, self.room(op, rank.ccl_bytes)) for k in range(3)]
        return [rank.ccl_in, rank.ccl_out]

    def image(self, block: Region, slots: Chunks) -> Chunks:
        starts = np.full_like(slots.offsets, int(block.offset))
        return Chunks(block.buffer, starts, slots.sizes, slots.row)


class PipelinedAllGather(Pipelined):
    pass


class PipelinedReduceScatter(Pipelined):
    op = "reduce_scatter"


class PipelinedAllReduce(Pipelined):
    op = "all_reduce"


CASES = Cases(ranks=(1, 6), counts=(1, 1001), dtypes=(DataType.INT8,), reduce_ops=(ReduceOp.SUM,))
"""Few: tests/executors/test_all.py holds the executors of this template to many more."""

EXECUTORS = PipelinedAllGather, PipelinedReduceScatter, PipelinedAllReduce
OPS: dict[str, type[Pipelined]] = dict(
    zip(("all_gather", "reduce_scatter", "all_reduce"), EXECUTORS, strict=True)
)


def recorded(
    op_name: str,
    servers: int,
    devices: int,
    count: int = 300,
    *,
    mode: Mode = Mode.OP_BASE,
    preset: str = "atlas-800t-a2",
    ccl_bytes: int = 1 << 20,
) -> Program:
    reduce = None if op_name == "all_gather" else ReduceOp.SUM
    op = OpParam(op_name, count, DataType.INT32, reduce, mode=mode)
    topology = Topology(PRESETS[preset], (devices,) * servers)
    return record(OPS[op_name](), op, topology, make_operator(op_name), ccl_bytes)


HINTS = ("UNALIGNED", "RESOURCE_UNUSED")
"""With one server, the ring's stream may have nothing to do."""


def assert_right(program: Program, preset: str = "atlas-800t-a2") -> None:
    report = verify_program(program, Options(product=PRESETS[preset]))
    wrong = [finding for finding in report if finding.name not in HINTS]
    assert not wrong, wrong[:3]
    numeric = run_numeric(program, in_turn(program.task_count))
    assert numeric.ok, numeric.wrong


@pytest.mark.sweep
@pytest.mark.parametrize(("count", "mode"), [(1, Mode.GRAPH), (300, Mode.OP_BASE)])
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(("servers", "devices"), SHAPES)
def test_is_clean_and_right(servers: int, devices: int, op: str, count: int, mode: Mode) -> None:
    assert_right(recorded(op, servers, devices, count, mode=mode))


@pytest.mark.parametrize("op", OPS)
def test_the_ring_may_be_of_sdma_links(op: str) -> None:
    """A3's switch joins the servers of a superpod; its dies have a mesh, too."""
    assert_right(recorded(op, 3, 4, preset="atlas-900-a3"), "atlas-900-a3")


@pytest.mark.parametrize("op", OPS)
def test_runs_in_rounds(op: str) -> None:
    program = recorded(op, 2, 4, 40000, ccl_bytes=16 << 10)
    assert program.rounds > 1
    assert_right(program)


@pytest.mark.sweep
@pytest.mark.parametrize("executor", EXECUTORS)
def test_holds_what_every_executor_must(executor: type[Pipelined]) -> None:
    check_executor(executor, cases=CASES, kept=lines_of(*BARRIER, *PIPELINE))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(("servers", "devices"), [(2, 8), (3, 4), (5, 2)])
def test_each_rank_sends_its_share_between_servers(servers: int, devices: int, op: str) -> None:
    """(S - 1)/(Sn) of the data, twice that for all-reduce: 1/n of what it is without pipeline."""
    slot, ranks = 128 * 4, servers * devices
    count = slot // 4 * (ranks if op == "all_reduce" else 1)
    tasks = recorded(op, servers, devices, count).tasks
    sent = np.isin(tasks.kind, (TaskKind.RDMA_WRITE, TaskKind.RDMA_WRITE_REDUCE))
    each = np.bincount(tasks.rank[sent], tasks.size[sent], minlength=ranks)
    assert (each == (2 if op == "all_reduce" else 1) * (servers - 1) * slot).all()


def test_all_gather_takes_as_many_steps_as_servers() -> None:
    labels = recorded("all_gather", 5, 2).labels
    assert [label for label in labels if label] == [
        f"pipeline all-gather {step}/5" for step in (1, 2, 3, 4, 5)
    ]


@pytest.mark.parametrize("op", OPS)
def test_a_thousand_ranks_are_recorded_in_one_batch(op: str) -> None:
    begin = process_time()
    program = recorded(op, 128, 8, 8192)
    assert len(program.batches) == 1
    assert process_time() - begin < 10  # it takes about half a second
