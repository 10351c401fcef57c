"""HCCL's executors for servers of mixed devices, as far as they are Atlas A2: a mesh inside the
servers, NHR between them, and a stream more than the mesh needs.

all_reduce and broadcast are those of other servers. all_gather goes between the servers first, so
the mesh reads straight into the user's output; reduce_scatter goes there last, so the mesh adds
straight from the user's input. In the mesh a sub stream serves each peer, with a chunk per server.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hccl_executors.hierarchical import REDUCING_IN_TURN, ROOTLESS, Hierarchical
from hccl_executors.levels import LEVELS
from hccl_executors.outer_levels import OuterLevel, all_servers
from hccl_executors.sources import hccl_executor, hccl_template
from hccl_executors.staging import staged
from hccl_executors.templates.mesh_meetings import meet, nothing, sides
from hccl_executors.templates.mesh_reduce import mesh_reduce_scatter_in_turn
from hccl_executors.two_levels import column
from hccl_py.orchestration import Chunks, Region
from hccl_py.plugins.executor import (
    Mode,
    OpParam,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)
from hccl_py.plugins.fidelity import Fidelity, SourceFile, joined, ours, same, steps
from hccl_py.values import RankInt

__all__ = [
    "AllGatherMixExecutor",
    "AllReduceMixExecutor",
    "BroadCastMixExecutor",
    "ReduceScatterMixExecutor",
]


def _with_nhr(op: str, *sources: SourceFile) -> Fidelity:
    """Return how an executor stands to HCCL's that is the same but for what NHR is."""
    return joined([same(*sources), LEVELS[op]["NHR"].fidelity])


class AllReduceMixExecutor(Hierarchical):
    """AllReduce in three phases."""

    op = "all_reduce"
    algorithm = "level0:mesh;level1:NHR"
    spare = 1
    meeting = True
    fidelity = _with_nhr(
        "all_reduce",
        hccl_executor("coll_all_reduce/coll_all_reduce_mix_executor.cc"),
        hccl_template("temp_all_gather/all_gather_mesh_atomic.cc"),
        hccl_template("temp_reduce_scatter/reduce_scatter_mesh_atomic.cc"),
    ).with_cases(
        {
            **REDUCING_IN_TURN,
            "servers": steps(
                "Up to 256 KiB for a device, HCCL's barrier behind the steps of a tree goes over a "
                "link that is not there; it is left out.",
                hccl_template("temp_reduce/reduce_nhr_oneshot.cc"),
            ),
        }
    )


class BroadCastMixExecutor(Hierarchical):
    """Broadcast in three phases."""

    op = "broadcast"
    algorithm = "level0:mesh;level1:NHR"
    spare = 1
    fidelity = _with_nhr(
        "broadcast",
        hccl_executor("coll_broadcast/coll_broadcast_mix_executor.cc"),
        hccl_template("temp_scatter/scatter_mesh.cc"),
        hccl_template("temp_all_gather/all_gather_mesh_atomic.cc"),
    ).with_cases({"servers": ROOTLESS})


