"""Executors that are held against models of HCCL's, and where.

A module that has models says in HELD of which executors, and in which calls:

    HELD: Holders = {"AllGatherMeshExecutor": of_meshes}

A holder is given an executor's name, a topology and a mode, and yields calls together with what
HCCL's ranks do in them. It compares nothing itself: test_held.py does, for every mode and at every
shape below at which HCCL's selection may come to the executor, where that runs and is `same`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Any, Literal, NamedTuple

from hccl_executors import EXECUTORS
from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.enums import Mode
from hccl_py.plugins.executor import Executor, declarations_of, ops_of, situations_of
from hccl_py.program.program import Program
from hccl_py.selection.gathering import gather_facts
from hccl_py.selection.rulesets import RULESETS
from hccl_py.topology import PRESETS, Topology
from tests.executors.fidelity.recorded import events_of
from tests.executors.fidelity.transports import Event, landed
from tests.recording import filled, op_of, recorded


class Held(NamedTuple):
    """A call of an executor, what a rank of HCCL's does in it, stream by stream, and the bytes of a
    CCL buffer. `folded` are the bytes of buffers that lie one behind the other in our scratch, if
    they do; `seen` is what streams are compared as.
    """

    op: OpParam
    model: Callable[[int], list[list[Any]]]
    ccl: int = 1 << 20
    folded: int = 0
    seen: Callable[[list[list[Event]]], list[list[Any]]] = list


Holder = Callable[[str, Topology, Mode], Iterator[Held]]
Holders = Mapping[str, Holder]

EXECUTOR = {executor.__name__: executor for executor in EXECUTORS}
SAME = sorted(name for name, executor in EXECUTOR.items() if executor.fidelity.is_same)


def compare(name: str, topology: Topology, call: Held) -> Program:
    """Compare every stream of every rank; streams that nobody uses may be left out."""
    op, product = call.op, topology.product
    program = recorded(name, op, topology, call.ccl)
    lands = op.reduce is not None and not product.reduces_over_rdma(op.dtype, op.reduce)
    for rank in range(topology.size):
        found, wanted = events_of(program, rank), call.model(rank)
        if lands:
            wanted = [landed(stream) for stream in wanted]
            found = {stream: landed(events) for stream, events in found.items()}
        streams = max(program.streams, len(wanted))
        ours = call.seen([_folded(found.get(k, []), call.folded) for k in range(streams)])
        assert ours == wanted + [[]] * (streams - len(wanted)), f"rank {rank} of {topology}"
    return program


def _folded(events: list[Event], size: int) -> list[Event]:
    """Count places from where the buffer begins in scratch."""
    if not size:
        return events
    found: list[Event] = []
    for event in events:
        if event[0] in ("post", "wait"):
            found.append(event)
        else:
            kind, peer, *places, moved = event
            found.append((kind, peer, *dict.fromkeys(place % size for place in places), moved))
    return found


def _alike(ranks: int, most: int) -> tuple[int, ...]:
    """Servers alike of up to so many devices that have so many ranks."""
    devices = max(n for n in range(1, most + 1) if ranks % n == 0)
    return (devices,) * (ranks // devices)


def _plain(preset: str, *servers: tuple[int, ...]) -> list[Topology]:
    return [Topology(PRESETS[preset], found) for found in servers]


def _pods(*shapes: tuple[int, int, int]) -> list[Topology]:
    """Superpods of servers of devices."""
    a3 = PRESETS["atlas-900-a3"]
    return [Topology(a3, (d,) * p * s, (s,) * p) for p, s, d in shapes]


UP_TO_20 = range(1, 21)
SHAPES = {
    "910B": _plain(
        "atlas-800t-a2",
        *(_alike(ranks, 8) for ranks in UP_TO_20),
        *((1,) * 2, (2,) * 2, (3,) * 2, (2,) * 3, (1,) * 5, (4,) * 2, (2,) * 4, (8,) * 3, (8,) * 4),
    )
    + _plain("atlas-200t-a2-box16", (8, 8), (2, 2, 2, 2), (8, 8, 8, 8)),
    "910_93": _pods(*((1, len(found), found[0]) for found in (_alike(n, 16) for n in UP_TO_20)))
    + _pods((1, 2, 2), (1, 2, 3), (1, 2, 4), (1, 3, 4), (1, 2, 8), (1, 2, 16))
    + _pods((2, 1, 2), (2, 1, 4), (2, 2, 1), (2, 2, 3), (2, 2, 4), (3, 2, 2), (2, 1, 16))
    + _plain("atlas-900-a3", (4, 2), (8, 4)),
    "910A": _plain("atlas-800-9000", (1,), (2,), (4,), (8,), (4, 4), (8, 8), (8, 8, 8)),
    "310P3": _plain("300i-duo", *((ranks,) for ranks in UP_TO_20), (1, 1), (2, 2), (4, 4, 4)),
}
"""1 to 20 ranks on every product, and what it is sold as: servers of 8, of 16, of two modules of 8,
several of them, superpods.
"""


class Form(NamedTuple):
    """Superpods of servers of devices, all alike; `joined` numbers what SDMA reaches, by rank."""

    pods: int
    servers: int
    devices: int
    joined: tuple[int, ...]

    @property
    def all_servers(self) -> int:
        """Those of all superpods."""
        return self.pods * self.servers

    @property
    def is_plain(self) -> bool:
        """Whether links between servers are all of one kind, which only a ring does without."""
        return len(set(self.joined)) in (1, self.all_servers)


def rings_of(form: Form) -> int:
    """Rings of a server of A3: two where it has whole packages, more than one of them."""
    return 2 if form.devices > 2 and form.devices % 2 == 0 else 1


MODULES = {"atlas-200t-a2-box16": 2}
"""PCIe joins the modules of a host, and HCCS the servers of a superpod."""


def joined_ranks(topology: Topology) -> tuple[int, ...]:
    """Return for every rank the number of the host, or the superpod, inside which SDMA reaches."""
    modules, product = iter(topology.servers), topology.product
    if product.superpod_servers:
        groups = [sum(islice(modules, servers)) for servers in topology.superpods]
    else:
        in_host = MODULES.get(product.name, 1)
        groups = [sum(islice(modules, in_host)) for _ in range(len(topology.servers) // in_host)]
    return tuple(number for number, ranks in enumerate(groups) for _ in range(ranks))


def joined_on_a_plane(topology: Topology) -> tuple[int, ...]:
    """The same on a plane of all ranks. HCCL takes one kind of links for all of a plane: RDMA, as
    soon as two ranks need it (impl/topo_matcher.cc:214, GetIsUsedRdma; :250, SetIsUsedRdma).
    """
    joined = joined_ranks(topology)
    return joined if len(set(joined)) == 1 else tuple(range(topology.size))


def form_of(topology: Topology) -> Form:
    """Take a topology of servers alike apart."""
    [devices] = set(topology.servers)
    pods = len(topology.superpods) if topology.product.superpod_servers else 1
    return Form(pods, len(topology.servers) // pods, devices, joined_ranks(topology))


UNNAMED = {
    "AllGatherMixExecutor": "910B",
    "AllReduceMixExecutor": "910B",
    "ReduceScatterMixExecutor": "910B",
    "BatchSendRecvGroup": "910B",
    "AllReduceReducePlusBcast": "310P3",
    "AllGatherHccsSioExecutor": "910_93",
    "ReduceScatterHccsSioExecutor": "910_93",
}
"""What HCCL takes where no row says so: for devices of two kinds in one communicator, between
HcclGroupStart and HcclGroupEnd, for two dies of a package, and for cards of 310P.
"""

ASKED = ("", *(f"level0:{word};level1:ring" for word in ("NA", "ring", "fullmesh", "pairwise")))
"""What users may say in HCCL_ALGO."""

_COUNTED = ("ranks", "servers", "modules", "superpods", "devices", "device_total", "pod_ranks")
_SHAPED = ("single_mesh", "one_plane", "devices_in_fours", "duo", "duo_pairs", "back_to_back")
_EVEN = ("uneven_servers", "uneven_pods", "uneven_pod_devices", "symmetric")
STRUCTURE = {*_COUNTED, *_SHAPED, *_EVEN, "ranks_are_power", "servers_are_power", "mode", "level0"}
"""What a row may say of a topology, besides what it says of data and settings."""


RulesetName = Literal["cann-2025.07", "cann-2026.08"]
RULESET_NAMES: tuple[RulesetName, ...] = ("cann-2026.08", "cann-2025.07")
"""The newest first."""


@cache
def _reached(ruleset: RulesetName, op: str, topology: Topology, mode: Mode) -> frozenset[str]:
    """The executors that some row names for a topology, whatever the data and most settings."""
    found, call = set(), filled(op_of(op, mode=mode), topology.size)
    for algo in ASKED:
        facts = gather_facts(call, topology, Config(algo=algo, ruleset=ruleset))
        for row in RULESETS[ruleset].rows(topology.product.device, op):
            if all(cell.holds(facts) for cell in row.when if cell.fact in STRUCTURE):
                found.add(row.executor or "")
                if all(cell.fact in STRUCTURE for cell in row.when):
                    break
    return frozenset(found)


@cache
def _newest(name: str) -> RulesetName | None:
    """The newest ruleset that names an executor; none if there is none."""
    for ruleset in RULESET_NAMES:
        for table in RULESETS[ruleset].tables.values():
            if any(row.executor == name for rows in table.values() for row in rows):
                return ruleset
    return None


def is_reached(name: str, topology: Topology, mode: Mode) -> bool:
    """Whether HCCL's selection may come to an executor there."""
    ruleset, ops = _newest(name), ops_of(EXECUTOR[name]())
    return ruleset is not None and any(name in _reached(ruleset, op, topology, mode) for op in ops)


