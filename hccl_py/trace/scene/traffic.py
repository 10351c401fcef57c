"""Traffic between ranks, and the load of links over time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_py.enums import RDMA_WRITES, READS
from hccl_py.simulator.timeline import Timeline
from hccl_py.topology.networks import Routes
from hccl_py.trace.scene.model import LinkLoad, Traffic
from hccl_py.values import Floats, IntArray, count_up

SPANS = 256
"""Equal parts of the total by which load is given."""

MOST_LINKS = 4096

_AT_ONCE = 1 << 20
"""Tasks times hops that are spread over time together."""


def traffic_of(timeline: Timeline, reached: IntArray, total_us: float) -> Traffic:
    """Add up what ranks send each other in the rows that are reached."""
    program = timeline.program
    moves = _Transfers.of(timeline, reached)
    rank, peer = program.transports.rank[moves.sender], program.transports.peer[moves.sender]
    pair = rank.astype(np.int64) * program.ranks + peer
    classes = timeline.links.classes(program.transports)
    busy = moves.size * classes.beta_us[classes.of_end[moves.sender]]
    pairs, place = np.unique(pair, return_inverse=True)
    share = np.bincount(place.reshape(-1), busy, len(pairs)) / (total_us or 1.0)
    return Traffic(
        (pairs // program.ranks).astype(np.int32),
        (pairs % program.ranks).astype(np.int32),
        _added(place.reshape(-1), moves.size, len(pairs)),
        share.astype(np.float64),
    )


def link_load(timeline: Timeline, reached: IntArray, total_us: float) -> LinkLoad | None:
    """Spread every transfer of the rows that are reached over its route and its time; None without
    a topology.
    """
    links = timeline.links
    if links.topology is None:
        return None
    moves = _Transfers.of(timeline, reached)
    senders, way = np.unique(moves.sender, return_inverse=True)
    routes = links.routes(timeline.program.transports, senders)
    sent = _added(way.reshape(-1), moves.size, len(senders))
    used, place = np.unique(routes.link, return_inverse=True)
    over = np.repeat(sent, np.diff(routes.first))
    if routes.share is None:
        carried = _added(place.reshape(-1), over, len(used))
    else:
        spread = np.bincount(place.reshape(-1), over * routes.share, len(used))
        carried = np.rint(spread).astype(np.int64)
    gbps = links.capacities(used)
    share = carried / (gbps * 1e3 * (total_us or 1.0))
    shown = np.sort(np.lexsort((used, -carried, -share))[:MOST_LINKS])
    source, target = links.network.ends(used[shown])
    name = links.network.node_name
    return LinkLoad(
        tuple((name(a), name(b)) for a, b in zip(source.tolist(), target.tolist(), strict=True)),
        gbps[shown],
        carried[shown],
        share[shown],
        _load(moves, routes, way.reshape(-1), used[shown], gbps[shown], total_us or 1.0),
        len(used) - len(shown),
    )


def _added(place: IntArray, size: IntArray, places: int) -> IntArray:
    """Return the sum at each place, exactly."""
    found = np.zeros(places, np.int64)
    np.add.at(found, place, size)
    return found


class _Transfers(NamedTuple):
    """Data that moves between ranks: the transport end that it leaves from, its bytes, and the span
    of time under way.
    """

    sender: IntArray
    size: IntArray
    begin_us: Floats
    end_us: Floats

    @staticmethod
    def of(timeline: Timeline, reached: IntArray) -> _Transfers:
        program, tasks = timeline.program, timeline.program.tasks
        rows = reached[tasks.table.moves_data[tasks.instruction[reached]]]
        rows = rows[(tasks.end[rows] >= 0) & (tasks.size[rows] > 0)]
        kind, end = tasks.kind[rows], tasks.end[rows]
        over_rdma = np.isin(kind, RDMA_WRITES)
        return _Transfers(
            np.where(np.isin(kind, READS), program.transports.far[end], end),
            tasks.size[rows],
            np.where(over_rdma, timeline.end_us[rows], timeline.start_us[rows]),
            np.where(over_rdma, timeline.effect_us[rows], timeline.end_us[rows]),
        )


def _load(
    moves: _Transfers, routes: Routes, way: IntArray, links: IntArray, gbps: Floats, total_us: float
) -> npt.NDArray[np.float32]:
    """Return the part of its capacity that each link uses, by spans of time."""
    width, hops = total_us / SPANS, np.diff(routes.first)
    curves = _Curves(len(links), width)
    step = max(_AT_ONCE // max(int(hops.max(initial=1)), 1), 1)
    for first in range(0, len(way), step):
        part = slice(first, first + step)
        begin, count = moves.begin_us[part], hops[way[part]]
        end = np.maximum(moves.end_us[part], begin + width * 1e-6)
        rate = moves.size[part] / (end - begin)
        hop = np.repeat(routes.first[:-1][way[part]], count) + count_up(count)
        link = routes.link[hop]
        place = np.minimum(np.searchsorted(links, link), len(links) - 1)
        shown = links[place] == link
        owner = np.repeat(np.arange(len(begin)), count)[shown]
        slope = rate[owner] if routes.share is None else rate[owner] * routes.share[hop[shown]]
        curves.add(place[shown], begin[owner], slope)
        curves.add(place[shown], end[owner], -slope)
    capacity = np.where(np.isfinite(gbps), gbps * 1e3 * width, np.inf)
    return (curves.by_span() / capacity[:, None]).astype(np.float32)


class _Curves:
    """Bytes that links have carried so far, as slopes that change at moments."""

    def __init__(self, links: int, width_us: float) -> None:
        self._width = width_us
        self._slope = np.zeros((links, SPANS))
        self._moment = np.zeros((links, SPANS))

    def add(self, link: IntArray, at_us: Floats, slope: Floats) -> None:
        """Change slopes at moments; what lies behind the last span is left out."""
        span = np.maximum((at_us / self._width).astype(np.int64), 0)
        inside = span < SPANS
        where = link[inside] * SPANS + span[inside]
        for into, values in ((self._slope, slope), (self._moment, slope * at_us)):
            into += np.bincount(where, values[inside], into.size).reshape(into.shape)

    def by_span(self) -> Floats:
        """Return the bytes that every span adds."""
        edges = self._width * np.arange(1, SPANS + 1)
        until = edges * np.cumsum(self._slope, axis=1) - np.cumsum(self._moment, axis=1)
        added = np.diff(until, axis=1, prepend=0.0)
        return np.maximum(added, 0.0)
