"""AllGatherMeshOpbaseExecutor: the hello-world of HCCL algorithm development."""

from hccl_executors.one_mesh import in_one_mesh_in_op_base_mode
from hccl_py.executor import (
    OpParam,
    PlaneRequest,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
)
from hccl_py.orchestration import Chunks, Region

__all__ = ["AllGatherMeshOpbaseExecutor"]


class AllGatherMeshOpbaseExecutor:
    """AllGather inside one server whose ranks form a full mesh, in op-base mode.

    Each rank stages its input in its own CCL_Out. Then all links work at once: one sub stream per
    peer reads that peer's CCL_Out into this rank's output. For 4 ranks: 29 tasks a rank, 12 of them
    waits; 3 sub streams, 6 notifies.
    """

    op = "all_gather"
    algorithm = "level0:mesh"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs one server with a full mesh, and CCL buffers."""
        return in_one_mesh_in_op_base_mode(op, topology)

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """One sub stream and one link per peer; a round fills CCL_Out but for one block of
        alignment.
        """
        return ResourceRequest(
            planes=(PlaneRequest("level0", "mesh"),),
            sub_streams=rank.level0.size - 1,
            max_count=(rank.ccl_bytes - 16384) // 128 * 128 // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Region, Chunks]) -> None:
        """Stage, then read from everyone: five tasks per link, the same at both ends."""
        staged = rank.ccl_out.head(rank.user_in.size)
        rank.main.copy(staged, rank.user_in)
        with rank.main.phase("all-gather"), rank.level0.fork() as subs:
            rank.main.copy(rank.user_out[rank.level0.id], staged)
            for sub, peer, link in subs:
                link.tx_ack(sub)  # mine is staged: you may read it
                link.rx_ack(sub)  # yours is staged: I may read it
                sub.copy(rank.user_out[peer], link.remote(staged))
                link.tx_data_signal(sub)  # I have read yours
                link.rx_data_signal(sub)  # you have read mine
