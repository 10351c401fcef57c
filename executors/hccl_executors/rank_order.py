"""Teams, links and streams of the order-preserved executors.

A team is a server; on Atlas A3 a whole superpod, whose members write to each other in turns.
"""

from __future__ import annotations

import numpy as np

from hccl_executors.outer_levels import all_servers
from hccl_executors.templates.by_rank import sub_streams
from hccl_py.enums import Buffer
from hccl_py.orchestration import Plane
from hccl_py.orchestration.subplane import Subplane
from hccl_py.plugins.executor import (
    AnyRank,
    PlaneRequest,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)


def suits_in_teams(topology: Topology, in_pods: bool) -> bool | Unsuitable:
    """Demand servers and superpods of equal sizes, with ranks numbered one after the other, and in
    superpods SDMA links, as peers are written to and written by in turns.
    """
    even = require(
        (topology.size > 1, "needs two ranks, there is one"),
        (topology.is_even, "needs servers and superpods of equal sizes"),
    )
    pods = topology.joins_servers and topology.size > len(topology.superpods)
    linked = not in_pods or pods or not topology.has_rdma
    return even and require((linked, "needs superpods whose ranks are linked by SDMA"))


def team(rank: AnyRank, in_pods: bool) -> Plane:
    """Return the plane of a rank's team, which may be alone in it."""
    if not in_pods:
        return rank.level0
    pods = rank.topology.superpod
    return Subplane(rank.flat, [np.flatnonzero(pods == pod).tolist() for pod in np.unique(pods)])


def is_alone(rank: RankView | AnyRank, in_pods: bool) -> bool:
    """True if every rank is alone in its team."""
    return rank.size == _teams(rank, in_pods)


def outer(rank: AnyRank, in_pods: bool) -> Plane:
    """Return the plane of equal places of teams."""
    return rank.plane(_outer_name(rank, in_pods))


def _outer_name(rank: RankView | AnyRank, in_pods: bool) -> str:
    return "level2" if in_pods else all_servers(rank)


def _teams(rank: RankView | AnyRank, in_pods: bool) -> int:
    return int(rank.plane(_outer_name(rank, in_pods)).size)


def requested(
    rank: RankView,
    memory: tuple[Buffer, Buffer],
    *,
    in_pods: bool,
    scratch_bytes: int,
    max_count: int,
) -> ResourceRequest:
    """Return a request with links to the team and between teams, and HCCL's streams."""
    teams = _teams(rank, in_pods)
    near = "flat" if in_pods else "level0"
    levels = [near, *([_outer_name(rank, in_pods)] if teams > 1 else [])]
    return ResourceRequest(
        planes=tuple(PlaneRequest(level, "mesh", *memory) for level in levels),
        sub_streams=sub_streams(rank.size // teams, teams, in_turns=in_pods),
        scratch_bytes=scratch_bytes,
        max_count=max_count,
    )
