"""The fast path executes every data task: whatever is done to one shows in the result."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hccl_platform.emulated.fast import FastPath, Thresholds
from hccl_platform.emulated.prepared import Prepared
from hccl_platform.emulated.scheduler import Scheduler
from hccl_platform.emulated.session import EmulatedSession
from hccl_platform.lowering.moves import moves_of
from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, ReduceOp
from hccl_py.plugins.platforms import Adversary, Seeded
from hccl_py.program.instruction import Instruction
from hccl_py.program.program import Program
from hccl_py.topology import Topology, topology_of
from tests.platform.running import (
    FAST,
    NUMPY,
    TILES,
    Array,
    changed,
    expected,
    moved,
    run,
    same_bits,
    scheduled,
    slots_of,
    whole_numbers,
)
from tests.recording import BY_NAME, MESH_ONLY, op_of, recorded


class InOrder(Scheduler):
    """The scheduler, taking the interleaving that the untimed walk found; wires deliver at once."""

    def follow(self, program: Program) -> None:
        queue_of = {row: q for q, rows in enumerate(self._queues) for row in rows}
        self._steps_left = iter([queue_of[row] for row in program.linked.order.tolist()])

    def _candidates(self) -> list[int]:
        if self._busy:
            return self._busy
        turn = next(self._steps_left, None)
        return [] if turn is None else [turn]

    def _burst(self, stream: int) -> int:
        return 1


def run_in_order(program: Program, inputs: Sequence[Array]) -> list[Array]:
    """Run on the scheduler, in the order that the fast path takes."""
    sizes = program.buffer_sizes[:, program.buffers.index("OUT")] // program.op.unit
    outputs = [np.full(size, 77, program.op.dtype.numpy) for size in sizes]
    prepared = Prepared(program, moves_of(program, np.arange(len(program.tasks))))
    slots = slots_of(program, prepared.moves.slots, inputs, outputs)
    steps = dict(zip(prepared.moves.row.tolist(), prepared.moves.steps, strict=True))
    scheduler = InOrder(program, steps, slots, Adversary.RANDOM, Seeded(0))
    scheduler.follow(program)
    scheduler.run()
    return outputs


@st.composite
def programs(draw: st.DrawFn) -> Program:
    name = draw(st.sampled_from(("AllGatherComm", "AllReduceComm", "BroadCastComm", *MESH_ONLY)))
    layouts: list[Topology] = [topology_of(3), topology_of(4)]
    if name not in MESH_ONLY:
        layouts += [topology_of(servers=3, devices=1), topology_of(servers=2, devices=2)]
    op = op_of(str(BY_NAME[name].op), draw(st.sampled_from([150, 400])), "int32")
    ccl_bytes = draw(st.sampled_from([16384 + 1024, 1 << 18]))
    return recorded(name, op, draw(st.sampled_from(layouts)), ccl_bytes, by_rank=True)


def draw_move(data: st.DataObject, program: Program) -> tuple[int, int, Instruction]:
    """Draw a task that moves data: its batch, its index there, its instruction."""
    batch = data.draw(st.integers(0, len(program.batches) - 1))
    instructions = program.batches[batch].instructions
    moves = [k for k, i in enumerate(instructions) if i.kind.moves_data and int(i.size) > 0]
    index = data.draw(st.sampled_from(moves))
    return batch, index, instructions[index]


def check_mutant(program: Program, mutant: Program) -> list[Array]:
    """Check that fast path and scheduler go wrong alike; return how."""
    inputs = whole_numbers(program.op, program.ranks, seed=9)
    wrong = run_in_order(mutant, inputs)
    assert not same_bits(wrong, expected(program.op, inputs)), "the change must show"
    for way in FAST:
        assert same_bits(run(mutant, inputs, way), wrong), way
    return wrong


@given(data=st.data(), program=programs())
def test_deleting_a_data_task_shows(data: st.DataObject, program: Program) -> None:
    batch, index, _ = draw_move(data, program)
    mutant = changed(program, batch, index, lambda _: None)
    wrong = check_mutant(program, mutant)
    inputs = whole_numbers(program.op, program.ranks, seed=9)
    assert same_bits(run(mutant, inputs, scheduled(3)), wrong)


def offsets_near(program: Program, old: Instruction, side: str) -> list[int]:
    """Return other offsets of one side of a task, within its buffer; none if no data moves."""
    if not old.kind.moves_data or not int(old.size):
        return []
    start = int(getattr(old, f"{side}_offset"))
    most = int(program.buffer_sizes[0, getattr(old, f"{side}_buffer")]) - int(old.size)
    return [start + by for by in (-64, -4, 4, 64) if 0 <= start + by <= most]


@given(data=st.data(), program=programs(), side=st.sampled_from(["src", "dst"]))
def test_moving_an_offset_shows(data: st.DataObject, program: Program, side: str) -> None:
    movable = [
        (number, index, one, offset)
        for number, batch in enumerate(program.batches)
        for index, one in enumerate(batch.instructions)
        for offset in offsets_near(program, one, side)
    ]
    assume(movable)
    batch, index, old, offset = data.draw(st.sampled_from(movable))
    new = moved(old, f"{side}_offset", offset)
    check_mutant(program, changed(program, batch, index, lambda _: new))


@given(data=st.data(), program=programs())
def test_shortening_a_data_task_shows(data: st.DataObject, program: Program) -> None:
    batch, index, old = draw_move(data, program)
    new = old._replace(size=int(old.size) - 4)
    check_mutant(program, changed(program, batch, index, lambda _: new))


# ---- which form runs ----


def small_run(thresholds: Thresholds, times: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Run a program of about 100 estimated microseconds; return which runs were in tiles."""
    import hccl_platform.emulated.fast as fast

    tiled: list[int] = []
    op = OpParam("all_reduce", 1000, DataType.FP32, ReduceOp.SUM)
    program = recorded("AllReduceComm", op, 8)
    session = EmulatedSession(8, 1 << 20, thresholds=thresholds, threads=1)
    inputs = whole_numbers(op, 8)
    outputs = [np.empty_like(i) for i in inputs]
    number = 0
    plan = fast.FastPath._plan

    def noticed(*args: Any) -> Any:
        tiled.append(number)
        return plan(*args)

    monkeypatch.setattr(fast.FastPath, "_plan", noticed)
    for number in range(times):  # noqa: B007
        session.run("tag", program, inputs, outputs)
    session.close()
    return tiled


