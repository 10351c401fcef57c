"""The session: resources by tag, the caller's memory, closing."""

import gc
import os
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hccl_platform.emulated import EmulatedPlatform
from hccl_platform.emulated.session import EmulatedSession
from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.enums import Buffer, DataType, Mode, ReduceOp
from hccl_py.errors import OrchestrationError, ParameterError
from hccl_py.plugins.executor import ResourceRequest, ops_of
from hccl_py.plugins.platforms import Group
from hccl_py.testing.calls import suits
from hccl_py.topology import topology_of
from tests.platform.running import (
    FAST,
    THREADS,
    Way,
    changed,
    expected,
    moved,
    run,
    same_bits,
    scheduled,
    whole_numbers,
)
from tests.recording import BY_NAME, filled, op_of, recorded

WAYS = (*FAST, scheduled(2))


def test_the_resources_of_a_mesh_all_gather() -> None:
    topology = topology_of(4)
    program = recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather"), topology)
    session = EmulatedPlatform().open(topology, Config(buffsize_mb=1), None, Group.world(4))
    response = session.allocate("tag", program)
    assert session.local_ranks == range(4)
    assert response.sub_streams == (3,) * 4
    assert response.notifies == (6,) * 4
    assert response.transports == (3,) * 4
    assert response.scratch_bytes == (0,) * 4
    assert session.allocate("tag", program) is response
    session.close()


def test_scratch_is_declared_by_executors_that_need_it() -> None:
    op = op_of("all_reduce", 100, "fp64", mode=Mode.GRAPH)
    program = recorded("AllReduceComm", op, 2)
    session = EmulatedSession(2, 1 << 20)
    assert session.allocate("tag", program).scratch_bytes == (800, 800)
    session.close()


def test_a_closed_session_refuses_and_keeps_nothing() -> None:
    op = op_of("all_reduce", 1000)
    program = recorded("AllReduceComm", op, 4)
    before = threading.active_count()
    session = THREADS.session(program)
    inputs = whole_numbers(op, 4)
    outputs = [np.empty_like(i) for i in inputs]
    session.run("tag", program, inputs, outputs)
    held = [weakref.ref(array) for array in session._memory._held.values()]
    pages = [weakref.ref(array.base.obj) for array in session._memory._held.values()]  # type: ignore[union-attr]
    assert len(held) == 4
    assert threading.active_count() == before + 1
    session.close()
    gc.collect()
    assert threading.active_count() == before
    assert not any(ref() is not None for ref in (*held, *pages))
    for use in (
        lambda: session.run("tag", program, inputs, outputs),
        lambda: session.allocate("t", program),
    ):
        with pytest.raises(ParameterError, match="closed"):
            use()
    session.close()


def test_a_session_does_not_keep_programs_alive() -> None:
    op = op_of("all_reduce", 1000)
    program = recorded("AllReduceComm", op, 4)
    session = THREADS.session(program)
    session.run(
        "tag", program, whole_numbers(op, 4), [np.zeros(1000, np.float32) for _ in range(4)]
    )
    gone = weakref.ref(program)
    del program
    gc.collect()
    assert gone() is None
    session.close()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_buffers_cost_only_what_is_touched() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    op = op_of("all_gather", 256)
    program = recorded("AllGatherComm", op, 64, 200 << 20)
    inputs = whole_numbers(op, 64)
    outputs = [np.zeros(256 * 64, np.float32) for _ in range(64)]
    session = EmulatedSession(64, 200 << 20)
    before = resident()
    session.run("tag", program, inputs, outputs)
    assert resident() - before < 64 << 20, "of 25 GB of CCL buffers"
    session.close()


# ---- the caller's memory ----


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["AllReduceComm", "AllReduceMeshOpbaseLoopExecutor"])
def test_all_reduce_in_place(name: str, way: Way) -> None:
    modes = [Mode.OP_BASE] + [Mode.GRAPH] * (name == "AllReduceComm")
    for mode in modes:
        op = OpParam("all_reduce", 600, DataType.INT32, ReduceOp.SUM, mode=mode, in_place=True)
        program = recorded(name, op, 4, 2048)
        inputs = whole_numbers(op, 4)
        arrays = [i.copy() for i in inputs]
        session = way.session(program)
        session.run("tag", program, arrays, arrays)
        session.close()
        assert same_bits(arrays, expected(op, inputs))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["AllGatherComm", "AllGatherMeshOpbaseExecutor"])
def test_all_gather_from_a_slice_of_the_output(name: str, way: Way) -> None:
    op = OpParam("all_gather", 300, DataType.INT32, in_place=True)
    program = recorded(name, op, 4, 16384 + 512)
    inputs = whole_numbers(op, 4)
    outputs = [np.zeros(1200, np.int32) for _ in range(4)]
    slices = [out[r * 300 : (r + 1) * 300] for r, out in enumerate(outputs)]
    for part, given in zip(slices, inputs, strict=True):
        part[:] = given
    session = way.session(program)
    session.run("tag", program, slices, outputs)
    session.close()
    assert same_bits(outputs, expected(op, inputs))


@pytest.mark.parametrize("way", WAYS)
def test_nothing_to_do(way: Way) -> None:
    for name, cls in BY_NAME.items():
        op = filled(op_of(ops_of(cls())[0], 0), 3)
        if not suits(cls, op, topology_of(3)):
            continue
        program = recorded(name, op, 3)
        assert all(o.size == 0 for o in run(program, whole_numbers(op, 3), way))


