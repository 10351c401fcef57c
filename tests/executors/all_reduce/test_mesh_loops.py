"""The all-reduces over a mesh for more data: steps, cuts and volumes, as HCCL's templates have
them.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hccl_executors.all_reduce.mesh_mid_count_loop import AllReduceMeshMidCountLoopExecutor
from hccl_executors.all_reduce.mesh_oneshot_loop import AllReduceMeshOneshotLoopExecutor
from hccl_executors.all_reduce.mesh_opbase_loop import AllReduceMeshOpbaseLoopExecutor
from hccl_py.enums import Mode, TaskKind
from hccl_py.plugins.executor import Unsuitable
from hccl_py.program.program import Program
from hccl_py.simulator.chain import longest_chain
from hccl_py.topology import topology_of
from tests.executors.flat import moves
from tests.executors.streams import streams_of
from tests.recording import op_of, recorded

MID, CHUNKED, LOOP = (
    AllReduceMeshMidCountLoopExecutor,
    AllReduceMeshOneshotLoopExecutor,
    AllReduceMeshOpbaseLoopExecutor,
)
COUNT = 8 * 7 * 4096
CHUNK = 4 * COUNT // 8


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(
    ("executor", "parts", "adds"), [(MID, 1, 7), (CHUNKED, 7, 1), (LOOP, 1, 1)]
)
def test_every_chunk_goes_over_every_link_twice(
    executor: Any, parts: int, adds: int, mode: Mode
) -> None:
    """Chunk r to rank r, whole or in p - 1 parts, and back to everybody; two steps."""
    op = op_of("all_reduce", COUNT, mode=mode)
    if not executor().suits(op, topology_of(8)):
        assert (executor, mode) == (LOOP, Mode.GRAPH)
        return
    program = recorded(executor, op, 8)
    assert moves(program) == ([7 * parts + 7] * 8, [2 * 7 * CHUNK] * 8)
    assert longest_chain(program) == (2, 2 * CHUNK, adds * CHUNK)


def test_loop_meets_everybody_before_data_goes() -> None:
    """AllReduceMeshDirect, rank 0 of 3: peers ahead in the first half, behind in the second."""
    fork, join = "post, post", "wait, wait"
    half = f"copy, {fork}, {join}, nothing, {fork}, {join}"
    met = "wait, tx_ack {0}, rx_ack {0}, post"
    added = "wait, write_reduce {0}, tx_data_signal {0}, rx_data_signal {0}, post"
    read = "wait, read {0}, tx_data_signal {0}, rx_data_signal {0}, post"
    assert streams_of(recorded(LOOP, op_of("all_reduce", 30000), 3), 0) == [
        f"{half}, {half}",
        ", ".join([met.format(1), added.format(1), met.format(2), read.format(2)]),
        ", ".join([met.format(2), added.format(2), met.format(1), read.format(1)]),
    ]


def sizes(program: Program, rank: int, *kinds: TaskKind) -> dict[int, int]:
    """Return the bytes of a rank's tasks of some kinds, by peer."""
    tasks = program.tasks
    rows = [r for r in range(len(tasks)) if tasks.rank[r] == rank and tasks.kind[r] in kinds]
    return {int(tasks.peer[row]): int(tasks.size[row]) for row in rows}


def test_chunks_of_the_loop_are_multiples_of_16_kib() -> None:
    """320 KiB on 8 ranks: six chunks of 48 KiB, one of 32 KiB, one empty."""
    program = recorded(LOOP, op_of("all_reduce", 80 << 10), 8)
    found = sizes(program, 0, TaskKind.WRITE_REDUCE)
    assert [found[peer] >> 10 for peer in range(1, 8)] == [48, 48, 48, 48, 48, 32, 0]


@pytest.mark.parametrize(
    ("kib", "chunks"),
    [
        (896, [112] * 8),  # seven chunks of 112 KiB fit
        (320, [40] * 8),  # seven of 48 KiB do not: multiples of 512 bytes
    ],
)
def test_chunks_that_are_collected_fit_their_places(kib: int, chunks: list[int]) -> None:
    program = recorded(MID, op_of("all_reduce", kib << 8), 8)
    found = sizes(program, 0, TaskKind.READ)
    assert [found[peer] >> 10 for peer in range(1, 8)] == chunks[1:]