@pytest.mark.parametrize(
    ("run_us", "load_us", "tiled"),
    [(0, 0, [0, 1, 2]), (1e9, 0, []), (0, 250, [2]), (0, 1e9, [])],
)
def test_tiles_run_when_they_are_worth_it(
    run_us: float, load_us: float, tiled: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert small_run(Thresholds(run_us, load_us), 3, monkeypatch) == tiled


def test_small_runs_load_no_numba() -> None:
    code = (
        "import sys, numpy, hccl_py; comm = hccl_py.Communicator(ranks=4);"
        "comm.all_gather([numpy.ones(1024, numpy.float32)] * 4);"
        "assert 'numba' not in sys.modules and 'concurrent.futures' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_kernel_means_the_same_uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    import hccl_platform.emulated.fast as fast
    from hccl_platform.lowering.kernels import run_tiles

    monkeypatch.setattr(fast, "compiled_tiles", lambda: run_tiles.plain)
    for dtype in (DataType.FP16, DataType.BF16, DataType.FP32, DataType.INT16):
        for reduce in ReduceOp:
            op = OpParam("all_reduce", 70, dtype, reduce)
            program, inputs = recorded("AllReduceComm", op, 3), whole_numbers(op, 3)
            with np.errstate(all="ignore"):
                outputs = run(program, inputs, TILES)
            assert same_bits(outputs, expected(op, inputs))


# ---- memory that needs care ----


def test_arrays_at_odd_addresses() -> None:
    op = OpParam("all_reduce", 500, DataType.FP32, ReduceOp.SUM)
    program = recorded("AllReduceMeshOpbaseLoopExecutor", op, 4)  # reduces from the user's memory
    inputs = whole_numbers(op, 4)
    odd = [np.zeros(2001, np.uint8)[1:].view(np.float32) for _ in inputs]
    for array, given_ in zip(odd, inputs, strict=True):
        array[:] = given_
    for way in FAST:
        assert same_bits(run(program, odd, way), expected(op, inputs))


def test_plans_differ_by_overlap() -> None:
    op = OpParam("all_reduce", 500, DataType.FP32, ReduceOp.SUM)
    program, inputs = recorded("AllReduceComm", op, 4), whole_numbers(op, 4)
    session = TILES.session(program)
    for in_place in (False, True, False):
        given_ = [i.copy() for i in inputs]
        outputs = given_ if in_place else [np.empty_like(i) for i in inputs]
        session.run("tag", program, given_, outputs)
        assert same_bits(outputs, expected(op, inputs))
    assert len(session._prepared[program].plans) == 2
    session.close()


def test_reductions_in_two_types_run_as_slices() -> None:
    op = OpParam("all_reduce", 64, DataType.INT32, ReduceOp.SUM)
    program = recorded("AllReduceComm", op, 2)
    reduces = next(k for k, i in enumerate(program.batches[0].instructions) if i.kind.reduces)
    as_bytes = DataType.UINT8.number
    mixed = changed(program, 0, reduces, lambda i: i._replace(dtype=as_bytes))
    extra = program.batches[0].instructions[reduces]
    mixed = replace(
        mixed,
        batches=(mixed.batches[0]._replace(instructions=(*mixed.batches[0].instructions, extra)),),
    )
    inputs = whole_numbers(op, 2)
    assert same_bits(run(mixed, inputs, TILES), run(mixed, inputs, NUMPY))


def test_expected_runs_are_prepared_for_in_the_first() -> None:
    program = recorded("AllReduceComm", op_of("all_reduce", 1 << 16), 4)
    prepared = Prepared(program, moves_of(program, program.linked.order.astype(np.int64)))
    for runs, is_ready in ((1, False), (10**6, True)):
        fast = FastPath(1)
        fast.expect(prepared, runs)
        assert fast._is_worth_tiles(prepared) is is_ready
        fast.close()
