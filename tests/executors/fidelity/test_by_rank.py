"""Order-preserved reductions, held against models of HCCL's: every post, wait and transfer."""

from typing import NamedTuple

import pytest

from hccl_executors import EXECUTORS
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
from tests.executors.fidelity.recorded import events_of
from tests.executors.fidelity.transports import Event, Member, Slice
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


def gathered(slices: list[Slice], me: int, peers: list[int], rdma: bool) -> list[Event]:
    """Return what NHR's all-gather puts on main; members are these peers."""
    member = Member(me, len(slices), rdma=rdma)
    if len(slices) > 1:
        nhr_all_gather(member, slices)
    return [(event[0], peers[event[1]], *event[2:]) for event in member.events]


def model(layout: Layout, rank: int, stride: int, sizes: list[int], op: str) -> list[list[Event]]:
    """What HCCL's executor does: coll_reduce_scatter_order_preserved_executor.cc:231 and
    coll_all_reduce_order_preserved_executor.cc:252, and those for 910_93.
    """
    n, groups = layout.n, layout.groups
    team = Team(n, groups, stride, sizes, op == "all_reduce", layout.in_pods)
    me = Adder(rank, team, layout.subs)
    plant(me)
    if groups > 1:
        combine(me, lambda a, b: a != b)
    if op == "reduce_scatter":
        return me.streams
    blocks = [Slice(k * stride, sizes[k]) for k in range(n * groups)]
    if layout.in_pods:
        near = list(range(me.group * n, me.group * n + n))
        me.streams[0] += gathered([blocks[k] for k in near], me.me, near, rdma=False)
    else:
        mesh_all_gather(me)
    teams = [Slice(g * n * stride, sum(sizes[g * n : g * n + n])) for g in range(groups)]
    equal = [g * n + me.me for g in range(groups)]
    me.streams[0] += gathered(teams, me.group, equal, rdma=True)
    return me.streams


def check(layout: Layout, op: str, count: int) -> None:
    name = {"reduce_scatter": "ReduceScatter", "all_reduce": "AllReduce"}[op]
    executor = f"{name}OrderPreserved{'For91093' if layout.in_pods else ''}Executor"
    assert KINDS[executor] == "same"
    ranks = layout.n * layout.groups
    if op == "reduce_scatter":
        stride, sizes = 4 * count, [4 * count] * ranks
    else:
        stride = -(-(-(-count // ranks) * 4) // 128) * 128
        sizes = [min(max(4 * count - k * stride, 0), stride) for k in range(ranks)]
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
