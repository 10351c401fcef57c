"""Messages, held against models of HCCL's executors: every post, wait and transfer."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from hccl_executors import EXECUTORS
from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, Mode
from hccl_py.topology import Topology, topology_of
from hccl_py.topology.presets import PRESETS
from tests.executors.fidelity.grouped import grouped
from tests.executors.fidelity.held import Held, Holders, joined_on_a_plane, joined_ranks
from tests.executors.fidelity.messages import Message, batch, receive, send
from tests.executors.fidelity.recorded import events_of
from tests.executors.fidelity.transports import Event, Link
from tests.recording import recorded

KINDS = {executor.__name__: executor.fidelity.kind for executor in EXECUTORS}
CCL = 1 << 20
LAYOUTS: dict[str, tuple[dict[str, Any], int]] = {
    "one server": ({"servers": 1, "devices": 8}, 8),
    "two servers": ({"servers": 2, "devices": 4}, 4),
    "servers of one": ({"servers": 5, "devices": 1}, 1),
    "a superpod": ({"servers": 2, "devices": 4, "preset": "atlas-900-a3"}, 8),
}


def with_peer(events: list[Event], peer: int) -> list[Event]:
    """What goes on between a rank and one peer."""
    return [event for event in events if event[1] == peer]


@pytest.mark.parametrize("count", [100, 600_000], ids=["small", "slices"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_send_and_receive(layout: str, count: int) -> None:
    """Both ends: rank 0 sends to the last one only, 1 to 2, which sends to 3, which sends to 1.
    What a rank does with one peer is what HCCL's sender does, or its receiver.
    """
    shape, pod = LAYOUTS[layout]
    topology = topology_of(**shape)
    pairs = ((0, topology.size - 1), (1, 2), (2, 3), (3, 1))
    assert KINDS["SendExecutor"] == "same"
    op = OpParam("send_recv", count, DataType.FP32, pairs=pairs)
    program = recorded("SendExecutor", op, topology, CCL)
    assert program.streams == 1
    for src, dst in pairs:
        rdma = src // pod != dst // pod
        sender, receiver = Link([], dst, rdma=rdma), Link([], src, rdma=rdma)
        send(sender, 4 * count, CCL)
        receive(receiver, 4 * count, CCL, straight=layout == "a superpod")
        assert with_peer(events_of(program, src)[0], dst) == sender.events
        assert with_peer(events_of(program, dst)[0], src) == receiver.events


@pytest.mark.parametrize("layout", LAYOUTS)
def test_batches_of_messages(layout: str) -> None:
    """All pairs, some twice, one of a rank to itself."""
    assert KINDS["BatchSendRecv"] == "same"
    topology = topology_of(**LAYOUTS[layout][0])
    ranks, pod = topology.size, joined_on_a_plane(topology).count(0)
    chosen = np.random.default_rng(ranks).integers(0, ranks, (3 * ranks, 2))
    pairs = tuple((int(a), int(b)) for a, b in chosen)
    for count in (100, 600_000):
        op = OpParam("batch_send_recv", count, DataType.FP32, pairs=pairs)
        program = recorded("BatchSendRecv", op, topology, CCL)
        messages = [Message(a, b, 4 * count) for a, b in pairs]
        for rank in range(ranks):
            found = events_of(program, rank)
            assert [found[0], found[1]] == batch(rank, ranks, messages, CCL, pod)


A2, A3 = PRESETS["atlas-800t-a2"], PRESETS["atlas-900-a3"]
PODS: dict[str, tuple[Topology, list[int]]] = {
    "one server": (Topology(A2, (8,)), [8]),
    "servers of one": (Topology(A2, (1,) * 5), [1] * 5),
    "three servers": (Topology(A2, (4, 4, 4)), [4] * 3),
    "a superpod of 20": (Topology(A3, (10, 10)), [20]),
    "two superpods": (Topology(A3, (5, 5, 5, 5), (2, 2)), [10] * 2),
    "servers of other sizes": (Topology(A2, (3, 5, 2)), [3, 5, 2]),
}


@pytest.mark.parametrize("layout", PODS)
def test_messages_between_group_start_and_group_end(layout: str) -> None:
    """All pairs, some twice, one of a rank to itself; parts of one slice and of several."""
    assert KINDS["BatchSendRecvGroup"] == "same"
    topology, pods = PODS[layout]
    ranks = topology.size
    chance = np.random.default_rng(ranks)
    everybody = [(a, b) for a in range(ranks) for b in range(ranks)]
    some = [(int(a), int(b)) for a, b in chance.integers(0, ranks, (2 * ranks, 2))]
    for ends, most in ((everybody, 100), (some, 600_000), (some[: ranks // 2], 40_000)):
        sizes = chance.integers(0, most + 1, len(ends)).tolist()
        pairs = tuple((a, b, size) for (a, b), size in zip(ends, sizes, strict=True))
        op = OpParam("batch_send_recv", most, DataType.FP32, pairs=pairs)
        program = recorded("BatchSendRecvGroup", op, topology, CCL)
        messages = [Message(a, b, 4 * size) for a, b, size in pairs]
        for rank in range(ranks):
            found, hccl = events_of(program, rank), grouped(rank, messages, CCL, pods)
            assert [found.get(k, []) for k in range(len(hccl))] == hccl, rank


def _chosen(ranks: int) -> list[tuple[int, int]]:
    """Any pairs, some twice, some of a rank with itself."""
    ends = np.random.default_rng(ranks).integers(0, ranks, (2 * ranks, 2))
    return [(int(a), int(b)) for a, b in ends]


def _batches(_: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """Messages of one slice, and of several."""
    pairs, pod = _chosen(at.size), joined_on_a_plane(at).count(0)
    for count in (100, 600_000):
        op = OpParam("batch_send_recv", count, DataType.FP32, mode=mode, pairs=tuple(pairs))
        messages = [Message(a, b, 4 * count) for a, b in pairs]
        told = (at.size, messages, CCL, pod)
        yield Held(op, lambda rank, told=told: batch(rank, *told), CCL)  # type: ignore[misc]


def _groups(_: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """Messages of many sizes."""
    joined, chance = joined_ranks(at), np.random.default_rng(at.size)
    pods = [joined.count(number) for number in sorted(set(joined))]
    ends = _chosen(at.size)
    sizes = chance.integers(0, 60_000, len(ends)).tolist()
    pairs = tuple((a, b, size) for (a, b), size in zip(ends, sizes, strict=True))
    op = OpParam("batch_send_recv", 60_000, DataType.FP32, mode=mode, pairs=pairs)
    messages = [Message(a, b, 4 * size) for a, b, size in pairs]
    yield Held(op, partial(grouped, messages=messages, ccl=CCL, pods=pods), CCL)


def _rotation(_: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """Even ranks send to the next one: of a rank's two calls HCCL knows nothing together."""
    pairs, joined = tuple((a, a + 1) for a in range(0, at.size - 1, 2)), joined_ranks(at)
    peers = {**dict(pairs), **{b: a for a, b in pairs}}
    for count in (100, 600_000):
        op = OpParam("send_recv", count, DataType.FP32, mode=mode, pairs=pairs)
        room = CCL if mode is Mode.OP_BASE else 4 * count

        def run(rank: int, size: int = 4 * count, room: int = room) -> list[list[Event]]:
            if rank not in peers:
                return [[]]
            peer = peers[rank]
            link = Link([], peer, rdma=joined[rank] != joined[peer])
            if rank < peer:
                send(link, size, room)
            else:
                alone = bool(at.product.superpod_servers) and len(at.superpods) == 1
                straight = mode is Mode.GRAPH or alone
                receive(link, size, room, straight=straight)
            return [link.events]

        yield Held(op, run, CCL)


HELD: Holders = {
    "SendExecutor": _rotation,
    "BatchSendRecv": _batches,
    "BatchSendRecvGroup": _groups,
}
