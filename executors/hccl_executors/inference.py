"""The executors of Atlas 300I: one ring over all ranks, under the names that HCCL gives it there.

PCIe joins the devices, so nothing is gained by levels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hccl_executors.flat import Flat
from hccl_executors.sources import april, like_april, like_newest, newest
from hccl_executors.staging import delivered, request, staged
from hccl_executors.templates.slim_ring import (
    MOST,
    NOTIFIES,
    slim_ring_all_gather,
    slim_ring_reduce_scatter,
)
from hccl_py.orchestration import Chunks, Plane, Stream
from hccl_py.plugins.executor import (
    AnyRank,
    BaseExecutor,
    Fidelity,
    OpParam,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    ours,
    require,
    steps,
)

_BESIDE = steps(
    "What is to be added lands at its own place of the other buffer; HCCL's last block lands, and "
    "is added, where the output begins there.",
    *april("component/reducer"),
)


def _of_one_server(name: str, line: int, *templates: str) -> Fidelity:
    """Return the fidelity of an executor whose plane is COMM_LEVEL0 in HCCL, stated in a line."""
    file = f"310P/{name}"
    return like_april(file, *templates).with_cases(
        {
            "servers": ours(
                f"HCCL's goes round the ranks of one server and leaves others out: {name}.cc:{line}"
                " of August 2026 asks for a plane inside servers. Here it goes round all ranks.",
                *newest(file),
            )
        }
    )


class AllReduceRing(Flat):
    """AllReduce over one ring: 2(p - 1) steps."""

    op = "all_reduce"
    algorithm = "level0:NA;level1:ring"
    fidelity = _of_one_server("coll_all_reduce_for_310p_ring_executor", 73, "all_reduce_ring")


class AllGatherFor310PExecutor(Flat):
    """AllGather over one ring: p - 1 steps."""

    op = "all_gather"
    algorithm = "level0:NA;level1:ring"
    fidelity = _of_one_server("coll_all_gather_for_310p_executor", 49, "all_gather_ring")


class ReduceScatterRing(Flat):
    """ReduceScatter over one ring: p - 1 steps."""

    op = "reduce_scatter"
    algorithm = "level0:NA;level1:ring"
    fidelity = _of_one_server(
        "coll_reduce_scatter_for_310p_ring_executor", 50, "reduce_scatter_ring"
    ).with_cases({"local_reduce": _BESIDE})


class BroadCastCommFor310P(Flat):
    """Broadcast over one ring, chunk by chunk."""

    op = "broadcast"
    algorithm = "level0:NA;level1:ring"
    fidelity = _of_one_server("coll_broadcast_for_310p_comm_executor", 32, "broadcast_ring")


_SLIM: dict[str, Callable[[Stream, Plane, Chunks], None]] = {
    "all_gather": slim_ring_all_gather,
    "reduce_scatter": slim_ring_reduce_scatter,
}


class SlimRing(BaseExecutor):
    """Stage the input, go round with one signal per step, deliver."""

    op: str

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs SDMA links, and no more ranks than a transport has notifies for steps."""
        ranks = topology.size
        return require(
            (not topology.has_rdma, "reads from neighbours: SDMA links only"),
            (ranks <= MOST, f"has a notify for every step: {MOST} ranks, there are {ranks}"),
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """A ring's links with eight more notifies each."""
        asked = request(op, rank, ("flat", "ring"))
        planes = tuple(replace(plane, extra_notifies=NOTIFIES) for plane in asked.planes)
        return replace(asked, planes=planes)

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        work = staged(op, rank)
        _SLIM[self.op](rank.main, rank.flat, work)
        delivered(op, rank, work)


class AllGatherSlimRingFor310PExecutor(SlimRing):
    """AllGather of small data over one ring: p - 1 steps with one signal each."""

    op = "all_gather"
    algorithm = "level0:NA;level1:ring"
    fidelity = like_newest("310P/coll_all_gather_slim_for_310p_executor", "all_gather_slim_ring")


class ReduceScatterSlimRing(SlimRing):
    """ReduceScatter of small data over one ring: p - 1 steps with one signal each."""

    op = "reduce_scatter"
    algorithm = "level0:NA;level1:ring"
    fidelity = like_newest(
        "310P/coll_reduce_scatter_slim_ring_for_310p_executor",
        "reduce_scatter_slim_ring",
        "component/reducer",
    ).with_cases({"local_reduce": _BESIDE})
