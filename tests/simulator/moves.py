"""Data tasks that all start at once, and networks that are nothing but tests."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType
from hccl_py.plugins.executor import PlaneRequest, ResourceRequest
from hccl_py.program.program import Program
from hccl_py.simulator import CostModel, LinkCost
from hccl_py.topology import Topology
from hccl_py.topology.networks import Network, Rates, Routes
from hccl_py.topology.networks.network import Ports
from hccl_py.topology.presets import PRESETS
from hccl_py.values import IntArray
from tests.recording import recorded

PLAIN = CostModel(
    name="plain",
    hccs=LinkCost(alpha_us=1.0, gbps=1.0),
    sio=LinkCost(alpha_us=1.0, gbps=4.0),
    pcie=LinkCost(alpha_us=1.0, gbps=1.0),
    roce=LinkCost(alpha_us=1.0, gbps=1.0),
    reduce_gbps=None,
    copy_gbps=None,
)
"""A kB takes a µs on every link but SIO."""


class Move(NamedTuple):
    """A rank reads from a peer, writes to it, or copies in its own memory (`peer` is the rank)."""

    rank: int
    peer: int
    kb: int
    writes: bool = False


class Moves:
    """Every move on a stream of its own; with `on_main` those of a rank one after the other."""

    op = "all_gather"
    algorithm = "level0:mesh"

    def __init__(self, moves: Sequence[Move], *, on_main: bool = False) -> None:
        self.moves, self.on_main = moves, on_main

    def suits(self, op: Any, topology: Any) -> bool:
        return True

    def resources(self, op: Any, rank: Any) -> ResourceRequest:
        return ResourceRequest((PlaneRequest("flat", "mesh"),), sub_streams=len(self.moves))

    def orchestrate(self, op: Any, rank: Any) -> None:
        for sub, (who, peer, kb, writes) in zip(rank.subs, self.moves, strict=True):
            if rank.id == who:
                stream = rank.main if self.on_main else sub
                here, there = rank.ccl_in.head(kb * 1000), rank.ccl_out.head(kb * 1000)
                if peer != who:
                    there = rank.flat[peer].remote(there)
                stream.copy(*((there, here) if writes else (here, there)))


def moving(moves: Sequence[Move], topology: Topology, *, on_main: bool = False) -> Program:
    """Return a program of moves; nothing synchronises them."""
    op = OpParam("all_gather", 1, DataType.INT8)
    return recorded(Moves(moves, on_main=on_main), op, topology, 1 << 24)


class Tangle(Network):
    """Routes over any of a few links, each with a rate of its own, however they may join; with
    `spread`, any part of the data goes over each link.
    """

    def __init__(
        self, ranks: int, gbps: Sequence[float], seed: int, *, spread: bool = False
    ) -> None:
        self.name, self.ranks, self.nodes = "tangle", ranks, ranks + len(gbps)
        self.gbps, self.seed, self.spread = np.array(gbps), seed, spread

    def routes(self, source: IntArray, target: IntArray, ports: Ports) -> Routes:
        """A random choice of links for each pair, at least one."""
        first, links, shares = [0], [], []
        for a, b in zip(source.tolist(), target.tolist(), strict=True):
            random = np.random.default_rng([self.seed, a, b])
            count = random.integers(1, len(self.gbps) + 1)
            chosen = self.ranks + random.permutation(len(self.gbps))[:count]
            links += [int(number) for number in self.number(chosen, chosen)]
            shares += random.choice([1.0, 0.5, 1 / 3, 0.01, random.random()], count).tolist()
            first.append(len(links))
        share = np.array(shares) if self.spread else None
        return Routes(np.array(first), np.array(links, np.int64), share)

    def rates(self, links: IntArray, cost: CostModel) -> Rates:
        """Links have the rates given; memory has the cost model's."""
        node = self.ends(links)[0]
        memory = np.inf if cost.memory_gbps is None else cost.memory_gbps
        gbps = np.concatenate([np.full(self.ranks, memory), self.gbps])
        return Rates(gbps[node], np.zeros(len(links)))

    def groups(self, cost: CostModel) -> list[Any]:
        """No cuts."""
        return []

    def joins(self, source: int, target: int) -> bool:
        """No two nodes are joined."""
        return False

    @property
    def topology(self) -> Topology:
        """All ranks in one server of a mesh, joined by this network."""
        ranks = np.arange(self.ranks)
        return Topology.placed(PRESETS["mesh"], ranks * 0, ranks, network=self)
