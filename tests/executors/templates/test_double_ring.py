"""Rings over the same ranks, the two ways round and through two meshes: right, clean, balanced."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hccl_executors.templates.aligned_rings import aligned_all_gather, aligned_reduce_scatter
from hccl_executors.templates.double_ring import rings_all_gather, rings_reduce_scatter
from hccl_py.enums import Buffer, DataType, Mode, ReduceOp, TaskKind
from hccl_py.operators import make_operator
from hccl_py.orchestration import Chunks, Plane
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
from hccl_py.topology import PRESETS, topology_of
from hccl_py.verifier.numeric import run_numeric
from hccl_py.verifier.subject import Options
from hccl_py.verifier.sweeps.cases import Cases
from hccl_py.verifier.verifier import verify_program
from tests.executors.flat import in_turn
from tests.executors.kept import kept_lines
from tests.recording import BY_NAME

OPS = ("all_gather", "reduce_scatter")


class Rings:
    """Inside one server, as the product's rings go."""

    op: str | tuple[str, ...] = "all_gather"
    is_aligned = False
    algorithm = "level0:double_ring"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        return require((topology.is_single_server, "needs one server"))

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        k, graph = len(rank.rings), op.mode is Mode.GRAPH
        memories: tuple[Buffer | None, Buffer | None] = (None, None)
        scratch = 0
        if graph and op.name != "all_gather":
            memories = (Buffer.USER_OUT, Buffer.SCRATCH)
            scratch = op.size * rank.size * (1 if rank.inline_reduce else 2)
        helpers = k if self.is_aligned and not graph else 0
        return ResourceRequest(
            planes=tuple(
                PlaneRequest(ring.name, "ring", *memories) for ring in rank.rings if rank.size > 1
            ),
            sub_streams=k - 1 + helpers if rank.size > 1 else k - 1,
            scratch_bytes=scratch,
            max_count=rank.ccl_bytes // rank.size // 128 * 128 // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Any, Any]) -> None:
        helped = self.is_aligned and op.mode is Mode.OP_BASE
        rings = rank.rings
        if op.name == "all_gather":
            slots = rank.stage_out()
            rank.main.copy(slots[rank.id], rank.user_in)
            if helped:
                aligned_all_gather(rank, rings, slots, rank.user_out)
                return
            (aligned_all_gather if self.is_aligned else _plain_all_gather)(
                rank, rings, slots, slots
            )
            rank.deliver(slots)
        else:
            self._reduce_scatter(rank, rings, helped)

    def _reduce_scatter(self, rank: Rank[Any, Any], rings: tuple[Plane, ...], helped: bool) -> None:
        slots = rank.slots(rank.user_out.size)
        if helped:
            aligned_reduce_scatter(rank, rings, rank.user_in, slots, rank.user_out)
            return
        rank.main.copy(slots, rank.user_in)
        if self.is_aligned:
            aligned_reduce_scatter(rank, rings, slots, slots)
        else:
            rings_reduce_scatter(rank, rings, slots)
        rank.deliver(slots[rank.id])


def _plain_all_gather(
    rank: Rank[Any, Any], rings: tuple[Plane, ...], slots: Chunks, _: Chunks
) -> None:
    rings_all_gather(rank, rings, slots)


class RingsAllGather(Rings):
    op = "all_gather"


class RingsReduceScatter(Rings):
    op = "reduce_scatter"


class AlignedAllGather(Rings):
    op = "all_gather"
    is_aligned = True


class AlignedReduceScatter(Rings):
    op = "reduce_scatter"
    is_aligned = True


EXECUTORS = (RingsAllGather, RingsReduceScatter, AlignedAllGather, AlignedReduceScatter)

BY_KIND: dict[tuple[object, bool], type[Rings]] = {
    (executor.op, executor.is_aligned): executor for executor in EXECUTORS
}

CASES = Cases(
    topology="atlas-900-a3",
    servers=1,
    devices=4,
    counts=(61, 9001),
    dtypes=(DataType.FP32,),
    reduce_ops=(ReduceOp.SUM,),
)
"""One round and several; without inline reduce, above."""


def recorded(
    op_name: str,
    aligned: bool,
    preset: str,
    devices: int,
    count: int = 300,
    dtype: str = "int32",
    mode: Mode = Mode.OP_BASE,
) -> Program:
    reduce = None if op_name == "all_gather" else ReduceOp.SUM
    op = OpParam(op_name, count, DataType(dtype), reduce, mode=mode)
    topology = Topology(PRESETS[preset], (devices,))
    return record(BY_KIND[op_name, aligned](), op, topology, make_operator(op_name), 1 << 20)


def assert_clean(program: Program, preset: str) -> None:
    """HCCL requests helpers even where they have nothing to do."""
    report = verify_program(program, Options(product=PRESETS[preset]))
    wrong = [f for f in report if f.name not in ("UNALIGNED", "RESOURCE_UNUSED")]
    assert not wrong, wrong[:3]
    assert run_numeric(program, in_turn(program.task_count)).ok


LAYOUTS = [
    *(("atlas-900-a3", n) for n in (1, 2, 4, 6)),
    *(pytest.param("atlas-900-a3", n, marks=pytest.mark.long) for n in (8, 16)),
    *(("atlas-800t-a2", n) for n in (1, 2, 3, 5, 7)),
    *(("atlas-800-9000", n) for n in (2, 4, 8)),
]


@pytest.mark.sweep
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(("preset", "devices"), LAYOUTS)
def test_is_clean_and_right(preset: str, devices: int, op: str, aligned: bool, mode: Mode) -> None:
    if aligned and len(Topology(PRESETS[preset], (devices,)).rings) != 2:
        return  # two rings are aligned, one or four are not
    for dtype, count in (("fp32", 300), ("int64", 37)):
        assert_clean(recorded(op, aligned, preset, devices, count, dtype, mode), preset)


@pytest.mark.sweep
@pytest.mark.parametrize(
    "executor",
    [e if e.is_aligned else pytest.param(e, marks=pytest.mark.long) for e in EXECUTORS],
)
def test_holds_what_every_executor_must(executor: type[Rings]) -> None:
    check_executor(executor, cases=CASES, kept=kept_lines(executor.__name__))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(("preset", "rings"), [("atlas-900-a3", 2), ("atlas-800-9000", 4)])
def test_every_ring_moves_the_same(preset: str, rings: int, op: str) -> None:
    """Per ring p - 1 steps of 1/k of a slot."""
    slot, p = 128 * rings, 8
    tasks = recorded(op, False, preset, p, slot // 4).tasks
    read = np.isin(tasks.kind, (TaskKind.READ, TaskKind.READ_REDUCE)) | (
        np.isin(tasks.kind, (TaskKind.WRITE, TaskKind.WRITE_REDUCE))
    )
    for stream in range(rings):
        mine = read & (tasks.stream == stream) & (tasks.rank == 3)
        assert tasks.size[mine].tolist() == [128] * (p - 1)


def test_the_two_rings_of_a3_read_from_both_sides() -> None:
    tasks = recorded("all_gather", True, "atlas-900-a3", 8).tasks
    read = (tasks.kind == TaskKind.READ) & (tasks.rank == 3)
    peers = {stream: set(tasks.peer[read & (tasks.stream == stream)]) for stream in (0, 1)}
    assert peers == {0: {4}, 1: {2}}  # main runs ring 1: 0, 7, 6, ...


@pytest.mark.parametrize("op", OPS)
def test_aligned_rings_work_on_user_memory_in_op_base_mode(op: str) -> None:
    """2k - 1 sub streams, k - 1 in graph mode; the last step ends in the output itself."""
    program = recorded(op, True, "atlas-900-a3", 8)
    graph = recorded(op, True, "atlas-900-a3", 8, mode=Mode.GRAPH)
    assert (program.streams - 1, graph.streams - 1) == (3, 1)
    (batch,) = program.batches
    into = {i.kind for i in batch.instructions if i.dst_buffer == Buffer.USER_OUT}
    assert (TaskKind.READ_REDUCE if op == "reduce_scatter" else TaskKind.READ) in into


def test_aligned_rings_begin_every_read_together() -> None:
    """No stream can read before both have their Acks: ring 0's read waits for main."""
    program = recorded("all_gather", True, "atlas-900-a3", 4, mode=Mode.GRAPH)
    tasks = program.tasks
    mine = [
        TaskKind(kind)
        for kind, stream, rank in zip(tasks.kind, tasks.stream, tasks.rank, strict=True)
        if rank == 0 and stream == 1 and kind != TaskKind.COPY
    ]
    step = [
        *(TaskKind.NOTIFY_POST, TaskKind.NOTIFY_WAIT),  # Ack to the right, from the left
        *(TaskKind.NOTIFY_POST, TaskKind.NOTIFY_WAIT),  # meet main
        *(TaskKind.READ, TaskKind.NOTIFY_POST, TaskKind.NOTIFY_WAIT),
    ]
    assert mine == [TaskKind.NOTIFY_WAIT, *3 * step, TaskKind.NOTIFY_POST]


def kinds(program: Program, stream: int) -> str:
    """Return rank 0's tasks on a stream: c copies, 0 of nothing, r reads, p posts, w waits."""
    letters = {TaskKind.NOTIFY_POST: "p", TaskKind.NOTIFY_WAIT: "w", TaskKind.READ: "r"}
    tasks = program.tasks
    mine = (tasks.rank == 0) & (tasks.stream == stream)
    return "".join(
        letters.get(TaskKind(kind), "r" if kind == TaskKind.READ_REDUCE else "c0"[int(size == 0)])
        for kind, size in zip(tasks.kind[mine], tasks.size[mine], strict=True)
    )


def test_tasks_of_aligned_rings_are_those_of_the_source() -> None:
    """Read off RunAllGather and RunReduceScatter for four ranks in op-base mode, line by line: main
    (0), ring 0's stream (1), its helper (2) and main's (3).
    """
    gathered = recorded("all_gather", True, "atlas-900-a3", 4)
    step = "pw" + "www0ppp" + "r" + "pw"  # Acks, all line up, read, DataSignals
    main = "c" + "p0w" + "0ppp0" + 3 * step + "www0" + "pwpw"  # the first copy is the test's
    assert kinds(gathered, 0) == main
    assert kinds(gathered, 1) == "w0p" + "w0" + 3 * ("pw" + "pw" + "r" + "pw") + "p"
    assert kinds(gathered, 2) == kinds(gathered, 3) == "w0" + 3 * "pwc" + "p"

    reduced = recorded("reduce_scatter", True, "atlas-900-a3", 4)
    main = "0ppp" + "0" + "www0pppc" + "0" + 3 * step + "www0"
    assert kinds(reduced, 0) == main
    assert kinds(reduced, 1) == "w0" + "pwc" + "0" + 3 * ("pw" + "pw" + "r" + "pw") + "p"
    assert kinds(reduced, 2) == kinds(reduced, 3) == "w0" + "pwc" + "0" + "pwc" + "pwc" + "pw" + "p"


def test_tasks_of_the_serial_form_are_those_of_the_source() -> None:
    """HCCL's ReduceScatterFastDoubleRing on four ranks: between two copies of nothing, main first
    copies the two slots that its ring fetches later, then the two that it begins with.
    """
    executor = BY_NAME["ReduceScatterFastDoubleRingFor91093Executor"]
    op = OpParam("reduce_scatter", 300, DataType.INT32, ReduceOp.SUM, level1="NHR", level2="NHR")
    topology = topology_of(4, preset="atlas-900-a3")
    program = record(executor(), op, topology, make_operator("reduce_scatter"), 1 << 20)
    step = "pw" + "ww0pp" + "r" + "pw"
    main = "0" + "cc" + "cc" + "ppww" + "pp" + "0" + 3 * step + "ww0" + "pwpw"
    assert kinds(program, 0) == "0" + main + "0"
    assert kinds(program, 1) == "wcp" + "w0" + 3 * ("pw" + "pw" + "r" + "pw") + "p"
    assert kinds(program, 2) == "wcp" + "w0" + "pwc" + "pwc" + "pw" + "p"
    assert kinds(program, 3) == ""


@pytest.mark.parametrize(
    ("ranks", "in_place", "suits"), [(2, True, False), (2, False, True), (4, True, True)]
)
def test_two_devices_cannot_reduce_scatter_in_place(
    ranks: int, in_place: bool, suits: bool
) -> None:
    """HCCL's copies of rank 1 move its kept half over what it sends, beside the copy of that; more
    devices fetch what they keep after all they send.
    """
    executor = BY_NAME["ReduceScatterRingFor91093Executor"]()
    op = OpParam("reduce_scatter", 300, DataType.INT32, ReduceOp.SUM, level1="NHR", level2="NHR")
    op = replace(op, in_place=in_place)
    topology = topology_of(ranks, preset="atlas-900-a3")
    assert bool(executor.suits(op, topology)) is suits
    if suits:
        program = record(executor, op, topology, make_operator("reduce_scatter"), 1 << 20)
        assert not verify_program(program).errors
