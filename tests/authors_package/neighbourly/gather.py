"""all_gather as the documentation teaches it: over a mesh, among neighbours, in turns."""

from hccl_py.executor import (
    Mode,
    OpParam,
    PlaneRequest,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)
from hccl_py.orchestration import Chunks, Region, exchange


class MeshGather:
    """Every rank stages its input in CCL_Out; then every rank reads from all others at once."""

    op = "all_gather"
    algorithm = "level0:mesh"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        return require(
            (topology.has_mesh, "needs every device linked to every other one"),
            (topology.is_single_server, "needs one server"),
            (op.mode is Mode.OP_BASE, "works through CCL buffers: op-base mode only"),
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        return ResourceRequest(
            planes=(PlaneRequest("level0", "mesh"),),
            sub_streams=rank.level0.size - 1,
            max_count=rank.ccl_bytes // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Region, Chunks]) -> None:
        mesh = rank.level0
        staged = rank.ccl_out.head(rank.user_in.size)
        rank.main.copy(staged, rank.user_in)
        with mesh.fork() as subs:
            rank.main.copy(rank.user_out[mesh.id], staged)
            for sub, peer, link in subs:
                link.tx_ack(sub)
                link.rx_ack(sub)
                sub.copy(rank.user_out[peer], link.remote(staged))
                link.tx_data_signal(sub)
                link.rx_data_signal(sub)


class NeighborExchange:
    """Pairs of ranks swap their blocks; then pairs of blocks travel, by turns left and right."""

    op = "all_gather"
    algorithm = "level0:NA;level1:ring"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        return require((topology.size % 2 == 0, "needs an even number of ranks"))

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        return ResourceRequest(
            planes=(PlaneRequest("flat", "ring"),),
            max_count=rank.ccl_bytes // rank.size // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Region, Chunks]) -> None:
        n, ring, main = rank.size, rank.flat, rank.main
        slots = rank.stage_out()
        main.copy(slots[rank.id], rank.user_in)
        if rank.id % 2 == 0:
            mate, other, side, neighbour = ring.right, ring.left, -1, rank.id + 1
        else:
            mate, other, side, neighbour = ring.left, ring.right, +1, rank.id - 1
        with main.phase("swap"):
            exchange(main, mate, mate, send=slots[rank.id], recv=slots[neighbour])
        pair = last = rank.id // 2 * 2
        for step in main.steps("pass on", n // 2 - 1):
            link, way = (other, side) if step % 2 == 0 else (mate, -side)
            comes = (pair + 2 * way * (step // 2 + 1)) % n
            exchange(
                main, link, link, send=slots.series(last, 1, 2), recv=slots.series(comes, 1, 2)
            )
            last = comes
        rank.deliver(slots)


class Turns:
    """Every rank reads one peer after the other; nothing is typed here."""

    op = "all_gather"
    algorithm = "level0:mesh"

    def suits(self, op, topology):
        if not topology.is_single_server:
            return Unsuitable("needs one server")
        return op.mode is Mode.OP_BASE and topology.size <= 8

    def resources(self, op, rank):
        return ResourceRequest(
            planes=(PlaneRequest("flat", "mesh"),), max_count=rank.ccl_bytes // op.unit
        )

    def orchestrate(self, op, rank):
        n, links = rank.size, rank.flat
        staged = rank.ccl_in.head(rank.user_in.size)
        rank.main.copy(staged, rank.user_in)
        rank.main.copy(rank.user_out[rank.id], staged)
        for k in range(1, n):
            to, frm = (rank.id + k) % n, (rank.id - k) % n
            exchange(
                rank.main,
                links[to],
                links[frm],
                staged,
                rank.user_out[frm],
                source=rank.ccl_in,
                land=rank.ccl_out,
            )