def shapes_of(name: str) -> list[tuple[Topology, Mode]]:
    """Where an executor is held: the shapes and modes in which HCCL may come to it, where it runs,
    and says that it does what HCCL does.
    """
    if name in UNNAMED:
        shapes = [at for at in SHAPES[UNNAMED[name]] if at.product.modules == 1]
        pairs = [(topology, mode) for topology in shapes if topology.size > 1 for mode in Mode]
    else:
        shapes = [topology for found in SHAPES.values() for topology in found]
        pairs = [(at, mode) for at in shapes for mode in Mode if is_reached(name, at, mode)]
    return [(topology, mode) for topology, mode in pairs if is_same(name, topology, mode)]


def is_same(name: str, topology: Topology, mode: Mode) -> bool:
    """Whether an executor runs calls there, and does what HCCL does in them."""
    executor = EXECUTOR[name]()
    first = ops_of(executor)[0]
    call = filled(replace(op_of(first, mode=mode), level1="ring"), topology.size)
    calls = (call, replace(call, deterministic=True))
    return any(_does(executor, op, topology) for op in calls)


def _does(executor: Executor, op: OpParam, topology: Topology) -> bool:
    cases = [word for word in op.words.values() if word]
    same = (
        declarations_of(executor)
        .fidelity.limited_to(executor.algorithm)
        .among([*cases, *situations_of(op, topology)])
        .is_same
    )
    return same and bool(executor.suits(op, topology))
