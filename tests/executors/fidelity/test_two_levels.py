"""Meshes inside servers and something between them, held against models of HCCL's; and the mesh of
910A.

impl/coll_executor of xiaobingling93-pixel/cann-hcomm @ b5f3e5b: coll_broadcast_mesh_executor.cc:70,
coll_reduce_mesh_executor.cc:80, coll_scatter_mesh_executor.cc:40,
coll_all_gather_mix_executor.cc:101, coll_reduce_scatter_mix_executor.cc:239.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any

import pytest

from hccl_executors import EXECUTORS
from hccl_py.enums import Mode
from hccl_py.topology import Topology, topology_of
from tests.executors.fidelity import grid, rings, trees
from tests.executors.fidelity.held import Held, Holders, compare, form_of
from tests.executors.fidelity.meshes import (
    Mesh,
    all_gather_mesh,
    all_gather_mesh_atomic,
    all_gather_mesh_mix,
    all_gather_mesh_staged,
    gather_mesh,
    reduce_scatter_mesh_atomic,
    reduce_scatter_mesh_mix,
    scatter_mesh,
)
from tests.executors.fidelity.recorded import events_of
from tests.executors.fidelity.streams import sliced
from tests.executors.fidelity.superpods_v import shared_rounds
from tests.executors.fidelity.transports import Across, Event, Slice, Template, even
from tests.recording import op_of, recorded

SIZE = 128
KINDS = {executor.__name__: executor.fidelity.kind for executor in EXECUTORS}


@dataclass(frozen=True)
class Servers:
    """Some servers of as many devices each, and the root of a call."""

    servers: int
    devices: int
    root: int
    joined: tuple[int, ...] = ()

    @property
    def slices(self) -> list[Slice]:
        """A slice per device."""
        return even(self.devices, SIZE)

    def between(self, rank: int, template: Template, **call: Any) -> list[Event]:
        """What a rank does among the devices of its number in all servers."""
        if self.servers == 1:
            return []
        every = range(self.servers * self.devices)
        joined = self.joined or [other // self.devices for other in every]
        me = Across([], every[rank % self.devices :: self.devices], rank, joined)
        template(me, **call)
        return me.events

    @property
    def columns(self) -> list[list[Slice]]:
        """The slices of every device's number, one of each server."""
        return [
            even(self.servers * self.devices, SIZE)[d :: self.devices] for d in range(self.devices)
        ]

    @property
    def root_at(self) -> tuple[int, int]:
        """The root's server and its device."""
        return divmod(self.root, self.devices)


def _broadcast(at: Servers, me: Mesh, rank: int, *, on_910b: bool = True) -> None:
    """What device 0 scatters in servers without the root is left out."""
    server, device = at.root_at
    if rank // at.devices == server:
        scatter_mesh(me, at.slices, device, barrier=False)
    part = at.slices[me.rank]
    me.streams[0] += at.between(rank, grid.nhr_v1_broadcast, whole=part, root=server)
    (all_gather_mesh_atomic if on_910b else all_gather_mesh)(me, at.slices)


def _reduce(at: Servers, me: Mesh, rank: int) -> None:
    server, device = at.root_at
    reduce_scatter_mesh_atomic(me, at.slices)
    me.streams[0] += at.between(rank, rings.ring_reduce, whole=at.slices[me.rank], root=server)
    if rank // at.devices == server:
        gather_mesh(me, at.slices, device)


def _scatter(at: Servers, me: Mesh, rank: int) -> None:
    server, device = at.root_at
    each = even(at.servers, SIZE * at.devices)
    if me.rank == device:
        me.streams[0] += at.between(rank, rings.ring_scatter, slices=each, root=server)
    own = [Slice(me.first * SIZE + one.offset, SIZE) for one in at.slices]
    scatter_mesh(me, own, device, barrier=True)


