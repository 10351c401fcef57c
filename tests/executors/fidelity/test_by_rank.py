"""Order-preserved reductions, held against models of HCCL's: every post, wait and transfer."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import pytest

from hccl_executors import EXECUTORS
from hccl_py.enums import Mode
from hccl_py.topology import Topology, topology_of
from tests.executors.fidelity.by_rank import (
    Adder,
    Team,
    combine,
    hd_stage,
    mesh_all_gather,
    plant,
    subs_of_pods,
    subs_of_servers,
)
from tests.executors.fidelity.held import Held, Holders, form_of
from tests.executors.fidelity.recorded import events_of
from tests.executors.fidelity.rings import ring_all_gather
from tests.executors.fidelity.transports import Across, Event, Slice, Template
from tests.executors.fidelity.trees import nhr_all_gather
from tests.recording import op_of, recorded

KINDS = {executor.__name__: executor.fidelity.kind for executor in EXECUTORS}


class Layout(NamedTuple):
    """Teams of `n` members: servers of A2, or superpods of A3 of servers of 4."""

    groups: int
    n: int
    in_pods: bool

    @property
    def topology(self) -> Topology:
        if not self.in_pods:
            return topology_of(servers=self.groups, devices=self.n)
        devices = 4 if self.n % 4 == 0 else 2
        return topology_of(
            superpods=self.groups,
            servers=self.n // devices,
            devices=devices,
            preset="atlas-900-a3",
        )

    @property
    def subs(self) -> int:
        return (subs_of_pods if self.in_pods else subs_of_servers)(self.n, self.groups)


def gathered(
    slices: list[Slice],
    me: int,
    peers: list[int],
    rdma: Sequence[int],
    template: Template = nhr_all_gather,
) -> list[Event]:
    """Return what an all-gather puts on main; members are these peers."""
    member = Across([], peers, peers[me], rdma)
    if len(slices) > 1:
        template(member, slices)
    return member.events


def model(
    layout: Layout,
    rank: int,
    stride: int,
    sizes: list[int],
    op: str,
    joined: Sequence[int] | None = None,
    template: Template = nhr_all_gather,
) -> list[list[Event]]:
    """What HCCL's executor does: coll_reduce_scatter_order_preserved_executor.cc:231 and
    coll_all_reduce_order_preserved_executor.cc:252, and those for 910_93; a rank alone in its
    server only copies there, :174 and :152 in libochao-huawei/hcomm @ 8958adb, and borrows as it
    combines (:278). SDMA joins servers of one number in `joined`.
    """
    n, groups = layout.n, layout.groups
    joined = joined or [team for team in range(groups) for _ in range(n)]
    team = Team(n, groups, stride, sizes, op == "all_reduce" or n == 1, layout.in_pods)
    me = Adder(rank, team, layout.subs)
    if n > 1:
        plant(me)
    if groups > 1:
        combine(me, lambda a, b: joined[a * n] != joined[b * n])
    if op == "reduce_scatter":
        return me.streams
    blocks = [Slice(k * stride, sizes[k]) for k in range(n * groups)]
    if layout.in_pods:
        near = list(range(me.group * n, me.group * n + n))
        me.streams[0] += gathered([blocks[k] for k in near], me.me, near, joined)
    else:
        mesh_all_gather(me)
    teams = [Slice(g * n * stride, sum(sizes[g * n : g * n + n])) for g in range(groups)]
    equal = [g * n + me.me for g in range(groups)]
    me.streams[0] += gathered(teams, me.group, equal, joined, template)
    return me.streams


def slots_of(op: str, ranks: int, count: int) -> tuple[int, list[int]]:
    """How far apart blocks are, and how large each is."""
    if op == "reduce_scatter":
        return 4 * count, [4 * count] * ranks
    stride = -(-(-(-count // ranks) * 4) // 128) * 128
    return stride, [min(max(4 * count - k * stride, 0), stride) for k in range(ranks)]


def check(layout: Layout, op: str, count: int) -> None:
    name = {"reduce_scatter": "ReduceScatter", "all_reduce": "AllReduce"}[op]
    executor = f"{name}OrderPreserved{'For91093' if layout.in_pods else ''}Executor"
    assert KINDS[executor] == "same"
    ranks = layout.n * layout.groups
    stride, sizes = slots_of(op, ranks, count)
    program = recorded(executor, op_of(op, count), layout.topology, 1 << 22)
    assert (program.declared.sub_streams == layout.subs).all()
    for rank in range(ranks):
        found = events_of(program, rank)
        wanted = model(layout, rank, stride, sizes, op)
        assert [found.get(k, []) for k in range(layout.subs + 1)] == wanted, rank


OPS = ("reduce_scatter", "all_reduce")
FEW = [Layout(1, 2, False), Layout(1, 5, False), Layout(3, 4, False), Layout(1, 12, True),
       Layout(2, 4, True)]  # fmt: skip
MANY = [
    *(Layout(s, n, False) for s in (1, 2, 4) for n in range(2, 7 if s == 4 else 9)),
    *(Layout(5, n, False) for n in (2, 3, 5)),
    *(Layout(1, n, True) for n in (2, 6, 8, 20)),
    *(Layout(3, n, True) for n in (2, 6)),
]


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("layout", FEW, ids=str)
def test_every_post_wait_and_transfer(layout: Layout, op: str) -> None:
    check(layout, op, 9000)


@pytest.mark.sweep
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("layout", MANY, ids=str)
def test_more_layouts(layout: Layout, op: str) -> None:
    halved = op == "reduce_scatter" and not layout.in_pods and layout.groups == 1
    for count in (9001, 12_345) if halved else (7, 9001):
        check(layout, op, count)


HALVED = {
    "ReduceScatterDeterExecutor": (
        topology_of(4),
        topology_of(8),
        topology_of(servers=2, devices=2, preset="atlas-900-a3"),
        topology_of(servers=4, devices=8, preset="atlas-900-a3"),
    ),
    "ReduceScatterOrderPreservedExecutor": (topology_of(4), topology_of(8)),
}


@pytest.mark.parametrize("name", HALVED)
def test_small_data_is_halved(name: str) -> None:
    assert KINDS[name] == "same"
    for topology in HALVED[name]:
        program = recorded(name, op_of("reduce_scatter", 1000), topology, 1 << 20)
        for rank in range(topology.size):
            found = events_of(program, rank)
            assert [found[0], found[1]] == hd_stage(rank, topology.size, 4000)
            assert set(found) == {0, 1}


def _held(name: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """Slots that are cut unevenly."""
    op = "all_reduce" if name.startswith("AllReduce") else "reduce_scatter"
    form, in_pods, count = form_of(at), "91093" in name, 9001
    pods = (form.pods, form.servers * form.devices)
    layout = Layout(*(pods if in_pods else (form.all_servers, form.devices)), in_pods)
    stride, sizes = slots_of(op, at.size, count)
    is_plain = in_pods or form.is_plain
    template, word = (nhr_all_gather, "NHR") if is_plain else (ring_all_gather, "ring")
    known = partial(
        model, layout, stride=stride, sizes=sizes, op=op, joined=form.joined, template=template
    )
    alone = layout.n == 1 and op == "reduce_scatter" and mode is Mode.GRAPH
    call = op_of(op, count, mode=mode)
    if op == "all_reduce" and not in_pods:
        call = replace(call, level1=word)
    yield Held(call, known, 1 << 22, stride * at.size if alone else 0)


HELD: Holders = {
    f"{op}OrderPreserved{where}Executor": _held
    for op in ("AllReduce", "ReduceScatter")
    for where in ("", "For91093")
}
