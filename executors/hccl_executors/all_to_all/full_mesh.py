"""RunAlltoAllVFullMesh: HCCL's pairwise all-to-all over all ranks."""

from __future__ import annotations

from typing import Any

from hccl_executors.all_to_all.layout import aligned, extents_fit, layout_of
from hccl_executors.all_to_all.parts import Direct, Slots
from hccl_executors.templates.pairwise import mesh_all_to_all, pairwise_all_to_all
from hccl_py.executor import (
    Mode,
    OpParam,
    PlaneRequest,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
)
from hccl_py.ops import ALL_TO_ALL

__all__ = ["RunAlltoAllVFullMesh"]

SMALL = 32
"""Ranks of a superpod up to which all links work at once."""


class RunAlltoAllVFullMesh:
    """AlltoAll, AlltoAllV and AlltoAllVC between all ranks, whatever links them.

    Pairwise on main, p - 1 steps. In one superpod of up to 32 ranks all peers at once, on p - 1 sub
    streams. In graph mode, and where all inputs and outputs fit the CCL buffers as they are, data
    goes straight from place to place (ZCopy); else through the buffers in rounds (BCopy).
    """

    op = ALL_TO_ALL
    algorithm = "level0:NA;level1:pairwise"

    def suits(self, op: OpParam, topology: Topology) -> bool:
        """Runs everywhere, uneven servers included."""
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links to everyone; a round of BCopy fills a CCL buffer."""
        return ResourceRequest(
            planes=(PlaneRequest("flat", "mesh"),),
            sub_streams=_subs(rank),
            max_count=None if extents_fit(op, rank) else _slot(rank) // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Any, Any]) -> None:
        """Stage what is not staged part by part, then exchange."""
        parts: Direct | Slots
        if op.mode is Mode.GRAPH or extents_fit(op, rank):
            parts = Direct(rank, layout_of(op, rank, None))
            parts.stage()
        else:
            parts = Slots(rank, _slot(rank) if _is_small_superpod(rank) else None)
        if _is_small_superpod(rank):
            mesh_all_to_all(rank, rank.flat, parts, _subs(rank))
        else:
            pairwise_all_to_all(rank, rank.flat, parts)


def _is_small_superpod(rank: RankView | Rank[Any, Any]) -> bool:
    topology = rank.topology
    has_pods = topology.product.superpod_servers > 0
    return has_pods and len(topology.superpods) == 1 and rank.size <= SMALL


def _subs(rank: RankView | Rank[Any, Any]) -> int:
    return rank.size - 1 if _is_small_superpod(rank) else 0


def _slot(rank: RankView | Rank[Any, Any]) -> int:
    """Return the bytes of a part in one round of BCopy."""
    return aligned(rank.ccl_bytes // (rank.size if _is_small_superpod(rank) else 1))
