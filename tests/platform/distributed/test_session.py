"""Sessions and the platform: gathering, memory that grows, groups, refusals, and locks."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hccl_platform.distributed.one_sided as one_sided
from hccl_platform.distributed import DistributedPlatform
from hccl_platform.distributed.one_sided import Blocked, Lock
from hccl_platform.distributed.session import SharedSession
from hccl_platform.distributed.shared_memory import NOTIFIES, Notifies, Regions
from hccl_platform.lowering.part import MOVE, Cell
from hccl_platform.lowering.reducing import Reducer
from hccl_platform.processes.stores import SocketStore
from hccl_platform.processes.world import World
from hccl_py import Communicator
from hccl_py.call.config import Config
from hccl_py.enums import DataType, Mode, ReduceOp
from hccl_py.errors import NotSupportedError, ParameterError
from hccl_py.plugins.platforms import Group, Schedule
from hccl_py.topology import topology_of
from tests.platform.distributed.processes import in_processes
from tests.platform.distributed.sessions import Run, in_sessions, wrong_results
from tests.recording import op_of, recorded

MEETING = {
    "AllReduceMeshOpbaseLoopExecutor": "all_reduce",
    "AllReduceMeshOpbasePipelineExecutor": "all_reduce",
    "ReduceScatterMeshDmaEliminationExecutor": "reduce_scatter",
    "ReduceScatterMeshOpbasePipelineExecutor": "reduce_scatter",
    "ReduceScatterVMeshOpbaseExecutor": "reduce_scatter_v",
}
"""Executors whose ranks reduce into one place at once, and their ops."""


def test_values_are_gathered_between_runs() -> None:
    ring = Run.of(recorded("AllReduceComm", op_of("all_reduce"), 4))

    def body(world: World, session: SharedSession) -> bool:
        found = []
        for size in (0, 1, 5000, 3, 1 << 20):
            found += session.gather(bytes([world.rank]) * (size + world.rank))
            assert not ring.wrong(session, world.rank)
        sizes = (0, 1, 5000, 3, 1 << 20)
        return found == [bytes([r]) * (size + r) for size in sizes for r in range(4)]

    assert in_sessions(4, body) == [True] * 4


def test_memory_grows_with_what_programs_need() -> None:
    counts = (10, 100_000, 1000, 400_000, 10)
    ops = [op_of("all_reduce", count, mode=Mode.GRAPH) for count in counts]
    graph = [Run.of(recorded("AllReduceComm", op, 4)) for op in ops]
    scratch = [
        Run.of(recorded("RunAlltoAllVStaged", op_of("all_to_all_v", count, mode=Mode.GRAPH), 4))
        for count in (10, 5000, 100)
    ]
    assert len({int(run.program.declared.scratch_bytes.max()) for run in scratch}) == 3
    assert wrong_results(4, graph + scratch + graph) == []


def test_a_ring_of_16_ranks_gives_numpys_result() -> None:
    run = Run.of(recorded("AllReduceComm", op_of("all_reduce", 10_000), 16))
    assert wrong_results(16, [run], repeats=2) == []


def test_compiled_reductions_give_the_same() -> None:
    runs = [
        Run.of(recorded("AllReduceComm", op_of("all_reduce", 100_000, dtype), 2))
        for dtype in ("fp16", "bf16")
    ]

    def body(world: World, session: SharedSession) -> list[str]:
        for run in runs:
            session.expect("tag", run.program, 1_000_000)
        return [run.wrong(session, world.rank) for run in runs]

    assert in_sessions(2, body) == [["", ""]] * 2


def test_groups_have_memory_of_their_own() -> None:
    def body(world: World) -> tuple[int, list[float]]:
        with Communicator(4, platform=DistributedPlatform(world)) as comm:
            pair = comm.create_group([1, 3])
            assert (pair is None) == (world.rank in (0, 2))
            data = [np.full(5, world.rank, np.float32)]
            found = [comm.all_reduce(data).outputs[0][0]]
            if pair is not None:
                found.append(pair.all_reduce(data).outputs[0][0])
            found.append(comm.all_reduce(data).outputs[0][0])
            return comm.local_ranks[0], [float(x) for x in found]

    sums = [[6.0, 6.0], [6.0, 4.0, 6.0]]
    assert in_processes(4, body) == [(rank, sums[rank % 2]) for rank in range(4)]


def test_a_second_communicator_is_another_one() -> None:
    def body(world: World) -> list[float]:
        found = []
        for _ in range(2):
            with Communicator(2, platform=DistributedPlatform(world)) as comm:
                data = [np.full(5, world.rank + 1, np.float32)]
                found.append(float(comm.all_reduce(data).outputs[0][0]))
        return found

    assert in_processes(2, body) == [[3.0, 3.0]] * 2


@pytest.mark.parametrize("count", [5, 100_000])
def test_arrays_that_are_in_place_at_some_ranks_only(count: int) -> None:
    """The program is the same at all ranks, whose arrays fit it or are copied."""
    rng = np.random.default_rng(1)
    inputs = [rng.standard_normal(count).astype(np.float32) for _ in range(4)]
    with Communicator(4, deterministic="strict") as emulated:
        wanted = emulated.all_reduce(inputs).outputs[0]

    def body(world: World) -> list[bool]:
        found = []
        with Communicator(4, platform=DistributedPlatform(world), deterministic="strict") as comm:
            for chosen in (set(), {0}, {1, 3}, {0, 1, 2, 3}):
                data = inputs[world.rank].copy()
                out = data if world.rank in chosen else np.full_like(data, np.nan)
                done = comm.all_reduce([data], out=[out])
                found += [done.outputs[0] is out, out.tobytes() == wanted.tobytes()]
                if world.rank not in chosen:
                    found.append(data.tobytes() == inputs[world.rank].tobytes())
        return found

    assert all(all(found) for found in in_processes(4, body))


class NoStore(SocketStore):
    def __init__(self) -> None:
        super().__init__("nowhere")


def test_what_the_platform_refuses() -> None:
    platform, topology = DistributedPlatform(World(0, 2, NoStore())), topology_of(4)
    with pytest.raises(NotSupportedError, match="it takes no schedule"):
        platform.open(topology, Config(), Schedule(1), Group.world(4))
    with pytest.raises(ParameterError, match="has 4 ranks, and the job 2 processes"):
        platform.open(topology, Config(), None, Group.world(4))
    assert platform.open(topology, Config(), None, Group("others", (1,))) is None


def test_regions_lie_at_the_same_place_whoever_asks() -> None:
    small = recorded("AllReduceComm", op_of("all_reduce", 10, mode=Mode.GRAPH), 4)
    large = recorded("AllReduceComm", op_of("all_reduce", 5000, mode=Mode.GRAPH), 4)
    regions = Regions(4, 1 << 20)
    regions.provide("tag", small)
    first, version = regions.find("tag", "CCL_IN"), regions.version
    regions.provide("tag", small)
    assert regions.version == version
    regions.provide("tag", large)
    assert regions.find("tag", "CCL_IN") == first
    start, size = regions.find("tag", "IN")
    assert size >= 20_000
    assert start % 4096 == 0
    assert regions.version > version


def test_either_buffer_of_the_caller_has_room_for_the_larger_one() -> None:
    """In place they share memory: 4 parts of 4000 bytes, though the input is one of them."""
    regions = Regions(4, 1 << 20)
    gathers = op_of("all_gather", 1000, mode=Mode.GRAPH)
    regions.provide("tag", recorded("AllGatherComm", gathers, 4))
    assert [regions.find("tag", name)[1] for name in ("IN", "OUT")] == [16_000, 16_000]


def test_arrays_may_lie_apart_where_peers_do_not_reach_them() -> None:
    """A program for calls in place that moves all data by way of CCL buffers."""
    program = recorded("AllReduceComm", replace(op_of("all_reduce", 1000), in_place=True), 2)

    def body(world: World, session: SharedSession) -> list[float]:
        into, out = np.full(1000, world.rank + 1, np.float32), np.zeros(1000, np.float32)
        session.run("tag", program, [into], [out])
        return sorted({*out.tolist()})

    assert in_sessions(2, body) == [[3.0]] * 2


def test_notifies_of_a_pair_are_numbered_as_programs_use_them() -> None:
    notifies = Notifies()
    program = recorded("AllReduceComm", op_of("all_reduce"), 3)
    notifies.learn(program, 1)
    plane = program.transports.planes[0]
    assert [notifies.number(Cell(1, 0, plane, k)) for k in (0, 2, 1)] == [0, 2, 1]
    assert [notifies.number(Cell(2, 1, plane, k)) for k in (0, 1)] == [0, 1]
    many = replace(program.transports, slots=NOTIFIES + 1)
    notifies.learn(replace(program, transports=many), 1)
    with pytest.raises(NotSupportedError, match=r"Rank 1 has more than 512 notifies from rank 0"):
        notifies.number(Cell(1, 0, plane, NOTIFIES))


def test_a_lock_is_for_bytes_of_a_file(tmp_path: Path) -> None:
    file = os.memfd_create("locks")
    mine = Lock(file, 0, 100)
    assert mine.take()

    def tries() -> list[bool]:
        return [Lock(file, start, 10).take() for start in (0, 90, 100)]

    ends = os.pipe()
    process = os.fork()
    if not process:
        os.write(ends[1], bytes(tries()))
        os._exit(0)
    assert os.read(ends[0], 3) == bytes([0, 0, 1])
    os.waitpid(process, 0)
    mine.release()
    for descriptor in (file, *ends):
        os.close(descriptor)


def test_16_bit_sums_are_numpys_before_and_after_numba_is_loaded() -> None:
    rng = np.random.default_rng(1)
    for dtype in (DataType.FP16, DataType.BF16):
        reducer = Reducer(load_us=10.0)
        add = reducer.reduction(dtype, ReduceOp.SUM)
        into, what = (rng.standard_normal(5000).astype(dtype.numpy) for _ in range(2))
        wanted = into
        for _ in range(4):
            wanted = wanted + what
            add(into.view(np.uint8), what.view(np.uint8))
            assert into.tobytes() == wanted.tobytes()


def meeting_runs() -> list[Run]:
    server = topology_of(16, preset="atlas-900-a3")
    ops = {name: op_of(op, 20_000, "int32") for name, op in MEETING.items()}
    return [Run.of(recorded(name, op, server), name) for name, op in ops.items()]


def test_ranks_that_reduce_into_one_place_lose_nothing() -> None:
    assert wrong_results(16, meeting_runs()[:1], repeats=5) == []


@pytest.mark.long
def test_it_is_the_locks_that_keep_what_ranks_add(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = meeting_runs()

    def wrong(repeats: int) -> list[str]:
        """Run beside other tests, as the least urgent processes."""

        def body(world: World, session: SharedSession) -> list[str]:
            os.nice(10)
            again = [run for _ in range(repeats) for run in runs]
            return [text for run in again if (text := run.wrong(session, world.rank))]

        return [text for texts in in_sessions(16, body) for text in texts]

    assert wrong(repeats=100) == []
    monkeypatch.setattr(one_sided, "lockf", lambda *lock: None)
    assert any(wrong(repeats=20) for _ in range(10))


def test_a_ring_reduces_a_quarter_three_times() -> None:
    run = Run.of(recorded("AllReduceComm", op_of("all_reduce", 1024, "fp16"), 4))

    def body(world: World, session: SharedSession) -> dict[DataType, int]:
        return session._part("tag", run.program).reduced

    assert in_sessions(4, body) == [{DataType.FP16: 3 * 512}] * 4


def test_who_waits_for_a_lock_says_so() -> None:
    run = Run.of(recorded("AllReduceMeshOpbaseLoopExecutor", op_of("all_reduce", 20_000), 3))

    def body(world: World, session: SharedSession) -> list[str]:
        bound = session._part("tag", run.program)
        bound.provide(run.program)
        return [
            bound.explain(0)([Blocked(number, is_waiting=False, at=at)])
            for number, step in enumerate(bound.groups[0])
            for at, (stream, place) in enumerate(step.places)
            for task in [bound.part.streams[stream][place]]
            if task.kind == MOVE and task.number in bound.part.atomic
        ]

    for rank, texts in enumerate(in_sessions(3, body)):
        owners = {owner for owner in range(3) for text in texts if f"to rank {owner}'s" in text}
        assert owners == {0, 1, 2} - {rank}
        for text in texts:
            assert text.startswith(f"Rank {rank} ")
            assert "has waited for another rank to stop adding to rank" in text