def test_collected_chunks_have_the_sources_places() -> None:
    """AllReduceLocalReduce of 8: rank 2 writes to place (d + k) mod 7 of rank d = 2 + k, the last
    rank counting one less, and adds to the own chunk of the rank before it.
    """
    program = recorded(MID, op_of("all_reduce", COUNT), 8)
    tasks = program.tasks
    writes = (tasks.rank == 2) & np.isin(tasks.kind, [TaskKind.WRITE, TaskKind.WRITE_REDUCE])
    places = tasks.dst_offset[writes] // CHUNK
    found = dict(zip(tasks.peer[writes].tolist(), places.tolist(), strict=True))
    assert found == {3: 4, 4: 6, 5: 1, 6: 3, 7: 5, 0: 6, 1: 1}
    assert sizes(program, 2, TaskKind.WRITE_REDUCE).keys() == {1}


@pytest.mark.parametrize(
    ("rank", "sums"),
    [
        (0, [(0, 4), (1, 5), (2, 6), (0, 2), (1, 3), (0, 1)]),
        (5, [(4, 0), (5, 1), (6, 2), (5, 3), (6, 4), (5, 6)]),
        (7, [(5, 1), (6, 2), (7, 3), (6, 4), (7, 5), (7, 6)]),
    ],
)
def test_sums_end_in_the_own_place(rank: int, sums: list[tuple[int, int]]) -> None:
    """RunLocalReduce of 8 ranks: into <- added, by place; the last rank's begin at 1."""
    tasks = recorded(MID, op_of("all_reduce", COUNT), 8).tasks
    rows = (tasks.rank == rank) & (tasks.kind == int(TaskKind.REDUCE))
    into, added = tasks.dst_offset[rows] // CHUNK, tasks.src_offset[rows] // CHUNK
    assert list(zip(into.tolist(), added.tolist(), strict=True)) == sums


def test_chunk_mesh_meets_peers_before_the_rounds_and_after_them() -> None:
    """AllReduceChunkMesh, rank 0 of 3: part 0 from 1, 2; part 1 from 2, 1."""
    main, first, idle = streams_of(recorded(CHUNKED, op_of("all_reduce", COUNT), 3), 0)
    fork, join = "post, post", "wait, wait"
    added = "read_reduce {0}, tx_data_signal {0}, rx_data_signal {0}"
    assert main == ", ".join(
        [
            f"copy, nothing, {fork}, tx_ack 2, rx_ack 2, nothing, nothing, {join}",
            f"nothing, {fork}, nothing, read_reduce 2, nothing, {join}",
            f"nothing, {fork}, nothing, {added.format(1)}, nothing, {join}, nothing",
            f"nothing, {fork}, tx_ack 1, rx_ack 1, nothing, {join}, nothing",
            f"{fork}, nothing, read 1, tx_data_signal 1, rx_data_signal 1, nothing, {join}",
            "nothing",
        ]
    )
    assert first == ", ".join(
        [
            "wait, tx_ack 1, rx_ack 1, post, wait, read_reduce 1, post",
            f"wait, {added.format(2)}, post",
            "wait, tx_ack 2, rx_ack 2, post",
            "wait, read 2, tx_data_signal 2, rx_data_signal 2, post",
        ]
    )
    assert idle == "wait, post, wait, post, wait, post, wait, post, wait, copy, post"


def test_two_ranks_read_each_other() -> None:
    """AllReduceMeshDirectOneshot; HCCL forks nothing."""
    read = "tx_ack 1, rx_ack 1, read_reduce 1, tx_data_signal 1, rx_data_signal 1"
    op = op_of("all_reduce", COUNT)
    assert streams_of(recorded(CHUNKED, op, 2), 0) == [f"copy, copy, {read}"]
    assert streams_of(recorded(CHUNKED, replace(op, in_place=True), 2), 0) == [f"copy, {read}"]


@pytest.mark.parametrize("executor", [MID, CHUNKED, LOOP])
@pytest.mark.parametrize(
    ("preset", "dtype", "reason"),
    [
        ("ring", "fp32", "needs every device linked to every other one"),
        ("mesh", "int64", "needs links that reduce int64 on their way"),
    ],
)
def test_refusals(executor: Any, preset: str, dtype: str, reason: str) -> None:
    refusal = executor().suits(op_of("all_reduce", dtype=dtype), topology_of(4, preset=preset))
    assert isinstance(refusal, Unsuitable)
    assert refusal.reason == reason


def test_collecting_ends_at_the_own_place_for_powers_of_two_only() -> None:
    refusal = MID().suits(op_of("all_reduce"), topology_of(6))
    assert isinstance(refusal, Unsuitable)
    assert refusal.reason == "needs a power of two ranks, there are 6"