def _all_gather_mix(at: Servers, me: Mesh, rank: int) -> None:
    mine = at.columns[me.rank]
    me.streams[0] += at.between(rank, trees.nhr_all_gather, slices=mine)
    all_gather_mesh_mix(me, at.columns)


def _reduce_scatter_mix(at: Servers, me: Mesh, rank: int) -> None:
    mine = at.columns[me.rank]
    reduce_scatter_mesh_mix(me, at.columns)
    template = partial(trees.nhr_reduce_scatter, meets=True)  # nothing closes its barrier
    me.streams[0] += at.between(rank, template, slices=mine)


MODELS: dict[str, tuple[str, str, Callable[[Servers, Mesh, int], None]]] = {
    "BroadCastMeshExecutor": ("broadcast", "NHR_V1", _broadcast),
    "ReduceMeshExecutor": ("reduce", "ring", _reduce),
    "ScatterMeshExecutor": ("scatter", "ring", _scatter),
}


def check(name: str, at: Servers, mode: Mode) -> None:
    """Compare everything, of all ranks; there may be a stream more that nothing runs on."""
    op, word, model = MODELS[name]
    assert KINDS[name] == "same"
    count = SIZE // 4 * (1 if op == "scatter" else at.devices)
    call = replace(op_of(op, count, mode=mode), root=at.root, level1=word)
    where = topology_of(servers=at.servers, devices=at.devices)
    program = recorded(name, call, where, 1 << 20)
    for rank in range(where.size):
        server, device = divmod(rank, at.devices)
        me = Mesh(device, at.devices, max(at.devices - 2, 0), server * at.devices)
        model(at, me, rank)
        found = events_of(program, rank)
        streams = [*me.streams, []]
        assert [found.get(k, []) for k in range(program.streams)] == streams[: program.streams]
        assert program.streams >= len(me.streams)