def test_wrong_arrays_are_refused() -> None:
    op = op_of("all_gather", 10)
    program = recorded("AllGatherComm", op, 2)
    session = EmulatedSession(2, 1 << 20)
    good, out = np.zeros(10, np.float32), [np.zeros(20, np.float32) for _ in range(2)]
    with pytest.raises(ParameterError, match="Rank 1's input has 36 bytes, the program needs 40"):
        session.run("tag", program, [good, np.zeros(9, np.float32)], out)
    with pytest.raises(ParameterError, match="Rank 0's output has 40 bytes, the program needs 80"):
        session.run("tag", program, [good, good], [good, good])
    with pytest.raises(ParameterError, match="There are 1 inputs for 2 ranks"):
        session.run("tag", program, [good], out)
    out[1].flags.writeable = False
    with pytest.raises(ParameterError, match="writes rank 1's OUT, and that array is read-only"):
        session.run("tag", program, [good, good], out)
    session.close()


# ---- memory of the session ----


class Peek:
    """Delivers what CCL_In, or scratch, holds, and leaves the input there."""

    op = "all_reduce"
    algorithm = "none"

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer

    def suits(self, op: Any, topology: Any) -> bool:
        return True

    def resources(self, op: Any, rank: Any) -> ResourceRequest:
        return ResourceRequest(scratch_bytes=op.size if self.buffer is Buffer.SCRATCH else 0)

    def orchestrate(self, op: Any, rank: Any) -> None:
        memory = {Buffer.CCL_IN: rank.ccl_in, Buffer.SCRATCH: rank.scratch}[self.buffer]
        rank.main.copy(rank.user_out, memory.head(rank.user_in.size))
        rank.main.copy(memory.head(rank.user_in.size), rank.user_in)


def peeked(session: EmulatedSession, tag: str, program: Any, value: int) -> int:
    """Run Peek with an input of `value`; return what lay there."""
    outputs = [np.full(program.op.count, 9, np.int32)]
    session.run(tag, program, [np.full(program.op.count, value, np.int32)], outputs)
    assert len(set(outputs[0].tolist())) == 1
    return int(outputs[0][0])


@pytest.mark.parametrize("way", WAYS)
def test_ccl_memory_begins_as_zeros_and_is_shared_by_tags(way: Way) -> None:
    program = recorded(Peek(Buffer.CCL_IN), op_of("all_reduce", 100, "int32"), 1)
    session = way.session(program)
    assert peeked(session, "a", program, 1) == 0
    assert peeked(session, "a", program, 2) == 1
    assert peeked(session, "b", program, 3) == 2
    session.close()


@pytest.mark.parametrize("way", WAYS)
def test_scratch_belongs_to_its_tag(way: Way) -> None:
    program = recorded(Peek(Buffer.SCRATCH), op_of("all_reduce", 100, "int32"), 1)
    session = way.session(program)
    assert peeked(session, "a", program, 1) == 0
    assert peeked(session, "a", program, 2) == 1
    assert peeked(session, "b", program, 3) == 0
    larger = recorded(Peek(Buffer.SCRATCH), op_of("all_reduce", 5000, "int32"), 1)
    assert peeked(session, "a", larger, 4) == 0
    session.close()


# ---- programs that leave their memory ----


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("field", ["src_offset", "dst_offset"])
@pytest.mark.parametrize("offset", [-4, 1 << 40])
def test_out_of_bounds_is_refused(way: Way, field: str, offset: int) -> None:
    program = recorded("AllGatherComm", op_of("all_gather", 10), 2, by_rank=True)
    broken = changed(program, 1, 0, lambda i: moved(i, field, offset))
    with pytest.raises(OrchestrationError, match=r"Out of bounds: rank 1 main .*task 0 ") as error:
        run(broken, whole_numbers(program.op, 2), way)
    assert error.value.finding == "OUT_OF_BOUNDS"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("size", "dst_size"), [(40, 36), (40, 0), (0, 40)])
def test_sides_of_different_lengths_are_refused(way: Way, size: int, dst_size: int) -> None:
    program = recorded("AllGatherComm", op_of("all_gather", 10), 2, by_rank=True)
    broken = changed(program, 1, 0, lambda i: i._replace(size=size, dst_size=dst_size))
    words = rf"rank 1 main .* a source of {size} bytes and a destination of {dst_size}\."
    with pytest.raises(OrchestrationError, match=rf"Lengths differ: {words}") as error:
        run(broken, whole_numbers(program.op, 2), way)
    assert error.value.finding == "SLICE_LEN_MISMATCH"


class SmallestOfTwo(Peek):
    """Reduces with another op than the call's."""

    def orchestrate(self, op: Any, rank: Any) -> None:
        rank.main.copy(rank.user_out, rank.user_in)
        rank.main.copy(rank.ccl_in.head(rank.user_in.size), rank.user_in)
        rank.main.reduce(rank.user_out, rank.ccl_in.head(rank.user_in.size))
        rank.main.reduce(rank.user_out, rank.ccl_in.head(rank.user_in.size), ReduceOp.MIN)


@pytest.mark.parametrize("way", WAYS)
def test_a_task_may_reduce_with_an_op_of_its_own(way: Way) -> None:
    program = recorded(SmallestOfTwo(Buffer.CCL_IN), op_of("all_reduce", 100, "int32"), 1)
    values = np.arange(-50, 50, dtype=np.int32)
    assert (run(program, [values], way)[0] == np.minimum(2 * values, values)).all()


def test_reductions_take_whole_elements() -> None:
    program = recorded("AllReduceComm", op_of("all_reduce", 100), 2, by_rank=True)
    at = next(k for k, i in enumerate(program.batches[0].instructions) if i.kind.reduces)
    broken = changed(program, 0, at, lambda i: i._replace(size=6))
    with pytest.raises(OrchestrationError, match="6 bytes are no whole number of fp32 elements"):
        run(broken, whole_numbers(program.op, 2))
