"""AllReduceOrderPreservedExecutor: sums whose order depends on the ranks only."""

from __future__ import annotations

from abc import abstractmethod

from hccl_executors.levels import LEVELS, fidelities
from hccl_executors.rank_order import outer, requested, suits_in_teams, team
from hccl_executors.sources import april, newest
from hccl_executors.templates.by_rank import Slots, combine, reduce_scatter_by_rank
from hccl_executors.templates.mesh_in_place import mesh_all_gather_by_main
from hccl_py.enums import Buffer
from hccl_py.orchestration import Chunks, Plane, Region
from hccl_py.plugins.executor import (
    AnyRank,
    BaseExecutor,
    Fidelity,
    Mode,
    OpParam,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    same,
    steps,
)

WORDS = "NHR|ring|NB"
"""Algorithms that gather between teams; HCCL takes NHR for all other words."""


class AllReduceInRankOrder(BaseExecutor):
    """AllReduce whose every sum has the same order, by halving over the devices of a server, then
    over servers: a reduce-scatter, and an all-gather in the team and between teams.

    Chunks lie in CCL_Out; what would lie at the end of a team's slots lies in CCL_In, so that a
    round fills a buffer. Graph mode: both in scratch.
    """

    op = "all_reduce"
    order = "rank"
    in_pods: bool

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs servers and superpods of equal sizes."""
        return suits_in_teams(topology, self.in_pods)

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links in the team and between teams."""
        graph, size = op.mode is Mode.GRAPH, rank.size
        memory = (Buffer.SCRATCH, Buffer.SCRATCH) if graph else (Buffer.CCL_IN, Buffer.CCL_OUT)
        slots = rank.ccl_bytes // max(size - 1, 1) // 128 * 128 * size
        return requested(
            rank,
            memory,
            in_pods=self.in_pods,
            scratch_bytes=2 * size * _stride(op.size, op.unit, size) if graph else 0,
            max_count=min(rank.ccl_bytes, slots) // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
        """Reduce-scatter, all-gather, copy to the output."""
        near, ranks, total = team(rank, self.in_pods), rank.size, int(rank.user_in.size)
        n, stride = int(near.size), _stride(total, op.unit, ranks)
        memory, spare = rank.ccl_out, rank.ccl_in
        if op.mode is Mode.GRAPH:
            half = ranks * stride
            memory, spare = rank.scratch[:half], rank.scratch[half : 2 * half]
        inputs, chunks = rank.user_in.split(ranks), memory.head(total).split(ranks)
        slots = Slots(memory, stride, n, inputs.sizes[0], spare)
        reduce_scatter_by_rank(
            rank, near, lambda index: inputs[index], slots, in_turns=self.in_pods
        )
        teams = None
        if slots.groups > 1:
            teams = outer(rank, self.in_pods)
            combine(rank, teams, near.id, slots)
        mine = chunks.taken(0 if teams is None else teams.id * n, n)
        self._gather(rank, near, mine)
        if teams is not None:
            word = (op.level2 if self.in_pods else op.level1) or WORDS.split("|")[0]
            LEVELS["all_gather"][word].run(rank.main, teams, chunks.joined(n))
        rank.main.copy(rank.user_out, memory.head(total))

    @abstractmethod
    def _gather(self, rank: AnyRank, near: Plane, chunks: Chunks) -> None:
        """Gather in the team."""


def _fidelity(executor: str) -> Fidelity:
    return same(
        *newest(executor),
        *april("reduce_scatter_plant_local_reduce", "reduce_scatter_plant_local_reduce_combine"),
    ).with_cases(
        {
            **fidelities("all_gather"),
            "graph": steps(
                "Works in scratch; HCCL's works in the output, and keeps what is at the end of a "
                "team's slots in the caller's input.",
                *april(executor),
            ),
        }
    )


class AllReduceOrderPreservedExecutor(AllReduceInRankOrder):
    """AllReduce in rank order: servers, whose devices write to all others at once, and then read
    from all others at once; a device that is alone in a server only copies there.
    """

    algorithm = f"level0:mesh;level1:{WORDS}"
    in_pods = False
    fidelity = _fidelity("coll_all_reduce_order_preserved_executor")

    def _gather(self, rank: AnyRank, near: Plane, chunks: Chunks) -> None:
        mesh_all_gather_by_main(rank, near, chunks)


class AllReduceOrderPreservedFor91093Executor(AllReduceInRankOrder):
    """AllReduce in rank order on Atlas A3: superpods, whose members write to each other in turns,
    and gather by NHR.
    """

    algorithm = f"level0:mesh;level1:NHR;level2:{WORDS}"
    in_pods = True
    fidelity = _fidelity("coll_all_reduce_order_preserved_for_910_93_executor")

    def _gather(self, rank: AnyRank, near: Plane, chunks: Chunks) -> None:
        LEVELS["all_gather"]["NHR"].run(rank.main, near, chunks)


def _stride(total: int, unit: int, ranks: int) -> int:
    """Return the bytes of a slot: a chunk's, in whole 128."""
    return -(-(-(-total // unit // ranks) * unit) // 128) * 128
