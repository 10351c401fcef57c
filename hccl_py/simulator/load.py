"""The load of a program on its links, in any order: the time that the busiest one needs.

Without contention links carry any number of flows at once, so an uncontended time may be less than
a link needs for all its bytes, and for the α of the first Ack or, over RDMA, of the last
DataSignal. No machine is as fast as that, so comparisons of uncontended times take the larger of
the two. It is found from the batches, without expanding them.
"""

from __future__ import annotations

import numpy as np

from hccl_py.clocks.carried import carried
from hccl_py.clocks.cost import CostModel
from hccl_py.clocks.links import Links
from hccl_py.clocks.stragglers import EVEN, Stragglers
from hccl_py.program.program import Program
from hccl_py.topology.topology import Topology
from hccl_py.values import Floats


def busiest_us(
    program: Program, topology: Topology, cost: CostModel, slow: Stragglers = EVEN
) -> float:
    """Return the microseconds that the busiest link needs for its bytes at full rate, and the least
    α of the transports that use it; no α where some are SDMA, which pay it before their data, and
    some RDMA, which pay it afterwards.
    """
    links = Links.of(program, topology, cost, slow)
    sent = carried(program)
    ends = np.flatnonzero(sent)
    if not len(ends):
        return 0.0
    routes = links.routes(program.transports, ends)
    link, place = np.unique(routes.link, return_inverse=True)
    hops, place = np.diff(routes.first), place.reshape(-1)
    loads = np.bincount(place, np.repeat(sent[ends], hops) * routes.shares)
    alpha = _least_alpha(program, links)[ends]
    latency = np.full(len(link), np.inf)
    np.minimum.at(latency, place, np.repeat(alpha, hops))
    by_rdma = np.bincount(place, np.repeat(program.transports.is_rdma[ends], hops))
    latency[(by_rdma > 0) & (by_rdma < np.bincount(place))] = 0.0
    return float((latency + loads / (links.capacities(link) * 1e3)).max())


def _least_alpha(program: Program, links: Links) -> Floats:
    """Return the α of each transport end or of the other one: it is paid at either side."""
    classes, far = links.classes(program.transports), program.transports.far
    alpha = classes.alpha_us[classes.of_end]
    return np.minimum(alpha, alpha[far])
