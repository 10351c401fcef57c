"""all_gather on two levels, with slots taken several at once; and a ring in two parts."""

from hccl_py.executor import (
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
from hccl_py.orchestration.bundles import Bundles


def ring_gather(stream, ring, chunks):
    """Pass on what the ring's members have, one chunk (or bundle) a step."""
    n = ring.size
    for step in range(n - 1):
        with stream.phase(f"pass on {step + 1}/{n - 1}"):
            exchange(
                stream,
                ring.right,
                ring.left,
                send=chunks[(ring.id - step) % n],
                recv=chunks[(ring.id - 1 - step) % n],
            )


class TwoLevelGather:
    """Rings between servers hand on one slot a rank, then rings inside servers what came."""

    op = "all_gather"
    algorithm = "level0:ring;level1:ring"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        servers, each = len(topology.servers), topology.servers[0]
        by_server = [rank // each for rank in range(topology.size)]
        return require(
            (topology.is_even, "needs servers alike"),
            (servers > 1, "needs several servers"),
            (list(topology.server) == by_server, "needs ranks numbered server by server"),
            (topology.size == servers * each, "needs full servers"),
            (len(set(topology.servers)) == 1, "needs servers alike"),
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        return ResourceRequest(
            planes=(PlaneRequest("level0", "ring"), PlaneRequest("level12", "ring")),
            max_count=rank.ccl_bytes // (op.unit * rank.size),
        )

    def orchestrate(self, op: OpParam, rank: Rank[Region, Chunks]) -> None:
        inside, between = rank.level0, rank.level12
        d, s = int(inside.size), int(between.size)
        slots = rank.stage_out()
        rank.main.copy(slots[rank.id], rank.user_in)
        if rank.id == 0:
            blocks = slots.joined(d)
            assert len(blocks) == s
            assert blocks.largest == slots.taken(0, d).largest * d
        ring_gather(rank.main, between, Bundles(slots, inside.id, d, s))
        ring_gather(rank.main, inside, Bundles(slots, 0, 1, d, [k * d for k in range(s)]))
        rank.deliver(slots)


class TwoPartRing:
    """Two halves of every slot go round in opposite directions, on a stream each."""

    op = "all_gather"
    algorithm = "level0:NA;level1:ring"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        return require((topology.size > 2, "needs 3 ranks"))

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        return ResourceRequest(
            planes=(PlaneRequest("flat", "ring"),),
            sub_streams=1,
            max_count=rank.ccl_bytes // (op.unit * rank.size),
        )

    def orchestrate(self, op: OpParam, rank: Rank[Region, Chunks]) -> None:
        n, ring = rank.size, rank.flat
        slots = rank.stage_out()
        rank.main.copy(slots[rank.id], rank.user_in)
        right, left = slots.parts(2)
        backwards = left.renumbered(tuple(range(n))[::-1])
        with rank.fork(1) as (sub,):
            ring_gather(rank.main, ring, right)
            for step in sub.steps("back", n - 1):
                mine, comes = (n - 1 - rank.id - step) % n, (n - 2 - rank.id - step) % n
                exchange(sub, ring.left, ring.right, send=backwards[mine], recv=backwards[comes])
        rank.deliver(slots)