class _Columns(Hierarchical):
    """What two levels do in slots, device d having a column of slots, one of every server."""

    spare = 1
    meeting = True

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """The same; user memory is read and added from over SDMA."""
        return super().suits(op, topology) and require(
            (topology.has_sdma_inside, "needs SDMA between all devices of a server")
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """The same; slots need not be multiples of 128 bytes."""
        asked = super().resources(op, rank)
        return replace(asked, max_count=rank.ccl_bytes // (rank.size * op.unit))

    def _column(self, rank: Rank[Any, Any], slots: Chunks, device: RankInt) -> Chunks:
        return column(slots, device, int(rank.level0.size))

    def between(self, op: OpParam, rank: Rank[Any, Any], slots: Chunks) -> None:
        """Run the op on this rank's column."""
        plane = rank.plane(all_servers(rank))
        OuterLevel(rank.main, plane, op.level1, meeting=self.meeting).run(
            op.name, self._column(rank, slots, rank.level0.id)
        )


class AllGatherMixExecutor(_Columns):
    """AllGather between the servers, then inside them."""

    op = "all_gather"
    algorithm = "level0:mesh;level1:NHR"
    fidelity = _with_nhr(
        "all_gather",
        hccl_executor("coll_all_gather/coll_all_gather_mix_executor.cc"),
        hccl_template("temp_all_gather/all_gather_mesh_mix.cc"),
    ).with_cases({"graph": ours("HCCL's template reads through a null pointer in graph mode.")})

    def orchestrate(self, op: OpParam, rank: Rank[Region, Chunks]) -> None:
        """Stage, gather between the servers, read everybody's column."""
        mesh, slots = rank.level0, staged(op, rank)
        self.between(op, rank, slots)
        members = sides(rank, mesh, ahead=False)
        with rank.main.phase("all-gather inside"):
            with rank.fork(len(members)):
                meet(members)
            nothing(rank, slots[0])
            with rank.fork(len(members)):
                if op.mode is Mode.OP_BASE:
                    self._copied(rank, slots)
                for stream, peer, link in members:
                    theirs = self._column(rank, slots, peer)
                    stream.copy(self._column(rank, rank.user_out, peer), link.remote(theirs))
                    link.tx_data_signal(stream)
                    link.rx_data_signal(stream)
            nothing(rank, slots[0])

    def _copied(self, rank: Rank[Region, Chunks], slots: Chunks) -> None:
        own = rank.level0.id
        rank.main.copy(self._column(rank, rank.user_out, own), self._column(rank, slots, own))


class ReduceScatterMixExecutor(_Columns):
    """ReduceScatter inside the servers, then between them. In graph mode, and where sums must not
    depend on timing or links cannot add, all input is staged, and the mesh adds in turns.
    """

    op = "reduce_scatter"
    algorithm = "level0:mesh;level1:NHR"
    fidelity = _with_nhr(
        "reduce_scatter",
        hccl_executor("coll_reduce_scatter/coll_reduce_scatter_mix_executor.cc"),
        hccl_template("temp_reduce_scatter/reduce_scatter_mesh_mix.cc"),
    ).with_cases({**REDUCING_IN_TURN, "graph": REDUCING_IN_TURN["deterministic"]})

    def orchestrate(self, op: OpParam, rank: Rank[Chunks, Region]) -> None:
        """Add everybody's column, reduce between the servers, deliver."""
        direct = op.mode is Mode.OP_BASE and rank.inline_reduce and not op.deterministic
        slots = self._added(rank) if direct else self._added_in_turn(op, rank)
        self.between(op, rank, slots)
        rank.main.copy(rank.user_out, slots[rank.id])

    def _added(self, rank: Rank[Chunks, Region]) -> Chunks:
        slots, own = rank.slots(rank.user_out.size), rank.level0.id
        members = sides(rank, rank.level0)
        with rank.main.phase("reduce-scatter inside"):
            mine = self._column(rank, slots, own)
            rank.main.copy(mine, self._column(rank, rank.user_in, own))
            with rank.fork(len(members)):
                meet(members)
            nothing(rank, slots[0])
            with rank.fork(len(members)):
                for stream, peer, link in members:
                    theirs = link.remote(self._column(rank, slots, peer))
                    stream.reduce(theirs, self._column(rank, rank.user_in, peer))
                    link.tx_data_signal(stream)
                    link.rx_data_signal(stream)
            nothing(rank, slots[0])
        return slots

    def _added_in_turn(self, op: OpParam, rank: Rank[Chunks, Region]) -> Chunks:
        slots: Chunks = staged(op, rank)
        n, servers = int(rank.level0.size), len(slots) // int(rank.level0.size)
        for server in range(servers):
            mesh_reduce_scatter_in_turn(rank, rank.level0, slots.taken(server * n, n))
        return slots
