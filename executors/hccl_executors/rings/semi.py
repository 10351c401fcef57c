"""Semi rings: slots march through one server from both sides at once (`templates/march.py`).

In graph mode each step has a notify of its own, of the n + 4 that are requested for every transport
besides. Source: cann-hcomm (b5f3e5b); HCCL takes these executors in graph mode only.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

from hccl_executors.sources import april, like_april
from hccl_executors.staging import delivered, request, staged
from hccl_executors.templates.march import march_all_gather, march_reduce_scatter
from hccl_py.orchestration import Chunks
from hccl_py.plugins.executor import (
    AnyRank,
    BaseExecutor,
    OpParam,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
    steps,
)


class SemiRings(BaseExecutor):
    """Stage the input, march, deliver."""

    op: str

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs one server with an even number of devices, in a ring at least."""
        return require(
            (topology.has_mesh, "needs every device linked to every other one"),
            (topology.is_single_server, f"needs one server, there are {len(topology.servers)}"),
            (topology.has_sdma_inside, "needs SDMA between all devices of a server"),
            (
                topology.size == 1 or topology.size % 2 == 0,
                f"needs an even number of devices, not {topology.size}",
            ),
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """A link to every device with n + 4 notifies besides, two sub streams, n + 4 notifies
        besides.
        """
        if rank.size == 1:
            return request(op, rank)
        asked = request(op, rank, ("level0", "mesh"), sub_streams=2)
        extra = rank.size + 4
        return replace(
            asked,
            planes=tuple(replace(plane, extra_notifies=extra) for plane in asked.planes),
            notifies=2 * asked.sub_streams + extra,
            max_count=rank.ccl_bytes // (rank.size * op.unit),
        )

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        """Stage, march, deliver."""
        slots = staged(op, rank)
        if rank.size > 1:
            self.march(op, rank, slots)
        delivered(op, rank, slots)

    @abstractmethod
    def march(self, op: OpParam, rank: AnyRank, slots: Chunks) -> None:
        """Record the march over the slots."""


class AllGatherSemiRingExecutor(SemiRings):
    """AllGather in one server; the last slot is cut at half of its bytes."""

    op = "all_gather"
    algorithm = "level0:double_ring"
    fidelity = like_april(
        "coll_all_gather_semi_ring_executor", "all_gather_unified_march"
    ).with_cases(
        {
            "op_base": steps(
                "Stages in CCL_Out; HCCL takes it in graph mode only, where all is in the output.",
                *april("all_gather_unified_march"),
            )
        }
    )

    def march(self, op: OpParam, rank: AnyRank, slots: Chunks) -> None:
        """Slot after slot from both sides, then two halves of the one opposite."""
        march_all_gather(rank, slots)


class ReduceScatterSemiRingExecutor(SemiRings):
    """ReduceScatter in one server: in the order of the marches, so sums do not depend on timing.
    Without inline reduce, data lands in the other CCL buffer, in scratch in graph mode.
    """

    op = "reduce_scatter"
    algorithm = "level0:double_ring"
    fidelity = like_april(
        "coll_reduce_scatter_semi_ring_executor", "reduce_scatter_unified_march"
    ).with_cases(
        {
            "op_base": steps(
                "Stages in CCL_In; HCCL takes it in graph mode only, where all is in the input.",
                *april("reduce_scatter_unified_march"),
            )
        }
    )

    def march(self, op: OpParam, rank: AnyRank, slots: Chunks) -> None:
        """Halves of what has the farthest to go, whole slots, then both halves of the own one."""
        march_reduce_scatter(rank, slots, op.unit)
