"""Middle counts over several servers of Atlas A2 in a fixed order, held against a model of HCCL's.

impl/coll_executor/coll_all_reduce/coll_all_reduce_mesh_opbase_mid_count_deterministic_executor.cc
of libochao-huawei/hcomm @ 8958adb (src/legacy/ascend910/algorithm): :23 CalcStreamNum, :91
PrepareSlicesInfo, :119 RunReduceScatterLevel0, :144 RunAllReduceLevel1, :220 RunAllGatherLevel0.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from hccl_executors import EXECUTORS
from hccl_py.enums import Mode
from hccl_py.topology import Topology, topology_of
from tests.executors.fidelity import grid, rings, trees
from tests.executors.fidelity.by_rank import Adder, Team, plant
from tests.executors.fidelity.held import Held, Holders, form_of
from tests.executors.fidelity.meshes import Mesh, all_gather_mesh_atomic
from tests.executors.fidelity.recorded import events_of, travels
from tests.executors.fidelity.streams import Worker, sliced
from tests.executors.fidelity.transports import Event, Template
from tests.recording import op_of, recorded

NAME = "AllReduceMeshOpbaseMidCountDeterministicExecutor"
FIDELITY = {executor.__name__: executor.fidelity for executor in EXECUTORS}


def subs(devices: int) -> int:
    """:25: all but one device, and the power of two up to them."""
    return devices - 1 + (1 << (devices.bit_length() - 1))


def model(
    rank: int,
    servers: int,
    n: int,
    size: int,
    template: Template,
    *,
    is_cut: bool,
    joined: bool | Sequence[int] = True,
) -> list[list[Event]]:
    """What a rank does, :258 KernelRun."""
    chunks = sliced(size, n)
    team = Team(n, 1, chunks[0].size, [one.size for one in chunks], borrows=True, in_turns=False)
    server, device = divmod(rank, n)
    me = Adder(rank, team, subs(n))
    plant(me)
    mine = chunks[device]
    call = {"slices": sliced(mine.size, servers, mine.offset)} if is_cut else {"whole": mine}
    between = Worker(rank, 0)
    between.run(template, range(device, servers * n, n), rdma=joined, **call)
    me.streams[0] += between.streams[0]
    mesh = Mesh(device, n, n - 2, server * n)
    all_gather_mesh_atomic(mesh, chunks)
    for stream, events in enumerate(mesh.streams):
        me.streams[stream] += events
    return me.streams


def check(servers: int, n: int, count: int, word: str, template: Template, *, is_cut: bool) -> None:
    where = topology_of(servers=servers, devices=n)
    op = replace(op_of("all_reduce", count), level1=word)
    program = recorded(NAME, op, where, 1 << 22)
    assert program.declared.sub_streams.tolist() == [subs(n)] * where.size
    is_same = FIDELITY[NAME].is_same and FIDELITY[NAME].cases[word].is_same
    for rank in range(where.size):
        found = events_of(program, rank)
        ours = [found.get(k, []) for k in range(program.streams)]
        wanted = model(rank, servers, n, 4 * count, template, is_cut=is_cut)
        if is_same:
            assert ours == wanted
        assert [travels(_whole(s)) for s in ours] == [travels(_whole(s)) for s in wanted]


def _whole(events: list[Event]) -> list[Event]:
    """Leave out writes that change their place: what joins pieces knows one place of each."""
    return [event for event in events if event[0] != "write"]


@pytest.mark.parametrize(
    ("word", "template", "is_cut"),
    [
        ("ring", rings.ring_all_reduce, True),
        ("NHR", trees.nhr_all_reduce, True),
        ("NHR_V1", grid.nhr_v1_all_reduce, False),
    ],
)
@pytest.mark.parametrize(("servers", "devices"), [(1, 4), (2, 8), (3, 3), (4, 2), (2, 7)])
def test_every_post_wait_and_transfer(
    servers: int, devices: int, word: str, template: Template, is_cut: bool
) -> None:
    for count in (32 * devices * servers, 140_001):
        check(servers, devices, count, word, template, is_cut=is_cut)


@pytest.mark.sweep
def test_more_layouts() -> None:
    for devices in range(2, 9):
        for servers in (2, 3, 5):
            check(servers, devices, 70_003, "ring", rings.ring_all_reduce, is_cut=True)


def test_rounds() -> None:
    """coll_all_reduce_executor.cc CalcLoopMaxCount: a round fills the CCL buffer."""
    where = topology_of(servers=2, devices=8)
    program = recorded(NAME, op_of("all_reduce", (3 << 20) // 4 + 1), where, 1 << 20)
    assert program.rounds == 4


def _held(_: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """Cuts that are uneven."""
    form, count = form_of(at), 32 * at.size + 1
    ring, shape = rings.ring_all_reduce, (form.all_servers, form.devices)

    def run(rank: int) -> list[list[Event]]:
        return model(rank, *shape, 4 * count, ring, is_cut=True, joined=form.joined)

    yield Held(replace(op_of("all_reduce", count, mode=mode), level1="ring"), run, 1 << 22)


HELD: Holders = {NAME: _held}
