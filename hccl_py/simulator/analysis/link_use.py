"""Bytes over every link of the network, and the share of time in which it is full."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hccl_py.clocks.links import numbered
from hccl_py.enums import READS, moves_data
from hccl_py.errors import ParameterError
from hccl_py.topology.networks import Network
from hccl_py.values import Floats, IntArray

if TYPE_CHECKING:
    from hccl_py.simulator.timeline import Timeline


@dataclass(frozen=True, eq=False)
class LinkUse:
    """One value per directed link that carries anything, sorted by link.

    `share` is the part of the total in which the link would be full with these bytes: bytes over
    capacity and total; 0 for links that never fill. Above 1 means that it could not have carried
    them, as with flows that are timed alone. `gbps` is the capacity in GB/s, inf for such links.
    """

    network: Network
    link: IntArray
    bytes: IntArray
    gbps: Floats
    share: Floats

    def names(self, k: int) -> tuple[str, str]:
        """Return the names of the two ends of the k-th link here: ranks or switches."""
        source, target = self.network.ends(self.link[k : k + 1])
        return self.network.node_name(int(source[0])), self.network.node_name(int(target[0]))

    def busiest(self, most: int) -> IntArray:
        """Return the places here of the links with the largest share; bytes decide between
        equals.
        """
        return np.lexsort((self.link, -self.bytes, -self.share))[:most]


def link_use(timeline: Timeline) -> LinkUse:
    """Send every byte along its route: reads come from the peer, writes go there.

    Raises ParameterError where the timeline has no topology, and so no links.
    """
    links = timeline.links
    if links.topology is None:
        raise ParameterError(
            "The use of links needs a topology, and this program was timed without one.",
            "Give simulate a topology.",
        )
    ends, moved = _flows(timeline)
    routes = links.routes(timeline.program.transports, ends)
    link, place = numbered(routes.link, links.network.nodes)
    # Bytes stay whole numbers where none are spread: float64 holds them exactly up to 2^53.
    over = np.repeat(moved, np.diff(routes.first)) * routes.shares
    carried = np.bincount(place, over, len(link))
    gbps = links.capacities(link)
    share = carried / (gbps * 1e3 * timeline.total_us) if len(link) else np.zeros(0)
    return LinkUse(links.network, link, np.rint(carried).astype(np.int64), gbps, share)


def _flows(timeline: Timeline) -> tuple[IntArray, IntArray]:
    """Return the transport ends that data leaves from, and bytes; an end may come twice: for what
    its rank writes, and for what the peer reads.
    """
    tasks, transports = timeline.program.tasks, timeline.program.transports
    kind = tasks.kind
    rows = np.flatnonzero(moves_data(kind) & (tasks.end >= 0))
    end, size, reads = tasks.end[rows], tasks.size[rows], np.isin(kind[rows], READS)
    written = np.bincount(end[~reads], size[~reads], len(transports))
    read = np.bincount(end[reads], size[reads], len(transports))
    out, into = np.flatnonzero(written), np.flatnonzero(read)
    ends = np.concatenate([out, transports.far[into]])
    return ends, np.concatenate([written[out], read[into]]).astype(np.int64)
