"""Data of one's own for every peer: all_to_all, broadcast from a root, lists of messages."""

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


class SpinAllToAll:
    """In step k every rank sends to the k-th rank above and receives from the k-th below."""

    op = "all_to_all"
    algorithm = "level0:NA;level1:pairwise"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        return require((op.mode is Mode.OP_BASE, "works through CCL buffers"))

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        return ResourceRequest(
            planes=(PlaneRequest("flat", "mesh"),),
            max_count=rank.ccl_bytes // op.unit // rank.size,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Chunks, Chunks]) -> None:
        n, main, links = rank.size, rank.main, rank.flat
        main.copy(rank.user_out[rank.id], rank.user_in[rank.id])
        for k in range(1, n):
            to, frm = (rank.id + k) % n, (rank.id - k) % n
            staged = rank.ccl_in.head(rank.user_in[to].size)
            main.copy(staged, rank.user_in[to])
            exchange(
                main,
                links[to],
                links[frm],
                staged,
                rank.user_out[frm],
                source=rank.ccl_in,
                land=rank.ccl_out,
            )


class Star:
    """The root hands its data to one rank after the other; one-sided exchanges on both ends."""

    op = "broadcast"
    algorithm = "level0:NA;level1:star"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        return require(
            (op.mode is Mode.OP_BASE, "works through CCL buffers"),
            (topology.size <= 8, "takes 8 ranks at most"),
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        root = op.root

        def spokes(index: int, size: int) -> list[int]:
            return [i for i in range(size) if i != root] if index == root else [root]

        return ResourceRequest(
            planes=(PlaneRequest("flat", spokes),), max_count=rank.ccl_bytes // op.unit
        )

    def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
        links, work = rank.flat, rank.ccl_in.head(rank.user_in.size)
        if rank.id == op.root:
            rank.main.copy(work, rank.user_in)
            for _, link in links.others():
                exchange(rank.main, to=link, send=work)
        else:
            exchange(rank.main, frm=links[op.root], recv=work)
        rank.deliver(work)


class Letters:
    """Messages go one after the other, in the order of the call's list."""

    op = "batch_send_recv"
    algorithm = "level0:NA"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        return require((op.mode is Mode.OP_BASE, "works through CCL buffers"))

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        def peers(index, size):
            pairs = messages(op, size)
            return {a + b - index for a, b in pairs if index in (a, b) and a != b}

        return ResourceRequest(
            planes=(PlaneRequest("flat", peers),), max_count=rank.ccl_bytes // op.unit
        )

    def orchestrate(self, op: OpParam, rank: Rank[Chunks, Chunks]) -> None:
        main, links = rank.main, rank.flat
        sent = received = 0
        for source, destination in messages(op, rank.size):
            if source == destination:
                if rank.id == source:
                    main.copy(rank.user_out[received], rank.user_in[sent])
                    sent, received = sent + 1, received + 1
            elif rank.id == source:
                staged = rank.ccl_in.head(rank.user_in[sent].size)
                main.copy(staged, rank.user_in[sent])
                exchange(main, to=links[destination], send=staged, land=rank.ccl_out)
                sent += 1
            elif rank.id == destination:
                exchange(
                    main,
                    frm=links[source],
                    recv=rank.user_out[received],
                    source=rank.ccl_in,
                    land=rank.ccl_out,
                )
                received += 1


def messages(op, ranks):
    if not op.pairs:
        return [(rank, (rank + 1) % ranks) for rank in range(ranks)]
    return [(pair[0], pair[1]) for pair in op.pairs]
