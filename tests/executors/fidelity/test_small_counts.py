"""Small counts over several servers of Atlas A2, and on 910A, held against models of HCCL's."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import pytest

from hccl_executors import EXECUTORS
from hccl_py.enums import Mode
from hccl_py.program.program import Program
from hccl_py.topology import Topology, topology_of
from tests.executors.fidelity import halving, rings, small_counts, trees
from tests.executors.fidelity.held import Held, Holders, form_of
from tests.executors.fidelity.recorded import events_of
from tests.executors.fidelity.small_counts import OnServers
from tests.executors.fidelity.transports import Event, Member, Slice, even, run
from tests.recording import op_of, recorded

REDUCE = "AllReduceMeshOpbaseSmallCountDeterministicExecutor"
SCATTER = "ReduceScatterMeshOpbaseSmallCountDeterministicExecutor"
SIZE = 640
FIDELITY = {executor.__name__: executor.fidelity for executor in EXECUTORS}


def in_slices(template: Callable[..., None]) -> Callable[[Member, Slice], None]:
    """Cut the whole, of 128 bytes for everybody, for a template of slices."""

    def run(me: Member, whole: Slice) -> None:
        assert whole.size == 128 * me.size
        template(me, even(me.size, 128))

    return run


def program_of(name: str, servers: int, devices: int, word: str, size: int) -> Program:
    op = op_of("all_reduce" if name == REDUCE else "reduce_scatter", size // 4)
    return recorded(name, replace(op, level1=word), topology_of(servers=servers, devices=devices))


def check(
    name: str, servers: int, devices: int, word: str, size: int, level1: Callable[..., None]
) -> None:
    program = program_of(name, servers, devices, word, size)
    power = devices & (devices - 1) == 0
    subs = (0 if power else devices - 1) if name == REDUCE else int(power)
    assert program.streams == 1 + subs
    model = small_counts.all_reduce if name == REDUCE else small_counts.reduce_scatter
    for rank in range(servers * devices):
        me = OnServers(rank, servers, devices, subs)
        model(me, size, level1)
        found = events_of(program, rank)
        assert [found.get(k, []) for k in range(program.streams)] == me.streams


@pytest.mark.parametrize(("servers", "devices"), [(2, 8), (4, 3), (3, 4), (5, 6), (6, 1)])
def test_all_reduce_inside_then_between(servers: int, devices: int) -> None:
    assert FIDELITY[REDUCE].is_same
    assert FIDELITY[REDUCE].cases["ring"].is_same
    template = in_slices(rings.ring_all_reduce)
    check(REDUCE, servers, devices, "ring", 128 * servers, template)


@pytest.mark.parametrize(("servers", "devices"), [(3, 4), (5, 6), (6, 1), (7, 2)])
def test_nhr_meets_after_every_step(servers: int, devices: int) -> None:
    """The executor closes its barrier when it has run."""
    assert FIDELITY[REDUCE].cases["NHR"].is_same
    template = in_slices(partial(trees.nhr_all_reduce, meets=True))
    check(REDUCE, servers, devices, "NHR", 128 * servers, template)


@pytest.mark.parametrize(
    ("word", "template"),
    [("ring", rings.ring_reduce_scatter), ("NHR", trees.nhr_reduce_scatter)],
)
@pytest.mark.parametrize(("servers", "devices"), [(2, 8), (3, 4), (4, 3), (5, 2), (6, 1)])
def test_reduce_scatter_between_then_inside(
    word: str, template: Callable[..., None], servers: int, devices: int
) -> None:
    assert FIDELITY[SCATTER].is_same
    assert FIDELITY[SCATTER].cases[word].is_same
    check(SCATTER, servers, devices, word, SIZE, template)


@pytest.mark.sweep
@pytest.mark.parametrize("devices", [1, 2, 4, 8])
def test_two_powers_are_doubled_whatever_the_word(devices: int) -> None:
    """16 servers at most; NHR and halving and doubling do not come to pass."""
    for servers in (2, 4, 8, 16):
        for word in ("NHR", "ring", "H-D_R"):
            check(REDUCE, servers, devices, word, SIZE, halving.hd_all_reduce)


@pytest.mark.sweep
def test_other_shapes() -> None:
    for servers in range(2, 10):
        for devices in range(1, 9):
            check(REDUCE, servers, devices, "ring", 128 * servers, in_slices(rings.ring_all_reduce))
            check(SCATTER, servers, devices, "NHR", SIZE, trees.nhr_reduce_scatter)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_all_reduce_of_910a(ranks: int, dtype: str) -> None:
    """coll_all_reduce_smallcount_for_910_executor.cc:66 Orchestrate, :109 KernelRun."""
    name = "AllReduceSmallCountFor910"
    assert FIDELITY[name].is_same
    op, where = op_of("all_reduce", 333, dtype), topology_of(ranks, preset="atlas-800-9000")
    program = recorded(name, op, where, 1 << 20)
    assert program.streams == 1
    wanted = run(small_counts.doubling, ranks, rdma=False, whole=Slice(0, 333 * op.unit))
    assert [events_of(program, rank).get(0, []) for rank in range(ranks)] == wanted


def _several(name: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """A ring between servers."""
    form, is_reduce = form_of(at), name == REDUCE
    servers, power = form.all_servers, form.devices & (form.devices - 1) == 0
    subs = (0 if power else form.devices - 1) if is_reduce else int(power)
    size = 128 * servers if is_reduce else SIZE

    def streams(rank: int) -> list[list[Event]]:
        me = OnServers(rank, servers, form.devices, subs, form.joined)
        if is_reduce:
            small_counts.all_reduce(me, size, in_slices(rings.ring_all_reduce))
        else:
            small_counts.reduce_scatter(me, size, rings.ring_reduce_scatter)
        return me.streams

    op = op_of("all_reduce" if is_reduce else "reduce_scatter", size // 4, mode=mode)
    yield Held(replace(op, level1="ring"), streams)


def _of_910a(_: str, at: Topology, mode: Mode) -> Iterator[Held]:
    op = op_of("all_reduce", 333, "int64", mode=mode)
    wanted = run(small_counts.doubling, at.size, rdma=False, whole=Slice(0, op.size))
    yield Held(op, lambda rank: [wanted[rank]])


HELD: Holders = {REDUCE: _several, SCATTER: _several, "AllReduceSmallCountFor910": _of_910a}
