"""ReduceScatterOrderPreservedExecutor: sums whose order depends on the ranks only."""

from __future__ import annotations

import numpy as np

from hccl_executors.rank_order import is_alone, outer, requested, suits_in_teams, team
from hccl_executors.sources import april, like_april, newest
from hccl_executors.templates.by_rank import Slots, combine, reduce_scatter_by_rank
from hccl_executors.templates.recursive_halving import recursive_halving_reduce_scatter
from hccl_py.enums import Buffer
from hccl_py.orchestration import Chunks, Region
from hccl_py.plugins.executor import (
    BaseExecutor,
    Mode,
    OpParam,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    same,
)

SMALL = 32 << 10
"""Bytes of a chunk up to which four or eight devices halve."""


class ReduceScatterInRankOrder(BaseExecutor):
    """ReduceScatter whose every sum has the same order, by halving over the devices of a server,
    then over servers; a chunk for every rank fills CCL_Out, or scratch in graph mode.
    """

    op = "reduce_scatter"
    order = "rank"
    in_pods: bool

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs servers and superpods of equal sizes."""
        return suits_in_teams(topology, self.in_pods)

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links in the team and between teams; CCL_Out holds a chunk per rank. In graph mode a rank
        that is alone shows other teams a copy in scratch, besides.
        """
        graph = op.mode is Mode.GRAPH
        copies = 1 + is_alone(rank, self.in_pods)
        memory = (Buffer.USER_IN, Buffer.SCRATCH) if graph else (Buffer.CCL_IN, Buffer.CCL_OUT)
        return requested(
            rank,
            memory,
            in_pods=self.in_pods,
            scratch_bytes=copies * op.size * rank.size if graph else 0,
            max_count=rank.ccl_bytes // rank.size // 128 * 128 // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Chunks, Region]) -> None:
        """Collect and add in the team, then between teams, copy to the output."""
        near = team(rank, self.in_pods)
        n, size = int(near.size), int(rank.user_in.largest)
        memory, spare = rank.ccl_out, rank.ccl_in
        if op.mode is Mode.GRAPH:
            memory, spare = rank.scratch.head(size * rank.size), rank.scratch[size * rank.size :]
        alone = is_alone(rank, self.in_pods)
        slots = Slots(memory, size, n, np.full(rank.size, size), spare if alone else None)
        reduce_scatter_by_rank(
            rank, near, lambda index: rank.user_in[index], slots, in_turns=self.in_pods
        )
        found = slots.collected(near.id, 0, 0)
        if slots.groups > 1:
            found = combine(rank, outer(rank, self.in_pods), near.id, slots)
        rank.main.copy(rank.user_out, found)


class ReduceScatterOrderPreservedExecutor(ReduceScatterInRankOrder):
    """ReduceScatter in rank order: servers, whose devices write to all others at once; a device
    that is alone in a server only copies there.

    Chunks of up to 32 KiB in one server of 4 or 8 devices are halved in op-base mode instead, which
    adds in the same order.
    """

    algorithm = "level0:mesh;level1:mesh"
    in_pods = False
    fidelity = same(
        *newest("coll_reduce_scatter_order_preserved_executor"),
        *april(
            "reduce_scatter_plant_local_reduce",
            "reduce_scatter_plant_local_reduce_combine",
            "reduce_scatter_hd_stage",
        ),
    )

    def orchestrate(self, op: OpParam, rank: Rank[Chunks, Region]) -> None:
        """Halve small data of few devices, else collect."""
        if _is_halved(op, rank.topology) and rank.inline_reduce:
            recursive_halving_reduce_scatter(
                rank, rank.level0, rank.user_in, rank.ccl_out, rank.user_out
            )
        else:
            super().orchestrate(op, rank)


class ReduceScatterOrderPreservedFor91093Executor(ReduceScatterInRankOrder):
    """ReduceScatter in rank order on Atlas A3: superpods, whose members write to each other in
    turns.
    """

    algorithm = "level0:mesh;level1:mesh;level2:mesh"
    in_pods = True
    fidelity = like_april(
        "coll_reduce_scatter_order_preserved_for_910_93_executor",
        "reduce_scatter_plant_local_reduce",
        "reduce_scatter_plant_local_reduce_combine",
    )


def _is_halved(op: OpParam, topology: Topology) -> bool:
    few = topology.is_single_server and topology.size in (4, 8) and not topology.has_rdma
    return few and op.mode is Mode.OP_BASE and op.size <= SMALL
