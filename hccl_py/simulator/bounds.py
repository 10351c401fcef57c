"""Lower bounds: times that no algorithm beats on a machine, by latency and by bandwidth.

    time >= latency + bandwidth

Latency: a rank that receives anything waits for one Ack or, over RDMA, for one DataSignal at least,
so one α, that of its nearest peer. More than one is needed only where a rank can hear one peer at a
time; `log_us` is that bound, ⌈log2 p⌉·α. It is no bound here: a rank has many streams, and an
all-gather over a mesh takes one α.

Bandwidth: the bytes that must enter or leave a rank, or a part of the machine, over what its links
let through. Over SDMA no data moves in the first α, over RDMA none in the last, so both add up; but
not on networks whose links may carry both. γ and local copies do not count.

A rank has the links that end at it, and a part of the machine those that lead there. Uncontended
times of tasks may be below, as flows do not share links then; a total is no less than what
`load.busiest_us` says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hccl_py.call.op_param import OpParam
from hccl_py.clocks.cost import CostModel
from hccl_py.clocks.links import Links
from hccl_py.program.transports import OWN_NOTIFIES, Transports
from hccl_py.simulator.demands import Demand, demand_of
from hccl_py.topology.networks import Cut, network_of
from hccl_py.topology.topology import Topology
from hccl_py.values import Floats, IntArray

EVERY_RANK = 1024
"""Up to so many ranks every one is looked at."""

SOME_RANKS = 16
"""Of more ranks so many are, evenly spaced; the others are taken to be no better connected."""

PAIRS_AT_ONCE = 1 << 18


@dataclass(frozen=True)
class Bound:
    """A time that no algorithm beats, in µs, and the words for its bottleneck.

    `log_us` is the latency where a rank hears one peer at a time: ⌈log2 p⌉·α for collectives.
    """

    latency_us: float
    log_us: float
    bandwidth_us: float
    binds: str

    @property
    def time_us(self) -> float:
        """The least time."""
        return self.latency_us + self.bandwidth_us


def lower_bound(op: OpParam, topology: Topology, cost: CostModel) -> Bound:
    """Return the time that no algorithm beats for a call on a machine without stragglers.

    For many calls on one machine make its `MachineLimits` once.
    """
    return MachineLimits.of(topology, cost).bound(op)


@dataclass(frozen=True, eq=False)
class MachineLimits:
    """Rates and latencies of a machine that bound its calls.

    `alpha_us` is the α of the nearest peer and `gbps` what goes in, and as much out, of the ranks
    `looked_at`; `total` is what goes into all ranks together. `cuts` are parts of the machine.
    `adds_up` says that no link moves data for as long as α.
    """

    ranks: int
    looked_at: IntArray
    alpha_us: Floats
    gbps: Floats
    total: float
    cuts: tuple[Cut, ...] = ()
    adds_up: bool = True

    @staticmethod
    def of(topology: Topology, cost: CostModel) -> MachineLimits:
        """Look at the links of a topology."""
        p = topology.size
        if p == 1:
            nothing = np.zeros(1)
            return MachineLimits(1, np.arange(1), nothing, nothing, 0.0)
        looked_at = np.arange(p)
        if p > EVERY_RANK:
            looked_at = np.unique(np.linspace(0, p - 1, SOME_RANKS).astype(np.int64))
        alpha = _neighbours(Links(topology, cost), looked_at)
        joined = network_of(topology, cost)
        ports = joined.groups(cost)[0].gbps
        cuts = tuple(cut for cut in joined.cuts(cost) if 1 < cut.inside.sum() < p - 1)
        gbps, total = ports[looked_at], float(ports.sum())
        adds_up = topology.network is None or not topology.has_rdma
        return MachineLimits(p, looked_at, alpha, gbps, total, cuts, adds_up)

    def bound(self, op: OpParam) -> Bound:
        """Return the lower bound of one call."""
        if self.ranks == 1:
            return Bound(0.0, 0.0, 0.0, "nothing: there is one rank")
        demand = demand_of(op, self.ranks)
        hears = (demand.enter > 0)[self.looked_at] | (op.name == "barrier")
        latency = float(self.alpha_us[hears].max(initial=0.0))
        steps = math.ceil(math.log2(self.ranks)) if demand.is_collective else 1
        least = float(self.alpha_us[hears].min()) if hears.any() else 0.0
        spent, binds = max(self._bandwidths(demand))
        if not self.adds_up:
            spent = max(spent - latency, 0.0)
        return Bound(latency, steps * least, spent, binds if spent else "latency alone")

    def _bandwidths(self, demand: Demand) -> Iterator[tuple[float, str]]:
        """Yield the least times of the bytes, in µs, each with its place."""
        for wanted, way in ((demand.enter, "into"), (demand.leave, "out of")):
            spent = wanted[self.looked_at] / self.gbps * 1e-3
            worst = int(spent.argmax())
            yield float(spent[worst]), f"what goes {way} rank {self.looked_at[worst]}"
        yield demand.total / self.total * 1e-3, "what goes into all ranks together"
        for cut in self.cuts:
            yield demand.into(cut.inside) / cut.gbps * 1e-3, f"what goes into {cut.name}"
            yield demand.into(~cut.inside) / cut.gbps * 1e-3, f"what goes out of {cut.name}"


def _neighbours(links: Links, ranks: IntArray) -> Floats:
    """Return the α of the nearest peer of some ranks."""
    assert links.topology is not None
    at_once = max(1, PAIRS_AT_ONCE // links.topology.size)
    parts = [
        _of_pairs(links, links.topology, ranks[first : first + at_once])
        for first in range(0, len(ranks), at_once)
    ]
    return np.concatenate(parts)


def _of_pairs(links: Links, topology: Topology, ranks: IntArray) -> Floats:
    here = np.repeat(ranks, topology.size)
    peer = np.tile(np.arange(topology.size), len(ranks))
    here, peer = here[here != peer], peer[here != peer]
    alphas = []
    for source, target in ((peer, here), (here, peer)):
        found = links.classes(_ends(topology, source, target))
        alphas.append(found.alpha_us[found.of_end].reshape(len(ranks), -1).min(axis=1))
    nearest: Floats = np.minimum(*alphas)
    return nearest


def _ends(topology: Topology, rank: IntArray, peer: IntArray) -> Transports:
    """Return transports from ranks to peers."""
    nothing = np.zeros(len(rank), np.int64)
    kind = topology.link_kinds(rank, peer)
    cells = np.full(len(rank), OWN_NOTIFIES, np.int16)
    exports = np.zeros((len(rank), 2), np.int8)
    return Transports(("flat",), rank, peer, nothing, kind, nothing, exports, cells)
