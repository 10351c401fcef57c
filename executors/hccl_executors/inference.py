"""The executors of Atlas 300I: one ring over all ranks, under the names that HCCL gives it there.

PCIe joins the devices, so nothing is gained by levels.
"""

from __future__ import annotations

from hccl_executors.flat import Flat

__all__ = [
    "AllGatherFor310PExecutor",
    "AllReduceRing",
    "BroadCastCommFor310P",
    "ReduceScatterRing",
]


class AllReduceRing(Flat):
    """AllReduce over one ring: 2(p - 1) steps."""

    op = "all_reduce"
    algorithm = "level0:NA;level1:ring"


class AllGatherFor310PExecutor(Flat):
    """AllGather over one ring: p - 1 steps."""

    op = "all_gather"
    algorithm = "level0:NA;level1:ring"


class ReduceScatterRing(Flat):
    """ReduceScatter over one ring: p - 1 steps."""

    op = "reduce_scatter"
    algorithm = "level0:NA;level1:ring"


class BroadCastCommFor310P(Flat):
    """Broadcast over one ring, chunk by chunk."""

    op = "broadcast"
    algorithm = "level0:NA;level1:ring"
