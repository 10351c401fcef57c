"""The reduce-scatter in a fixed order: its two forms, task by task as HCCL's templates do."""

from typing import Any

import pytest

from hccl_executors.reduce_scatter.deter import ReduceScatterDeterExecutor
from hccl_py.enums import Mode, TaskKind
from hccl_py.plugins.executor import Unsuitable
from hccl_py.program.program import Program
from hccl_py.simulator.chain import longest_chain
from hccl_py.topology import topology_of
from tests.executors.flat import moves
from tests.executors.streams import streams_of
from tests.recording import op_of, recorded

SIZE = 4000


def scattered(count: int = 1000, mode: Mode = Mode.OP_BASE, **shape: Any) -> Program:
    op = op_of("reduce_scatter", count, mode=mode)
    return recorded(ReduceScatterDeterExecutor, op, topology_of(**shape))


def test_small_chunks_are_halved() -> None:
    """ReduceScatterHDStage: a write, then reads; one sub stream says that a partner was read."""
    program = scattered(ranks=8)
    assert streams_of(program, 5) == [
        "copy, tx_ack 1, rx_ack 1, write_reduce 1, tx_data_signal 1, rx_data_signal 1, "
        "tx_ack 7, rx_ack 7, read_reduce 7, post, tx_ack 4, rx_ack 4, wait, "
        "read_reduce 4, post, tx_data_signal 4, rx_data_signal 4, wait, nothing",
        "wait, tx_data_signal 7, rx_data_signal 7, post, wait, copy, post",
    ]
    assert moves(program) == ([3] * 8, [7 * SIZE] * 8)
    assert longest_chain(program) == (3, 7 * SIZE, 7 * SIZE)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(("servers", "devices"), [(2, 2), (2, 8), (4, 4)])
def test_several_servers_of_a3_halve(servers: int, devices: int, mode: Mode) -> None:
    program = scattered(mode=mode, servers=servers, devices=devices, preset="atlas-900-a3")
    p = servers * devices
    k = p.bit_length() - 1
    assert moves(program) == ([k] * p, [(p - 1) * SIZE] * p)
    assert longest_chain(program) == (k, (p - 1) * SIZE, (p - 1) * SIZE)


def test_others_collect_and_add_by_halves() -> None:
    """ReduceScatterLocalReduce: Acks with all, main waits, then writes; the last peer is main's,
    the last sub stream copies the own chunk.
    """
    halving = "nothing, reduce, nothing, nothing, reduce, nothing"
    assert streams_of(scattered(ranks=3), 0) == [
        "nothing, post, tx_ack 2, rx_ack 2, wait, nothing, "
        f"post, post, write 2, tx_data_signal 2, rx_data_signal 2, wait, wait, nothing, {halving}",
        "wait, tx_ack 1, rx_ack 1, post, wait, write 1, tx_data_signal 1, rx_data_signal 1, post",
        "wait, copy, post",
    ]


@pytest.mark.parametrize(
    ("ranks", "count", "mode"),
    [(4, 8193, Mode.OP_BASE), (8, 1000, Mode.GRAPH), (7, 1000, Mode.OP_BASE)],
)
def test_more_than_32_kib_graph_mode_and_other_numbers_of_ranks_collect(
    ranks: int, count: int, mode: Mode
) -> None:
    peers, rounds = ranks - 1, (ranks - 1).bit_length()
    program = scattered(count, mode, ranks=ranks)
    assert moves(program) == ([peers] * ranks, [peers * 4 * count] * ranks)
    assert longest_chain(program) == (1, 4 * count, rounds * 4 * count)


def test_places_are_aligned_as_the_source() -> None:
    """Chunks of 36 004 bytes take 49 152 each; those of rank r begin at 36 004 r mod 16 384."""
    tasks = scattered(9001, ranks=4).tasks
    mine = (tasks.rank == 0) & (tasks.kind == TaskKind.WRITE)
    found = dict(zip(tasks.peer[mine].tolist(), tasks.dst_offset[mine].tolist(), strict=True))
    assert found == {1: 3236, 2: 6472 + 49152, 3: 9708 + 2 * 49152}


@pytest.mark.parametrize(
    ("shape", "dtype", "reason"),
    [
        ({"servers": 2, "devices": 4}, "fp32", "needs one server, there are 2"),
        ({"ranks": 4}, "int64", "needs links that reduce int64 on their way"),
        ({"ranks": 1}, "fp32", "needs two ranks, there is one"),
        (
            {"servers": 3, "devices": 4, "preset": "atlas-900-a3"},
            "fp32",
            "needs a power of two ranks, there are 12",
        ),
        (
            {"superpods": 2, "servers": 1, "devices": 4, "preset": "atlas-900-a3"},
            "fp32",
            "SDMA links only",
        ),
        (
            {"servers": 2, "devices": 1, "preset": "atlas-900-a3"},
            "fp32",
            "needs two steps over several servers: 4 ranks, there are 2",
        ),
    ],
)
def test_refusals(shape: dict[str, Any], dtype: str, reason: str) -> None:
    refusal = ReduceScatterDeterExecutor().suits(
        op_of("reduce_scatter", dtype=dtype), topology_of(**shape)
    )
    assert isinstance(refusal, Unsuitable)
    assert reason in refusal.reason
