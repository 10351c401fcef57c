"""Executors of 310P that send between servers from device 0 alone, held against models of HCCL's.

impl/coll_executor of libochao-huawei/hcomm @ 8958adb (src/legacy/ascend910/algorithm):
coll_all_reduce/coll_all_reduce_reduce_plus_bcast_executor.cc:102 KernelRun, and
coll_broadcast/310P/coll_broadcast_plus_broadcast.cc:44 KernelRun as its comments say: its code
takes places for ranks.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from hccl_executors import EXECUTORS
from hccl_py.enums import Mode
from hccl_py.topology import Topology, topology_of
from tests.executors.fidelity import grid, halving, rings, trees
from tests.executors.fidelity.held import Held, Holders, form_of
from tests.executors.fidelity.recorded import events_of, travels
from tests.executors.fidelity.streams import Worker, sliced
from tests.executors.fidelity.transports import Event, Slice, Template
from tests.recording import op_of, recorded

FIDELITY = {executor.__name__: executor.fidelity for executor in EXECUTORS}
SHAPES = ((1, 2), (1, 8), (2, 1), (2, 2), (3, 4))
"""Servers and devices of each."""


def _all_reduce(
    rank: int, servers: int, devices: int, size: int, template: Template, *, is_cut: bool
) -> list[Event]:
    me, whole = Worker(rank, 0), Slice(0, size)
    first = rank // devices * devices
    inside = range(first, first + devices)
    me.run(halving.hd_reduce_over_mesh, inside, rdma=False, whole=whole)
    if rank == first:
        call = {"slices": sliced(size, servers)} if is_cut else {"whole": whole}
        me.run(template, range(0, servers * devices, devices), rdma=True, **call)
    me.run(rings.ring_broadcast, inside, rdma=False, slices=sliced(size, devices), root=0)
    return me.streams[0]


@pytest.mark.parametrize(
    ("word", "size", "template", "is_cut"),
    [
        ("ring", 4 * 1000, rings.ring_all_reduce, True),
        ("ring", 4, rings.ring_all_reduce, True),
        ("NHR_V1", 4 * 3001, grid.nhr_v1_all_reduce, False),
    ],
)
@pytest.mark.parametrize(("servers", "devices"), SHAPES)
def test_all_reduce(
    servers: int, devices: int, word: str, size: int, template: Template, is_cut: bool
) -> None:
    assert FIDELITY["AllReduceReducePlusBcast"].is_same
    op = replace(op_of("all_reduce", size // 4), level1=word)
    where = topology_of(servers=servers, devices=devices)
    program = recorded("AllReduceReducePlusBcast", op, where, 1 << 20)
    assert program.streams == 1
    for rank in range(where.size):
        wanted = _all_reduce(rank, servers, devices, size, template, is_cut=is_cut)
        assert events_of(program, rank).get(0, []) == wanted


@pytest.mark.parametrize("over", [0, 1])
def test_nhr_goes_over_a_tree_up_to_256_kib_for_every_device(over: int) -> None:
    """Lines 123-130: the bytes are divided by the devices of a server."""
    servers, devices, count = 4, 2, (2 * 256 << 10) // 4 + over
    op = replace(op_of("all_reduce", count), level1="NHR")
    where = topology_of(servers=servers, devices=devices)
    program = recorded("AllReduceReducePlusBcast", op, where, 1 << 20)
    for rank in range(where.size):
        template = trees.nhr_all_reduce if over else trees.nhr_all_reduce_one_shot
        wanted = _all_reduce(rank, servers, devices, 4 * count, template, is_cut=bool(over))
        assert travels(events_of(program, rank)[0]) == travels(wanted)


def _broadcast(
    rank: int, servers: int, devices: int, root: int, size: int, template: Template
) -> list[Event]:
    me = Worker(rank, 0)
    first = rank // devices * devices
    inside, parts = range(first, first + devices), sliced(size, devices)
    server, device = divmod(root, devices)
    if device and rank // devices == server:
        me.run(rings.ring_broadcast, inside, rdma=False, slices=parts, root=device)
    if rank == first:
        firsts = range(0, servers * devices, devices)
        me.run(template, firsts, rdma=True, whole=Slice(0, size), root=server)
    me.run(rings.ring_broadcast, inside, rdma=False, slices=parts, root=0)
    return me.streams[0]


@pytest.mark.parametrize(("servers", "devices"), [(1, 2), (1, 5), (2, 2), (3, 4), (5, 1)])
def test_broadcast(servers: int, devices: int) -> None:
    size, where = 4 * 3001, topology_of(servers=servers, devices=devices)
    for root in {0, devices - 1, servers * devices - 1, (servers - 1) * devices}:
        for word, template in (
            ("NHR_V1", grid.nhr_v1_broadcast),
            ("H-D_R", halving.hd_broadcast),
            ("NHR", trees.nhr_broadcast_one_shot),
            ("NB", trees.nb_broadcast_binary),
        ):
            op = replace(op_of("broadcast", size // 4), level1=word, root=root)
            program = recorded("BroadcastPlusBroadcast", op, where, 1 << 20)
            is_same = FIDELITY["BroadcastPlusBroadcast"].cases[word].is_same
            for rank in range(where.size):
                ours = events_of(program, rank).get(0, [])
                wanted = _broadcast(rank, servers, devices, root, size, template)
                assert ours == wanted or not is_same
                assert travels(ours) == travels(wanted)


def _held(name: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """A ring between the servers."""
    form = form_of(at)

    def run(rank: int) -> list[list[Event]]:
        shape, ring = (form.all_servers, form.devices), rings.ring_all_reduce
        return [_all_reduce(rank, *shape, 4000, ring, is_cut=True)]

    yield Held(replace(op_of("all_reduce", 1000, mode=mode), level1="ring"), run)


HELD: Holders = {"AllReduceReducePlusBcast": _held}
