"""Rings and doubling of Atlas 300I Duo, held against models of HCCL's templates: all devices."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import accumulate

import pytest

from hccl_executors import EXECUTORS
from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, Mode, ReduceOp
from hccl_py.topology import Topology, topology_of
from tests.executors.fidelity import helped_rings as helped
from tests.executors.fidelity import rings
from tests.executors.fidelity.fixed_sums import doubling
from tests.executors.fidelity.held import Held, Holders, joined_on_a_plane
from tests.executors.fidelity.recorded import events_of
from tests.executors.fidelity.streams import Way, Worker
from tests.executors.fidelity.superpods_v import shared_rounds
from tests.executors.fidelity.transports import Event, Part, Slice, even, run
from tests.recording import op_of, recorded

RINGS: dict[str, tuple[str, Callable[..., None]]] = {
    "AllGatherFor310PExecutor": ("all_gather", rings.ring_all_gather),
    "AllReduceRing": ("all_reduce", rings.ring_all_reduce),
    "BroadCastCommFor310P": ("broadcast", rings.ring_broadcast),
    "ReduceScatterRing": ("reduce_scatter", rings.ring_reduce_scatter),
    "AllGatherSlimRingFor310PExecutor": ("all_gather", rings.slim_ring_all_gather),
    "ReduceScatterSlimRing": ("reduce_scatter", rings.slim_ring_reduce_scatter),
}
KINDS = {executor.__name__: executor.fidelity.kind for executor in EXECUTORS}


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
@pytest.mark.parametrize("name", RINGS)
def test_rings_of_all_devices(name: str, ranks: int) -> None:
    op, template = RINGS[name]
    assert KINDS[name] == "same"
    count = 32 * (ranks if op in ("all_reduce", "broadcast") else 1)
    program = recorded(name, op_of(op, count), topology_of(ranks, preset="300i-duo"), 1 << 20)
    assert program.streams == 1
    wanted = run(template, ranks, rdma=False, slices=even(ranks, 128))
    assert [events_of(program, rank)[0] for rank in range(ranks)] == wanted


BLOCKS = (7, 0, 300, 33, 64)


@pytest.mark.parametrize(
    ("name", "op", "scale"),
    [
        ("AllGatherVFor310PExecutor", "all_gather_v", 1),
        ("AllGatherVFor310PExecutor", "all_gather_v", 4096),
        ("ReduceScatterVFor310PRing", "reduce_scatter_v", 1),
    ],
)
def test_rings_of_blocks(name: str, op: str, scale: int) -> None:
    """coll_all_gatherv_for_310p_executor.cc:109, above 4 MiB with a helper, and
    coll_reduce_scatter_v_for_310p_ring_executor.cc:104: blocks lie packed in the CCL buffer, and
    apart in user memory.
    """
    counts = tuple(count * scale for count in BLOCKS)
    starts = [0, *accumulate(counts)]
    spread = tuple(2 * start for start in starts[:-1])
    reduce = ReduceOp.SUM if op == "reduce_scatter_v" else None
    call = OpParam(op, 0, DataType.FP32, reduce, counts=counts, displs=spread)
    program = recorded(name, call, topology_of(len(counts), preset="300i-duo"), 1 << 25)
    places = [[Slice(4 * a, 4 * n)] for a, n in zip(starts, counts, strict=False)]
    ends = [[Slice(4 * a, 4 * n)] for a, n in zip(spread, counts, strict=True)]
    assert KINDS[name] == "same"
    for rank in range(len(counts)):
        me = Worker(rank, 1)
        way = Way(me, range(len(counts)), 0, 0)
        if reduce is not None:
            helped.reduce_scatter_concurrent_direct(way, places, 0)
        elif scale == 1:
            helped.all_gather_direct(way, places, ends)
        else:
            helped.all_gather_concurrent_direct(way, places, ends)
        found = events_of(program, rank)
        assert [found.get(k, []) for k in range(program.streams)] == me.streams


@pytest.mark.parametrize("blocks", [BLOCKS, (64, 0, 32, 0, 32)])
def test_rounds_of_blocks(blocks: tuple[int, ...]) -> None:
    """coll_reduce_scatter_v_for_310p_ring_executor.cc:65: a round shares the CCL buffer out among
    the blocks that have data left, over and over, until there is less than one element for each.
    """
    rounds = [[n // 4 for n in sizes] for sizes in shared_rounds(blocks, 4, 512, aligned=False)]
    call = OpParam("reduce_scatter_v", 0, DataType.FP32, ReduceOp.SUM, counts=blocks)
    topology = topology_of(len(blocks), preset="300i-duo")
    program = recorded("ReduceScatterVFor310PRing", call, topology, 512)
    assert program.rounds == len(rounds)
    for rank in range(len(blocks)):
        me = Worker(rank, 1)
        for counts in rounds:
            starts = accumulate(counts, initial=0)
            places = [[Slice(4 * a, 4 * n)] for a, n in zip(starts, counts, strict=False)]
            way = Way(me, range(len(counts)), 0, 0)
            helped.reduce_scatter_concurrent_direct(way, places, 0)
        found = events_of(program, rank)
        ours = [found.get(k, []) for k in range(program.streams)]
        assert [[e[:2] for e in s] for s in ours] == [[e[:2] for e in s] for s in me.streams]
        assert sizes(ours) == sizes(me.streams)


def sizes(streams: list[list[Event]]) -> list[int]:
    """Return the bytes of every transfer; those into user memory end behind earlier rounds."""
    return [event[-1] for stream in streams for event in stream if event[0].startswith("read")]


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_doubling(ranks: int) -> None:
    assert KINDS["AllReduceDoubling"] == "same"
    op, where = op_of("all_reduce", 1000), topology_of(ranks, preset="300i-duo")
    program = recorded("AllReduceDoubling", op, where, 1 << 20)
    assert program.streams == 1
    wanted = run(doubling, ranks, rdma=False, whole=Slice(0, 4000))
    assert [events_of(program, rank)[0] for rank in range(ranks)] == wanted


def _rings(name: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """128 bytes for everybody; several hosts are one ring."""
    op, template = RINGS[name]
    count = 32 * (at.size if op in ("all_reduce", "broadcast") else 1)

    def streams(rank: int) -> list[list[Event]]:
        me = Part([], range(at.size), rank, rdma=len(set(joined_on_a_plane(at))) > 1)
        if at.size > 1:
            template(me, slices=even(at.size, 128))
        return [me.events]

    yield Held(op_of(op, count, mode=mode), streams)


def _doubled(_: str, at: Topology, mode: Mode) -> Iterator[Held]:
    wanted = run(doubling, at.size, rdma=False, whole=Slice(0, 4000))
    yield Held(op_of("all_reduce", 1000, mode=mode), lambda rank: [wanted[rank]])


def _block_rings(name: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """Blocks side by side, some of them empty; small ones, and more than 4 MiB."""
    op = "all_gather_v" if name.startswith("AllGather") else "reduce_scatter_v"
    for scale in (1, 4096) if op == "all_gather_v" and at.size < 9 else (1,):
        counts = [(7, 0, 300, 33, 64)[rank % 5] * scale for rank in range(at.size)]
        call = replace(op_of(op, 0, mode=mode), counts=tuple(counts))
        yield Held(call, partial(_block_ring, op=op, counts=counts), 1 << 25)


def _block_ring(rank: int, op: str, counts: list[int]) -> list[list[Event]]:
    starts = accumulate(counts, initial=0)
    places = [[Slice(4 * a, 4 * n)] for a, n in zip(starts, counts, strict=False)]
    me = Worker(rank, 1)
    way = Way(me, range(len(counts)), 0, 0)
    if len(counts) == 1:
        pass
    elif op == "reduce_scatter_v":
        helped.reduce_scatter_concurrent_direct(way, places, 0)
    elif 4 * sum(counts) <= 4 << 20:
        helped.all_gather_direct(way, places, places)
    else:
        helped.all_gather_concurrent_direct(way, places, places)
    return me.streams


HELD: Holders = {
    **dict.fromkeys(RINGS, _rings),
    "AllReduceDoubling": _doubled,
    "AllGatherVFor310PExecutor": _block_rings,
    "ReduceScatterVFor310PRing": _block_rings,
}
