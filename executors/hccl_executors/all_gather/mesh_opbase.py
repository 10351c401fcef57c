"""AllGatherMeshOpbaseExecutor: the hello-world of HCCL algorithm development."""

from hccl_executors.one_mesh import require_mesh_op_base
from hccl_executors.sources import like_april
from hccl_executors.templates.mesh_collect import ALIGN
from hccl_executors.templates.mesh_peers import empty_copy, exchange_acks, peer_assignments
from hccl_py.orchestration import Chunks, Region
from hccl_py.plugins.executor import (
    BaseExecutor,
    OpParam,
    PlaneRequest,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
)
from hccl_py.values import RankInt


class AllGatherMeshOpbaseExecutor(BaseExecutor):
    """AllGather inside one server whose ranks form a full mesh, in op-base mode.

    Each rank stages its input in its own CCL_Out, as far behind a multiple of 16 KiB as the
    destination in the output lies. Sub streams, one per peer, first meet the peers; main waits for
    them; then they read the peers' CCL_Out into this rank's output. For 4 ranks: 43 tasks a rank,
    18 of them waits; 3 sub streams, 6 notifies. The hello-world article shows it in 29 tasks, with
    one fork for both.
    """

    op = "all_gather"
    algorithm = "level0:mesh"
    fidelity = like_april("coll_all_gather_mesh_opbase_executor", "all_gather_mesh_direct")

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs one server with a full mesh, and CCL buffers."""
        return require_mesh_op_base(op, topology)

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """One sub stream and one link per peer; a round fills CCL_Out but for one block of
        alignment.
        """
        return ResourceRequest(
            planes=(PlaneRequest("level0", "mesh"),),
            sub_streams=rank.level0.size - 1,
            max_count=(rank.ccl_bytes - ALIGN) // 128 * 128 // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Region, Chunks]) -> None:
        """Stage the input, exchange Acks with all peers, read from all peers."""
        if rank.size == 1:
            if not op.in_place:
                rank.main.copy(rank.user_out[0], rank.user_in)
            return
        own = _staged(op, rank, rank.id)
        rank.main.copy(own, rank.user_in)
        peers = peer_assignments(rank, rank.level0, ahead=False)
        with rank.main.phase("all-gather"):
            with rank.fork():
                exchange_acks(peers)
            empty_copy(rank, rank.ccl_out)
            with rank.fork():
                rank.main.copy(rank.user_out[rank.id], own)
                for stream, peer, link in peers:
                    stream.copy(rank.user_out[peer], link.remote(_staged(op, rank, peer)))
                    link.tx_data_signal(stream)  # I have read yours
                    link.rx_data_signal(stream)  # you have read mine
            empty_copy(rank, rank.ccl_out)


def _staged(op: OpParam, rank: Rank[Region, Chunks], owner: RankInt) -> Region:
    """Return the part of CCL_Out in which a rank stages its input."""
    start = owner * op.size % ALIGN
    return rank.ccl_out[start : start + rank.user_in.size]
