"""Meshes inside the servers in graph mode, and any algorithm between them: blocks are in the order
of devices, not of servers, so that what goes between servers is in one piece, and what goes inside,
too.

    all_gather        the own block into its place of the output, all-gather between, all-gather
                      inside, then blocks change places, through a block of scratch
    reduce_scatter    all blocks to their places in scratch, reduce-scatter inside, reduce-scatter
                      between

For n devices in each of S servers the block of device d of server s is number dS + s.
"""

from __future__ import annotations

from dataclasses import replace

from hccl_executors.hierarchical import REDUCING_IN_TURN, Hierarchical
from hccl_executors.levels import choices, fidelities
from hccl_executors.sources import like_april, newest
from hccl_py.orchestration import Chunks, Region
from hccl_py.plugins.executor import AnyRank, Mode, OpParam, Rank, RankView, ResourceRequest, steps

_MISPLACED = steps(
    "Where servers are no power of two, HCCL's devices but the first write a block where the first "
    "one's belongs (all_gather_recursive_hd.cc:155 of August 2026 leaves out the offset of their "
    "blocks); here it goes to its own place.",
    *newest("coll_all_gather_mesh_graph_executor", "all_gather_recursive_hd"),
)


class AllGatherMeshGraphExecutor(Hierarchical):
    """AllGather in the output, first between servers. HCCL's blocks change places through the
    caller's input, which it overwrites.
    """

    op = "all_gather"
    algorithm = f"level0:mesh;level1:{choices('all_gather')}"
    modes = (Mode.GRAPH,)
    fidelity = like_april(
        "coll_all_gather_mesh_graph_executor", "all_gather_mesh_atomic", "all_gather_mesh"
    ).with_cases({**fidelities("all_gather"), "H-D_R": _MISPLACED})

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Scratch for a block, where blocks change places."""
        asked = super().resources(op, rank)
        moves = 1 < int(rank.level0.size) < rank.size
        return replace(asked, scratch_bytes=op.size if moves else 0)

    def orchestrate(self, op: OpParam, rank: Rank[Region, Chunks]) -> None:
        levels, slots = self.levels(op, rank), rank.user_out
        servers = rank.size // int(rank.level0.size)
        column = slots.taken(rank.level0.id * servers, servers)
        rank.main.copy(column[levels.between.plane.id], rank.user_in)
        levels.between.run("all_gather", column)
        levels.inside.all_gather(slots.joined(servers))
        _change_places(rank, slots, places_of(rank))


class ReduceScatterMeshGraphExecutor(Hierarchical):
    """ReduceScatter in scratch, first inside the servers."""

    op = "reduce_scatter"
    algorithm = f"level0:mesh;level1:{choices('reduce_scatter')}"
    modes = (Mode.GRAPH,)
    fidelity = like_april(
        "coll_reduce_scatter_mesh_graph_executor", "reduce_scatter_mesh_atomic"
    ).with_cases({**REDUCING_IN_TURN, **fidelities("reduce_scatter")})

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        levels, slots = self.levels(op, rank), rank.slots(rank.user_out.size)
        servers = rank.size // int(rank.level0.size)
        rank.main.copy(slots.renumbered(places_of(rank)), rank.user_in)
        levels.inside.reduce_scatter(slots.joined(servers))
        column = slots.taken(rank.level0.id * servers, servers)
        levels.between.run("reduce_scatter", column)
        rank.main.copy(rank.user_out, column[levels.between.plane.id])


def places_of(rank: AnyRank) -> tuple[int, ...]:
    """Return the number of every rank's block."""
    devices = int(rank.level0.size)
    servers = rank.size // devices
    return tuple(r % devices * servers + r // devices for r in range(rank.size))


def _change_places(rank: AnyRank, slots: Chunks, places: tuple[int, ...]) -> None:
    """Bring every rank's block to its slot, cycle by cycle."""
    done: set[int] = set()
    for first in range(len(places)):
        if first in done or places[first] == first:
            continue
        spare = rank.scratch.head(slots[first].size)
        rank.main.copy(spare, slots[first])
        to = first
        while places[to] != first:
            rank.main.copy(slots[to], slots[places[to]])
            done.add(to)
            to = places[to]
        rank.main.copy(slots[to], spare)
        done.add(to)
