"""α and β of every transport: by the sort of link, or by the route through a network.

Transports with the same costs are one class; simulations look up durations by class.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_py.clocks.carried import carried, posted
from hccl_py.clocks.cost import CostModel, LinkCost, per_byte
from hccl_py.clocks.engines import engine_of
from hccl_py.clocks.stragglers import EVEN, Stragglers
from hccl_py.errors import LostLinkError, ParameterError
from hccl_py.program.program import Program
from hccl_py.program.transports import Transports
from hccl_py.topology.networks import Network, ProductNetwork, Routes, network_of
from hccl_py.topology.networks.network import OUT, SWITCHED, Ports
from hccl_py.topology.networks.product import HCCS, MEDIA, ROCE
from hccl_py.topology.topology import Topology
from hccl_py.values import Floats, IntArray

Bools = npt.NDArray[np.bool_]

_AT_ONCE = 1 << 16
"""Transports whose routes are computed together."""

_NAMED = 8
"""Neighbours of a node that an error names."""

_TABLE = 4
"""Pairs of nodes for each use of a link up to which a table of all pairs beats sorting."""


@dataclass(frozen=True, eq=False)
class LinkClasses:
    """`of_end` has the class of every transport end. A class has a sort of links (a place in
    MEDIA), α and the start of a transfer in µs, and β in µs per byte of what is pulled, and of what
    is pushed; `device_us` is the β of all flows of its sort at a device, 0 where they share none.
    """

    of_end: npt.NDArray[np.int32]
    medium: npt.NDArray[np.int8]
    alpha_us: Floats
    read_us: Floats
    write_us: Floats
    start_us: Floats
    device_us: Floats
    is_rdma: npt.NDArray[np.bool_]

    @property
    def beta_us(self) -> Floats:
        """β of the faster way: a link is no faster than that."""
        return np.minimum(self.read_us, self.write_us)


@dataclass(frozen=True, eq=False)
class Links:
    """The links of a topology as a cost model and what is slow say; without a topology, as where
    programs come from files, SDMA is HCCS and RDMA is RoCE. `efficiency` is the share of data in
    what goes over them.
    """

    topology: Topology | None
    cost: CostModel
    slow: Stragglers = EVEN
    efficiency: float = 1.0

    @staticmethod
    def of(
        program: Program, topology: Topology | None, cost: CostModel, slow: Stragglers = EVEN
    ) -> Links:
        """Return the links as a program's protocol and engine use them; LostLinkError where one
        that is lost is needed.
        """
        efficiency = cost.protocols.of(program.protocol).efficiency
        own = cost.run_by(program.protocol, engine_of(program, topology))
        links = Links(topology, own, slow.slow, efficiency)
        if slow.lost:
            links._check_lost(program, Stragglers(links=slow.lost))
        return links

    @cached_property
    def network(self) -> Network:
        """The network of the topology; ValueError where there is none."""
        if self.topology is None:
            raise ValueError("links of a program without a topology have no network")
        return network_of(self.topology, self.cost)

    def classes(self, transports: Transports) -> LinkClasses:
        """Return the classes of all transport ends."""
        if self.topology is None:
            media = np.where(transports.is_rdma, ROCE, HCCS).astype(np.int8)
            return self._by_media(media, np.zeros(len(media), np.bool_))
        network, rank, peer = self.network, transports.rank, transports.peer
        if isinstance(network, ProductNetwork) and not self.slow.links:
            media = network.media(rank, peer, ports_of(self.topology, transports))
            return self._by_media(media, self.topology.server[rank] != self.topology.server[peer])
        return self._by_route(transports)

    def capacities(self, links: IntArray) -> Floats:
        """Return the GB/s of data on links, slow ones included; inf for those that never fill."""
        gbps = self.network.rates(links, self.cost).gbps
        source, target = self.network.ends(links)
        data = np.where(source == target, 1.0, self.efficiency)  # memory has no flags
        return np.asarray(gbps / self._slow_links.factors(links) * data)

    def routes(self, transports: Transports, ends: IntArray) -> Routes:
        """Return the routes of what ends send."""
        rank, peer = transports.rank[ends], transports.peer[ends]
        return self.network.routes(rank, peer, self._ports(transports)[ends])

    def _ports(self, transports: Transports) -> Ports:
        if self.topology is None:
            raise ValueError("links of a program without a topology have no ports")
        return ports_of(self.topology, transports)

    def _check_lost(self, program: Program, lost: Stragglers) -> None:
        """Raise LostLinkError if anything goes over links that are lost; what goes over several of
        them counts once.
        """
        size, posts = carried(program), posted(program)
        ends = np.flatnonzero(size + posts)
        alone = [Stragglers(links=(link,)) for link in lost.links]
        used = [link for link in alone if self._share_over(program, ends, link).any()]
        if not used:
            return
        found = Stragglers(links=tuple(link.links[0] for link in used))
        share = self._share_over(program, ends, found)
        over, signals = round((size[ends] * share).sum()), round(posts[ends][share > 0].sum())
        what = f"{over} bytes" if over else f"{signals} posts"
        names = ", ".join(f"{one}-{other}" for one, other, _ in found.links)
        options = " ".join(f"--slow {text}" for text in found.options())
        raise LostLinkError(
            f"Link {names} is lost: the call has no end, since {what} go over it."
            if len(used) == 1
            else f"Links {names} are lost: the call has no end, since {what} go over them.",
            f"`compare {options}` times the executors that do without.",
            what=what,
            size=over,
        )

    def _share_over(self, program: Program, ends: IntArray, lost: Stragglers) -> Floats:
        """Return the share of what each end sends that goes over any of the lost links."""
        transports, found = program.transports, _SlowLinks.of(lost, self.network)
        if not len(ends):
            return np.zeros(0)
        routes = self.routes(transports, ends)
        on_way = np.isinf(found.factors(routes.link)) * routes.shares
        share = np.add.reduceat(on_way, routes.first[:-1])
        share += np.isinf(found.of_pairs(transports.rank[ends], transports.peer[ends]))
        return np.minimum(share, 1.0)

    @cached_property
    def _slow_links(self) -> _SlowLinks:
        return _SlowLinks.of(self.slow, self.network)

    @cached_property
    def _of_sorts(self) -> Floats:
        """α, α far away, β of reads, β of writes, start and device β of each sort of links."""
        rows = []
        for name in MEDIA:
            link: LinkCost = getattr(self.cost, name)
            far = link.alpha_us if link.far_alpha_us is None else link.far_alpha_us
            betas = [self.cost.alone_us(name, reads=reads) for reads in (True, False)]
            betas.append(per_byte(link.device_gbps))
            read, write, device = (beta / self.efficiency for beta in betas)
            rows.append((link.alpha_us, far, read, write, link.start_us, device))
        return np.array(rows).T

    def _by_media(self, media: npt.NDArray[np.int8], far: Bools) -> LinkClasses:
        """Return a class for each sort of links, and further ones for those that leave servers
        where their α is another one.
        """
        alpha, far_alpha, read, write, start, device = self._of_sorts
        of_end, medium = media.astype(np.int32), np.arange(len(MEDIA), dtype=np.int8)
        if (far_alpha != alpha).any():
            of_end, medium = of_end + len(MEDIA) * far, np.tile(medium, 2)
            alpha = np.concatenate([alpha, far_alpha])
        rest = np.array([read, write, start, device])[:, medium]
        has_ub = self.topology is not None and self.topology.product.has_ub
        is_rdma = (medium == ROCE) & (not has_ub)
        return _classes(of_end, medium, np.array([alpha, *rest]), is_rdma)

    def _by_route(self, transports: Transports) -> LinkClasses:
        """Return classes by what routes cost: α is that of the sort of link, and what the links
        add; β is that of the slowest link, by the share of the data that takes it.
        """
        parts = [
            self._costs(transports, np.arange(first, min(first + _AT_ONCE, len(transports))))
            for first in range(0, len(transports), _AT_ONCE)
        ]
        costs = np.concatenate(parts, axis=1) if parts else np.zeros((6, 0))
        costs[2] = costs[2, transports.far]  # what is pulled takes the route of the other end
        first, of_end = _alike(*costs, transports.is_rdma)
        is_rdma = transports.is_rdma[first]
        return _classes(of_end, costs[0, first], costs[1:, first], is_rdma)

    def _costs(self, transports: Transports, ends: IntArray) -> Floats:
        """Return the sort of link of some transport ends, α, both β, the start and the device β."""
        routes = self.routes(transports, ends)
        rank, peer = transports.rank[ends], transports.peer[ends]
        media, is_far = np.full(len(ends), HCCS, np.int8), np.zeros(len(ends), np.bool_)
        network, ports = self.network, self._ports(transports)[ends]
        if isinstance(network, ProductNetwork):
            media = network.media(rank, peer, ports)
            is_far = network.topology.server[rank] != network.topology.server[peer]
        media[ports == OUT] = ROCE
        near, far, read, write, start, device = self._of_sorts[:, media]
        alpha = np.where(is_far, far, near)
        used, place = numbered(routes.link, network.nodes)
        rates, slow = network.rates(used, self.cost), self._slow_links.factors(used)
        first = routes.first[:-1]
        if routes.share is None:
            alpha = alpha + np.add.reduceat(rates.latency_us[place], first)
        else:
            alpha = alpha + network.latency_us(rank, peer, ports, self.cost)
        of_pair = self._slow_links.of_pairs(rank, peer)
        factor = np.maximum.reduceat(slow[place], first) * of_pair
        if not isinstance(network, ProductNetwork):
            betas = (1e-3 / rates.gbps * slow)[place] * routes.shares
            beta = np.maximum.reduceat(betas, first) / self.efficiency * of_pair
            none = np.zeros(len(ends))
            return np.stack([media, alpha * factor, beta, beta, start * factor, none])
        # On any link of a product a flow is one port wide.
        return np.stack([media, *np.array([alpha, read, write, start, device]) * factor])


def _classes(
    of_end: npt.NDArray[Any], medium: npt.NDArray[Any], columns: Floats, is_rdma: Bools
) -> LinkClasses:
    """Return classes with these rows: α, both β, the start, the device β."""
    alpha, read, write, start, device = columns
    place = of_end.astype(np.int32)
    return LinkClasses(place, medium.astype(np.int8), alpha, read, write, start, device, is_rdma)


def ports_of(topology: Topology, transports: Transports) -> Ports:
    """Return the port at which each end's data leaves its rank: RDMA by that of RoCE; where there
    is a Clos network, transports of the plane level1 by the port to it; those of hccs by its
    switch.
    """
    of_plane = np.array([SWITCHED * (name == "hccs") for name in transports.planes], np.int8)
    ports = of_plane[transports.plane]
    out = transports.is_rdma
    if topology.product.has_ub:
        numbers = [k for k, name in enumerate(transports.planes) if name == "level1"]
        out = np.isin(transports.plane, numbers)
    ports[out] = OUT
    return ports


def numbered(link: IntArray, nodes: int) -> tuple[IntArray, IntArray]:
    """Return the links that are used, in order, and for each entry its place among them."""
    if nodes * nodes > _TABLE * len(link):
        numbers, place = np.unique(link, return_inverse=True)
        return numbers, place.reshape(-1)
    table = np.zeros(nodes * nodes, np.int64)
    table[link] = 1
    numbers = np.flatnonzero(table)
    table[numbers] = np.arange(len(numbers))
    return numbers, table[link]


def _alike(*columns: npt.NDArray[Any]) -> tuple[IntArray, IntArray]:
    """Group rows that are equal in all columns, in the order of the columns: return a row of each
    group, and the group of every row. Columns one by one are sorted faster than whole rows.
    """
    group = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, place = np.unique(column, return_inverse=True)
        group = group * len(values) + place.reshape(-1)
    _, first, of_row = np.unique(group, return_index=True, return_inverse=True)
    return first, of_row.reshape(-1)


@dataclass(frozen=True, eq=False)
class _SlowLinks:
    """Factors of links that exist, by number, and of pairs of ranks that none joins directly."""

    links: tuple[tuple[int, float], ...]
    pairs: tuple[tuple[int, int, float], ...]

    @staticmethod
    def of(slow: Stragglers, network: Network) -> _SlowLinks:
        """Find the two ends of every slow link; ParameterError where there is none."""
        links, pairs = [], []
        rank_of = {node: rank for rank, node in enumerate(network.rank_nodes.tolist())}
        for one, other, factor in slow.links:
            ways = list(permutations((network.node(one), network.node(other))))
            if any(network.joins(*way) for way in ways):
                both = network.number(*np.array(ways).T)
                links += [(int(number), factor) for number in both]
            elif ways[0] != ways[1] and rank_of.keys() >= set(ways[0]):
                pairs += [(rank_of[a], rank_of[b], factor) for a, b in ways]
            else:
                names = ", ".join(network.joined_names(one)[:_NAMED])
                raise ParameterError(
                    f"--slow link={one}-{other}: {network.name} has no such link.",
                    f"Name two ranks, or two nodes that a link joins: {one} and one of {names}.",
                )
        return _SlowLinks(tuple(links), tuple(pairs))

    def factors(self, links: IntArray) -> Floats:
        """Return the factor of each link."""
        found = np.ones(len(links))
        for number, factor in self.links:
            found[links == number] *= factor
        return found

    def of_pairs(self, rank: IntArray, peer: IntArray) -> Floats:
        """Return the factor of each pair that no link joins."""
        found = np.ones(len(rank))
        for a, b, factor in self.pairs:
            found[(rank == a) & (peer == b)] *= factor
        return found
