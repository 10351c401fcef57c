"""The base of the variants: two servers, a mesh in each (level0), a pair across them (level1), and
one CCL buffer, CCL_In.
"""

from abc import ABC, abstractmethod

from hccl_py.orchestration import Chunks, Layout, Region
from hccl_py.plugins.executor import (
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

Work = Rank[Region, Region]


class TwoServers(ABC):
    """An AllReduce in rounds; `slots` lays out the CCL buffer for `count` elements on servers of
    `n` ranks.
    """

    op = "all_reduce"
    algorithm = "level0:mesh"
    workers = 0  # beyond one for each other rank of the server
    barrier = False
    inline = False  # reduces on the way
    halves = False  # needs a power of two
    least = 2  # ranks of a server

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        n = topology.size // 2
        return require(
            (len(topology.servers) == 2 and topology.has_equal_servers, "needs two equal servers"),
            (not topology.has_rdma, "reads peers of the other server"),
            (n >= self.least, f"needs servers of {self.least} ranks or more"),
            (op.mode is Mode.OP_BASE, "op-base mode only"),
            (not self.inline or topology.reduces_inline(op.dtype, op.reduce), "reduces on the way"),
            (not self.halves or n & (n - 1) == 0, "needs a power of two in a server"),
        )

    @abstractmethod
    def slots(self, layout: Layout, count: int, unit: int, n: int) -> object: ...

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        n = int(rank.level0.size)
        return ResourceRequest(
            planes=(
                PlaneRequest("level0", "mesh", barrier=self.barrier),
                PlaneRequest("level1", "mesh"),
            ),
            sub_streams=n - 1 + self.workers if self.workers >= 0 else 0,
            max_count=Layout.max_count(
                rank.ccl_bytes, lambda layout, count: self.slots(layout, count, op.unit, n)
            ),
        )


def even(region: Region, n: int, op: OpParam) -> Chunks:
    """Cut so that the first chunks have one element more."""
    return region.split(n, even=True, unit=op.unit)


def tree(rank: Work, pieces: list[Region]) -> None:
    """Add up by halves, a worker for each pair: pieces[0] becomes the sum."""
    n = 1 << (len(pieces) - 1).bit_length()
    with rank.main.phase("tree"):
        while n > 1:
            n //= 2
            pairs = list(zip(pieces[:n], pieces[n:], strict=False))
            with rank.fork(len(pairs)) as subs:
                for sub, (one, other) in zip(subs, pairs, strict=True):
                    sub.reduce(one, other)
            pieces = pieces[:n]


def finish(rank: Work, slots: Chunks, result: Chunks) -> None:
    """From the server's sum of my part in slots[0] to everything: exchange it with the other server
    through slots[1], add in the order of the servers, and read the others' parts.
    """
    main, mesh, pair = rank.main, rank.level0, rank.level1
    size = result[mesh.id].size
    with main.phase("cross"), pair.right.handshake(main):
        main.copy(slots[1].head(size), pair.right.remote(slots[0].head(size)))
    total = slots[pair.id]
    main.reduce(total.head(size), slots[1 - pair.id].head(size))
    with main.phase("gather"), mesh.fork() as members:
        main.copy(result[mesh.id], total.head(size))
        for sub, p, link in members:
            with link.handshake(sub):
                sub.copy(result[p], link.remote(total.head(result[p].size)))
