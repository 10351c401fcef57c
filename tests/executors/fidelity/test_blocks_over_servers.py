"""all_gather_v and reduce_scatter_v over several servers of Atlas A2, held against models of
coll_all_gather_v_mesh_executor.cc and coll_reduce_scatter_v_mesh_opbase_executor.cc of
libochao-huawei/hcomm @ 8958adb under src/legacy/ascend910/algorithm/impl/coll_executor.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

import pytest

from hccl_executors import EXECUTORS
from hccl_py.enums import Mode
from hccl_py.topology import Topology, topology_of
from tests.executors.fidelity import rings, trees
from tests.executors.fidelity.held import Held, Holders, form_of
from tests.executors.fidelity.meshes import (
    Mesh,
    all_gather_mesh_atomic,
    reduce_scatter_mesh_atomic,
    reduce_scatter_mesh_direct,
)
from tests.executors.fidelity.recorded import events_of
from tests.executors.fidelity.transports import Across, Event, Part, Slice
from tests.recording import op_of, recorded

NAMES = {
    "all_gather_v": "AllGatherVMeshExecutor",
    "reduce_scatter_v": "ReduceScatterVMeshOpbaseExecutor",
}
TEMPLATES: dict[tuple[str, str], Callable[..., None]] = {
    ("all_gather_v", "ring"): rings.ring_all_gather,
    ("all_gather_v", "NHR"): trees.nhr_all_gather,
    ("reduce_scatter_v", "ring"): rings.ring_reduce_scatter,
    ("reduce_scatter_v", "NHR"): trees.nhr_reduce_scatter,
}
FIDELITY = {executor.__name__: executor.fidelity for executor in EXECUTORS}


def rounds(counts: Sequence[int], room: int) -> list[list[int]]:
    """CalcCurCountsAndCurDisplsMultiModule: what is free is shared evenly, again and again."""
    left, found = list(counts), []
    while any(left):
        free, now = room, [0] * len(left)
        while free > 0 and any(left):
            share = free // sum(count > 0 for count in left)
            if not share:
                break
            given = [min(count, share) for count in left]
            left = [count - more for count, more in zip(left, given, strict=True)]
            now = [count + more for count, more in zip(now, given, strict=True)]
            free -= sum(given)
        found.append(now)
    return found


def slices(counts: Sequence[int]) -> list[Slice]:
    """Blocks of fp32, one after the other."""
    starts = accumulate((4 * count for count in counts), initial=0)
    return [Slice(start, 4 * count) for start, count in zip(starts, counts, strict=False)]


def one_round(me: Mesh, between: Part, op: str, word: str, counts: Sequence[int]) -> None:
    """KernelRun of one round: RunLevel0, RunLevel1, or the other way round."""
    every, devices = slices(counts), me.size
    home = every[me.first : me.first + devices]
    servers = [every[k : k + devices] for k in range(0, len(every), devices)]
    whole = [Slice(part[0].offset, sum(one.size for one in part)) for part in servers]
    template = TEMPLATES[op, word]
    if op == "all_gather_v":
        all_gather_mesh_atomic(me, home)
        template(between, whole)
    else:
        template(between, whole)
        reduce_scatter_mesh_atomic(me, home)


def check(op: str, word: str, servers: int, devices: int, counts: Sequence[int], room: int) -> None:
    name = NAMES[op]
    assert FIDELITY[name].is_same
    assert FIDELITY[name].cases[word].is_same
    call = replace(op_of(op, 0), counts=tuple(counts), level1=word)
    topology = topology_of(servers=servers, devices=devices)
    program = recorded(name, call, topology, 4 * room)
    size = servers * devices
    for rank in range(size):
        server, device = divmod(rank, devices)
        me = Mesh(device, devices, max(devices - 2, 0), server * devices)
        between = Part(me.streams[0], range(device, size, devices), rank, rdma=True)
        for now in rounds(counts, room):
            one_round(me, between, op, word, now)
        found = events_of(program, rank)
        assert [found.get(k, []) for k in range(len(me.streams))] == me.streams
        assert not any(found.get(k) for k in range(len(me.streams), program.streams))


@pytest.mark.parametrize(("servers", "devices"), [(2, 8), (3, 2), (4, 3), (5, 1)])
@pytest.mark.parametrize("word", ["ring", "NHR"])
@pytest.mark.parametrize("op", NAMES)
def test_blocks_go_in_the_servers_and_between_them(
    op: str, word: str, servers: int, devices: int
) -> None:
    counts = [37 * (rank % 4) + 11 for rank in range(servers * devices)]
    check(op, word, servers, devices, counts, 1 << 20)
    check(op, word, servers, devices, counts, 32 * servers * devices)


@pytest.mark.parametrize("op", NAMES)
def test_blocks_that_fill_the_last_round_are_not_followed_by_an_empty_one(op: str) -> None:
    check(op, "ring", 2, 2, [64, 64, 64, 64], 128)


@pytest.mark.sweep
@pytest.mark.parametrize("op", NAMES)
def test_other_shapes(op: str) -> None:
    for servers in range(2, 7):
        for devices in range(1, 9):
            counts = [(rank * rank) % 50 for rank in range(servers * devices)]
            for word in ("ring", "NHR"):
                check(op, word, servers, devices, counts, 1 << 10)


def _held(_: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """reduce_scatter_v: in one server from user memory."""
    form, counts = form_of(at), [37 * (rank % 4) + 11 for rank in range(at.size)]

    def streams(rank: int) -> list[list[Event]]:
        server, device = divmod(rank, form.devices)
        if form.all_servers == 1:
            me = Mesh(device, at.size, at.size - 1)
            reduce_scatter_mesh_direct(me, slices(counts))
            return me.streams
        me = Mesh(device, form.devices, max(form.devices - 2, 0), server * form.devices)
        column = range(device, at.size, form.devices)
        between = Across(me.streams[0], column, rank, form.joined)
        one_round(me, between, "reduce_scatter_v", "ring", counts)
        return me.streams

    op = replace(op_of("reduce_scatter_v", 0, mode=mode), counts=tuple(counts), level1="ring")
    yield Held(op, streams)


HELD: Holders = {"ReduceScatterVMeshOpbaseExecutor": _held}
