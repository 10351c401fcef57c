"""A3's rings for blocks of different sizes: all_gather_v and reduce_scatter_v.

What goes round, between servers and between superpods is that of superpods.py with slots of
different sizes, side by side in the CCL buffers. Of a ring's two halves each block's first one is a
multiple of 128 bytes.

A round of an all-gather takes as much of the largest block as fits when all are as large; one of a
reduce-scatter shares a buffer among what is left of all blocks, in multiples of 128 bytes, and one
without data follows where the last one fills it. In graph mode HCCL leaves out gaps between blocks.
"""

from __future__ import annotations

from dataclasses import replace

from hccl_executors.flat_v import sharing_rounds
from hccl_executors.levels import fidelities
from hccl_executors.rings.orders import ORDERS, Superpods
from hccl_executors.rings.superpods import SuperpodRings
from hccl_executors.sources import adding_in_scratch, like_newest
from hccl_py.operators.parts import blocks_of
from hccl_py.plugins.executor import (
    AnyRank,
    Fidelity,
    OpParam,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
)


class SuperpodRingsV(SuperpodRings):
    """The rings of superpods.py for an op of blocks."""

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """As the op of even blocks."""
        return super().suits(_even(op), topology)

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """As the op of even blocks, with scratch for these; a reduce-scatter has its own rounds."""
        asked = super().resources(_even(op), rank)
        if op.name == "reduce_scatter_v":
            asked = sharing_rounds(asked, op, rank)
        if not asked.scratch_bytes:
            return asked
        lands = not rank.inline_reduce and rank.size > 1
        blocks = int(blocks_of(op, rank.size)[0].sum()) * op.unit
        return replace(asked, scratch_bytes=blocks * (1 + lands))

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        levels = Superpods(op, rank, aligned=self.two_rings, serial=self.serial)
        ORDERS[_even(op).name](levels)


def _even(op: OpParam) -> OpParam:
    """Return the op of blocks that are all as large as the largest one."""
    name = op.name.removesuffix("_v")
    return replace(op, name=name, count=op.extent, counts=(), displs=())


def _as_hccl(op: str, executor: str) -> Fidelity:
    """Return the fidelity of an executor: HCCL's, the op's of even blocks, and its loop."""
    even = op.removesuffix("_v")
    found = like_newest(
        f"coll_{executor}_for_910_93_executor",
        f"coll_{even}_ring_for_910_93_executor",
        f"coll_{even}_executor",
    ).with_cases(fidelities(even))
    return adding_in_scratch(found) if op == "reduce_scatter_v" else found


_WORDS = "level1:NHR|NB|ring;level2:NHR|NB|ring"


class AllGatherVRingFor91093Executor(SuperpodRingsV):
    """AllGatherV over all levels, level2 first."""

    op = "all_gather_v"
    algorithm = f"level0:ring;{_WORDS}"
    fidelity = _as_hccl("all_gather_v", "all_gather_v_ring")


class AlignedAllGatherVDoubleRingFor91093Executor(SuperpodRingsV):
    """AllGatherV where there are two rings."""

    op = "all_gather_v"
    algorithm = f"level0:double_ring;{_WORDS}"
    two_rings = True
    fidelity = _as_hccl("all_gather_v", "aligned_all_gather_v_double_ring")


class ReduceScatterVRingFor91093Executor(SuperpodRingsV):
    """ReduceScatterV over all levels, level0 first."""

    op = "reduce_scatter_v"
    algorithm = f"level0:ring;{_WORDS}"
    fidelity = _as_hccl("reduce_scatter_v", "reduce_scatter_v_ring")


class AlignedReduceScatterVDoubleRingFor91093Executor(SuperpodRingsV):
    """ReduceScatterV where there are two rings."""

    op = "reduce_scatter_v"
    algorithm = f"level0:double_ring;{_WORDS}"
    two_rings = True
    fidelity = _as_hccl("reduce_scatter_v", "aligned_reduce_scatter_v_double_ring")


class ReduceScatterVFastDoubleRingFor91093Executor(SuperpodRingsV):
    """ReduceScatterV where there are two rings and main fetches before them; HCCL takes it for
    servers with seven HCCS ports.
    """

    op = "reduce_scatter_v"
    algorithm = f"level0:double_ring;{_WORDS}"
    two_rings = True
    serial = True
    fidelity = _as_hccl("reduce_scatter_v", "reduce_scatter_v_fast_double_ring")
