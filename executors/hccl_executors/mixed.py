"""HCCL's executors for servers of mixed devices, as far as they are Atlas A2: a mesh inside the
servers, NHR between them, and a stream more than the mesh needs.

all_reduce and broadcast are those of other servers. all_gather goes between the servers first, so
the mesh reads straight into the user's output; reduce_scatter goes there last, so the mesh adds
straight from the user's input. In the mesh a sub stream serves each peer, with a chunk per server.
"""

from __future__ import annotations

from dataclasses import replace

from hccl_executors.hierarchical import REDUCING_IN_TURN, ROOTLESS, Hierarchical
from hccl_executors.levels import LEVELS
from hccl_executors.outer_levels import OuterLevel, all_servers
from hccl_executors.sources import like_april
from hccl_executors.staging import staged
from hccl_executors.templates.mesh_peers import empty_copy, exchange_acks, peer_assignments
from hccl_executors.templates.mesh_reduce import mesh_reduce_scatter_in_turn
from hccl_executors.two_levels import column
from hccl_py.orchestration import Chunks, Region
from hccl_py.plugins.executor import (
    AnyRank,
    Fidelity,
    Mode,
    OpParam,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    ours,
    require,
)
from hccl_py.plugins.fidelity import joined
from hccl_py.values import RankInt


def _with_nhr(op: str, *names: str) -> Fidelity:
    """Return the fidelity of an executor that is HCCL's but for its NHR."""
    return joined([like_april(*names), LEVELS[op]["NHR"].fidelity])


class AllReduceMixExecutor(Hierarchical):
    """AllReduce in three phases."""

    op = "all_reduce"
    algorithm = "level0:mesh;level1:NHR"
    spare = 1
    meeting = True
    fidelity = _with_nhr(
        "all_reduce",
        "coll_all_reduce_mix_executor",
        "all_gather_mesh_atomic",
        "reduce_scatter_mesh_atomic",
    ).with_cases(REDUCING_IN_TURN)


class BroadCastMixExecutor(Hierarchical):
    """Broadcast in three phases."""

    op = "broadcast"
    algorithm = "level0:mesh;level1:NHR"
    spare = 1
    fidelity = _with_nhr(
        "broadcast", "coll_broadcast_mix_executor", "scatter_mesh", "all_gather_mesh_atomic"
    ).with_cases({"servers": ROOTLESS})


class _Columns(Hierarchical):
    """Two levels on slots, where device d has a column of slots, one from every server."""

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

    def _column(self, rank: AnyRank, slots: Chunks, device: RankInt) -> Chunks:
        return column(slots, device, int(rank.level0.size))

    def between(self, op: OpParam, rank: AnyRank, slots: Chunks) -> None:
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
        "all_gather", "coll_all_gather_mix_executor", "all_gather_mesh_mix"
    ).with_cases({"graph": ours("HCCL's template reads through a null pointer in graph mode.")})

    def orchestrate(self, op: OpParam, rank: Rank[Region, Chunks]) -> None:
        """Stage, gather between the servers, read the columns of all devices."""
        mesh, slots = rank.level0, staged(op, rank)
        self.between(op, rank, slots)
        members = peer_assignments(rank, mesh, ahead=False)
        with rank.main.phase("all-gather inside"):
            with rank.fork(len(members)):
                exchange_acks(members)
            empty_copy(rank, slots[0])
            with rank.fork(len(members)):
                if op.mode is Mode.OP_BASE:
                    self._copied(rank, slots)
                for stream, peer, link in members:
                    theirs = self._column(rank, slots, peer)
                    stream.copy(self._column(rank, rank.user_out, peer), link.remote(theirs))
                    link.tx_data_signal(stream)
                    link.rx_data_signal(stream)
            empty_copy(rank, slots[0])

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
        "reduce_scatter", "coll_reduce_scatter_mix_executor", "reduce_scatter_mesh_mix"
    ).with_cases({**REDUCING_IN_TURN, "graph": REDUCING_IN_TURN["deterministic"]})

    def orchestrate(self, op: OpParam, rank: Rank[Chunks, Region]) -> None:
        """Add the columns of all devices, reduce between the servers, deliver."""
        direct = op.mode is Mode.OP_BASE and rank.inline_reduce and not op.deterministic
        slots = self._added(rank) if direct else self._added_in_turn(op, rank)
        self.between(op, rank, slots)
        rank.main.copy(rank.user_out, slots[rank.id])

    def _added(self, rank: Rank[Chunks, Region]) -> Chunks:
        slots, own = rank.slots(rank.user_out.size), rank.level0.id
        members = peer_assignments(rank, rank.level0)
        with rank.main.phase("reduce-scatter inside"):
            mine = self._column(rank, slots, own)
            rank.main.copy(mine, self._column(rank, rank.user_in, own))
            with rank.fork(len(members)):
                exchange_acks(members)
            empty_copy(rank, slots[0])
            with rank.fork(len(members)):
                for stream, peer, link in members:
                    theirs = link.remote(self._column(rank, slots, peer))
                    stream.reduce(theirs, self._column(rank, rank.user_in, peer))
                    link.tx_data_signal(stream)
                    link.rx_data_signal(stream)
            empty_copy(rank, slots[0])
        return slots

    def _added_in_turn(self, op: OpParam, rank: Rank[Chunks, Region]) -> Chunks:
        slots: Chunks = staged(op, rank)
        n, servers = int(rank.level0.size), len(slots) // int(rank.level0.size)
        for server in range(servers):
            mesh_reduce_scatter_in_turn(rank, rank.level0, slots.taken(server * n, n))
        return slots