@pytest.mark.parametrize("mode", Mode, ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_rooted_meshes(name: str, mode: Mode) -> None:
    for at in (Servers(1, 2, 1), Servers(1, 5, 2), Servers(2, 3, 4), Servers(3, 1, 2)):
        check(name, at, mode)


@pytest.mark.sweep
@pytest.mark.parametrize("name", MODELS)
def test_rooted_meshes_of_every_root(name: str) -> None:
    for devices in (2, 3, 4, 7):
        for servers in (1, 2, 3):
            for root in range(servers * devices):
                check(name, Servers(servers, devices, root), Mode.OP_BASE)


@pytest.mark.parametrize(("devices", "subs"), [(1, 0), (2, 1), (8, 7)])
def test_a_broadcast_in_one_server_asks_for_a_stream_more(devices: int, subs: int) -> None:
    """coll_broadcast_mesh_executor.cc:21-37: on 910B in op-base mode."""
    op = op_of("broadcast", 1000)
    program = recorded("BroadCastMeshExecutor", op, topology_of(devices))
    assert program.declared.sub_streams.tolist() == [subs] * devices
    graph = recorded("BroadCastMeshExecutor", replace(op, mode=Mode.GRAPH), topology_of(devices))
    assert graph.declared.sub_streams.tolist() == [max(devices - 2, 0)] * devices
    training = topology_of(4, preset="atlas-800-9000")
    program = recorded("BroadCastMeshExecutor", op, training)
    assert program.declared.sub_streams.tolist() == [2] * 4


@pytest.mark.parametrize("ranks", [2, 4])
def test_the_mesh_of_910a(ranks: int) -> None:
    training = topology_of(ranks, preset="atlas-800-9000")
    program = recorded("AllGatherMeshExecutor", op_of("all_gather", SIZE // 4), training)
    for rank in range(ranks):
        me = Mesh(rank, ranks, ranks - 2)
        all_gather_mesh(me, even(ranks, SIZE))
        found = events_of(program, rank)
        assert [found.get(k, []) for k in range(program.streams)] == me.streams


@pytest.mark.parametrize(("servers", "devices"), [(1, 4), (2, 3), (3, 2)])
def test_servers_of_mixed_devices(servers: int, devices: int) -> None:
    """Slots are gathered between servers first, and scattered there last."""
    at, where = Servers(servers, devices, 0), topology_of(servers=servers, devices=devices)
    for name, op, model in (
        ("AllGatherMixExecutor", "all_gather", _all_gather_mix),
        ("ReduceScatterMixExecutor", "reduce_scatter", _reduce_scatter_mix),
    ):
        assert KINDS[name] == "same"
        program = recorded(name, op_of(op, SIZE // 4), where, 1 << 20)
        for rank in range(where.size):
            server, device = divmod(rank, devices)
            me = Mesh(device, devices, devices - 1, server * devices)
            model(at, me, rank)
            found = events_of(program, rank)
            assert [found.get(k, []) for k in range(program.streams)] == me.streams


BETWEEN: dict[str, Template] = {"ring": rings.ring_all_gather, "NHR": trees.nhr_all_gather}


def _all_gather_v(at: Servers, me: Mesh, rank: int, sizes: Sequence[int], word: str) -> None:
    """coll_all_gather_v/coll_all_gather_v_mesh_executor.cc of libochao-huawei/hcomm @ 8958adb: :116
    RunLevel0, :177 RunLevel1. Blocks lie side by side.
    """
    starts = list(accumulate(sizes, initial=0))
    blocks = [Slice(start, size) for start, size in zip(starts, sizes, strict=False)]
    all_gather_mesh_atomic(me, blocks[me.first : me.first + at.devices])
    firsts = range(0, len(sizes), at.devices)
    whole = [Slice(starts[i], starts[i + at.devices] - starts[i]) for i in firsts]
    me.streams[0] += at.between(rank, BETWEEN[word], slices=whole)


@pytest.mark.parametrize("mode", Mode, ids=str)
@pytest.mark.parametrize("word", BETWEEN)
@pytest.mark.parametrize(("servers", "devices"), [(2, 3), (3, 1), (4, 2), (5, 4)])
def test_blocks_of_different_sizes(word: str, servers: int, devices: int, mode: Mode) -> None:
    """One rank in five has none; a buffer has room for all, for a part, or just for all."""
    name, at, ranks = "AllGatherVMeshExecutor", Servers(servers, devices, 0), servers * devices
    assert KINDS[name] == "same"
    where = topology_of(servers=servers, devices=devices)
    counts = [96 * (3 * rank % 5) for rank in range(1, ranks + 1)]
    call = replace(op_of("all_gather_v", 0, mode=mode), counts=tuple(counts), level1=word)
    for ccl in (1 << 20, 1664, 4 * sum(counts)):
        program = recorded(name, call, where, ccl)
        rounds = [[4 * n for n in counts]]
        if mode is Mode.OP_BASE:
            rounds = shared_rounds(counts, 4, ccl, aligned=False, looks_again=True)
            assert (len(rounds) > 1) == (ccl == 1664)
        assert program.rounds == len(rounds)
        for rank in range(ranks):
            server, device = divmod(rank, devices)
            me = Mesh(device, devices, max(devices - 2, 0), server * devices)
            for sizes in rounds:
                _all_gather_v(at, me, rank, sizes, word)
            found = events_of(program, rank)
            assert [found.get(k, []) for k in range(program.streams)] == me.streams


# ---- wherever HCCL's selection may come to them ----


def _seat(at: Servers, rank: int, subs: int) -> Mesh:
    server, device = divmod(rank, at.devices)
    return Mesh(device, at.devices, subs, server * at.devices)


def _rooted(name: str, topology: Topology, mode: Mode) -> Iterator[Held]:
    op, word, model = MODELS[name]
    form = form_of(topology)
    at = Servers(form.all_servers, form.devices, topology.size * 2 // 3, form.joined)
    count = SIZE // 4 * (1 if op == "scatter" else at.devices)

    def streams(rank: int) -> list[list[Event]]:
        me = _seat(at, rank, max(at.devices - 2, 0))
        if op == "broadcast":
            _broadcast(at, me, rank, on_910b=topology.product.device == "910B")
        else:
            model(at, me, rank)
        return me.streams

    yield Held(replace(op_of(op, count, mode=mode), root=at.root, level1=word), streams)


def _mixed(name: str, topology: Topology, mode: Mode) -> Iterator[Held]:
    op, model = MIXED[name]
    form = form_of(topology)
    at = Servers(form.all_servers, form.devices, 0, form.joined)

    def streams(rank: int) -> list[list[Event]]:
        me = _seat(at, rank, max(at.devices - 1, 0))
        model(at, me, rank)
        return me.streams

    yield Held(op_of(op, SIZE // 4, mode=mode), streams)


def _all_reduce(_: str, topology: Topology, mode: Mode) -> Iterator[Held]:
    """coll_all_reduce_mix_executor.cc:119 KernelRun of libochao-huawei/hcomm @ 8958adb: nobody
    closes the barrier of NHR, which takes more than 256 KiB for a device here.
    """
    form, each = form_of(topology), (256 << 10) + 128
    at = Servers(form.all_servers, form.devices, 0, form.joined)
    size = each * at.devices

    def streams(rank: int) -> list[list[Event]]:
        used, parts = _seat(at, rank, max(at.devices - 2, 0)), sliced(size, at.devices)
        mine = parts[used.rank]
        reduce_scatter_mesh_atomic(used, parts)
        cut = sliced(mine.size, at.servers, mine.offset)
        used.streams[0] += at.between(rank, trees.nhr_all_reduce, slices=cut, meets=True)
        all_gather_mesh_atomic(used, parts)
        return used.streams

    yield Held(replace(op_of("all_reduce", size // 4, mode=mode), level1="NHR"), streams, 1 << 23)


def _v(_: str, topology: Topology, mode: Mode) -> Iterator[Held]:
    """Blocks that all fit."""
    form = form_of(topology)
    at = Servers(form.all_servers, form.devices, 0, form.joined)
    counts = [96 * (3 * rank % 5) for rank in range(1, topology.size + 1)]
    sizes = [4 * count for count in counts]

    def staged(rank: int) -> list[list[Event]]:
        """coll_all_gather_v_mesh_executor.cc:215 of one server in op-base mode."""
        starts, me = accumulate(sizes, initial=0), _seat(at, rank, at.devices - 1)
        blocks = [Slice(start, size) for start, size in zip(starts, sizes, strict=False)]
        all_gather_mesh_staged(me, blocks, [0] * at.devices)
        return me.streams

    def streams(rank: int) -> list[list[Event]]:
        me = _seat(at, rank, max(at.devices - 2, 0))
        _all_gather_v(at, me, rank, sizes, "ring")
        return me.streams

    call = replace(op_of("all_gather_v", 0, mode=mode), counts=tuple(counts), level1="ring")
    yield Held(call, staged if at.servers == 1 and mode is Mode.OP_BASE else streams)


MIXED = {
    "AllGatherMixExecutor": ("all_gather", _all_gather_mix),
    "ReduceScatterMixExecutor": ("reduce_scatter", _reduce_scatter_mix),
}
HELD: Holders = {
    **dict.fromkeys(MODELS, _rooted),
    **dict.fromkeys(MIXED, _mixed),
    "AllReduceMixExecutor": _all_reduce,
    "AllGatherVMeshExecutor": _v,
}


@pytest.mark.parametrize(("servers", "devices"), [(2, 3), (3, 2), (5, 1)])
def test_large_sums_of_mixed_devices(servers: int, devices: int) -> None:
    """Several servers, where the executor is not `same` for small data."""
    topology = topology_of(servers=servers, devices=devices)
    for mode in Mode:
        for call in _all_reduce("AllReduceMixExecutor", topology, mode):
            compare("AllReduceMixExecutor", topology, call)
