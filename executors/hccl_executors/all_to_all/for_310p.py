"""RunAlltoAllVFor310PExecutor: all peers at once, on the few devices of an Atlas 300I Duo."""

from __future__ import annotations

from typing import Any

from hccl_executors.all_to_all.layout import aligned, layout_of
from hccl_executors.all_to_all.parts import Direct, Slots
from hccl_executors.templates.pairwise import mesh_all_to_all
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

__all__ = ["RunAlltoAllVFor310PExecutor"]


class RunAlltoAllVFor310PExecutor:
    """AlltoAll, AlltoAllV and AlltoAllVC with a sub stream for every peer, all at once.

    Op-base mode: one slot of the CCL buffers for each rank, in rounds. Graph mode: in user memory.
    HCCL chooses it for up to 4 devices; it is right for any number on any links. What HCCL's own
    requests is not in the sources that this one follows.
    """

    op = ALL_TO_ALL
    algorithm = "level0:mesh"

    def suits(self, op: OpParam, topology: Topology) -> bool:
        """Runs everywhere, uneven servers included."""
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """A link and a sub stream per peer; a round fills all slots of a CCL buffer."""
        return ResourceRequest(
            planes=(PlaneRequest("flat", "mesh"),),
            sub_streams=rank.size - 1,
            max_count=_slot(rank) // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Any, Any]) -> None:
        """Exchange with everyone."""
        graph = op.mode is Mode.GRAPH
        parts = Direct(rank, layout_of(op, rank, None)) if graph else Slots(rank, _slot(rank))
        mesh_all_to_all(rank, rank.flat, parts, rank.size - 1)


def _slot(rank: RankView | Rank[Any, Any]) -> int:
    """Return the bytes of a part in one round."""
    return aligned(rank.ccl_bytes // rank.size)
