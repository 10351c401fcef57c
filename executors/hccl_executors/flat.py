"""Executors on the flat plane: one algorithm over all ranks, over links of any kind.

They run everywhere, on uneven servers too: HCCL's fallback for every op. One composition, and a row
per executor.
"""

from __future__ import annotations

from hccl_executors.levels import GROUPED, LEVELS, Level, choices, fidelities
from hccl_executors.sources import adding_in_scratch, like_april
from hccl_executors.staging import PlaneLinks, delivered, request, staged
from hccl_py.call.ops import OPS
from hccl_py.plugins.executor import (
    AnyRank,
    BaseExecutor,
    Fidelity,
    OpParam,
    RankView,
    ResourceRequest,
    Topology,
    ours,
)


def _words(op: str, *ringed: str) -> dict[str, Fidelity]:
    """Return the fidelity of each word of an executor over all ranks, where `ringed` words run a
    ring.
    """
    found = fidelities(op)
    return {**found, **dict.fromkeys(ringed, found["ring"])}


class Flat(BaseExecutor):
    """Stage the input, run the template of `op.level1` over all ranks on one stream, deliver.

    As in HCCL, words of `ringed` run a ring here, other than between servers.
    """

    op: str
    ringed: tuple[str, ...] = ()

    def suits(self, op: OpParam, topology: Topology) -> bool:
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """The template's links, all by RDMA where some have to be, as HCCL's on a plane; a round
        fills the CCL buffer that it works in.
        """
        peers = self._level(op).peers(rank.flat, op.root or 0)
        return request(op, rank, PlaneLinks("flat", peers, rank.topology.has_rdma))

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        work = staged(op, rank)
        root = (op.root,) if OPS[self.op].rooted else ()
        on_a3 = rank.topology.product.device == "910_93"
        self._level(op).run(rank.main, rank.flat, work, *root, meeting=on_a3)
        delivered(op, rank, work)

    def _level(self, op: OpParam) -> Level:
        return LEVELS[self.op]["ring" if op.level1 in self.ringed else op.level1]


class AllReduceComm(Flat):
    """AllReduce over all ranks: by default a ring, 2(p - 1) steps, every chunk reduced in ring
    order, so that results do not depend on timing.
    """

    op = "all_reduce"
    algorithm = f"level0:NA;level1:{choices('all_reduce')}|{GROUPED}"
    ringed = ("H-D_R", "AHC", "AHC_BROKE")
    fidelity = like_april("coll_all_reduce_comm_executor").with_cases(_words("all_reduce", *ringed))


class AllGatherComm(Flat):
    """AllGather over all ranks: by default a ring, p - 1 steps."""

    op = "all_gather"
    algorithm = f"level0:NA;level1:{choices('all_gather')}"
    fidelity = like_april("coll_all_gather_comm_executor").with_cases(fidelities("all_gather"))


class ReduceScatterComm(Flat):
    """ReduceScatter over all ranks: by default a ring, p - 1 steps."""

    op = "reduce_scatter"
    algorithm = f"level0:NA;level1:{choices('reduce_scatter')}"
    fidelity = adding_in_scratch(
        like_april("coll_reduce_scatter_comm_executor").with_cases(fidelities("reduce_scatter"))
    )


class BroadCastComm(Flat):
    """Broadcast from the root over all ranks: by default along a ring, chunk by chunk."""

    op = "broadcast"
    algorithm = f"level0:NA;level1:{choices('broadcast')}"
    ringed = ("H-D_R",)
    fidelity = like_april("coll_broadcast_comm_executor").with_cases(_words("broadcast", *ringed))


class ReduceComm(Flat):
    """Reduce to the root over all ranks: along a ring for every word."""

    op = "reduce"
    algorithm = f"level0:NA;level1:{choices('reduce')}"
    ringed = ("H-D_R", "NHR")
    fidelity = like_april("coll_reduce_comm_executor").with_cases(_words("reduce", *ringed))


class ScatterCommExecutor(Flat):
    """Scatter from the root over all ranks: by default along a ring."""

    op = "scatter"
    algorithm = f"level0:NA;level1:{choices('scatter')}"
    fidelity = like_april("coll_scatter_comm_executor").with_cases(fidelities("scatter"))


class GatherComm(Flat):
    """Gather at the root over all ranks: by default along a ring; HCCL has no executor for it."""

    op = "gather"
    algorithm = f"level0:NA;level1:{choices('gather')}"
    fidelity = ours("HCCL has no gather in its API.")
