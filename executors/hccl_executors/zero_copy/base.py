"""Base of executors on registered user memory.

In op-base mode data usually goes through CCL buffers, because users' memory is another one in every
call. Where it is registered with all ranks (`Communicator(zero_copy=True)`), neighbours in a server
read it themselves, so level0 takes all data in one round and copies nothing. Between servers data
goes through CCL buffers as ever, in rounds of what they hold:

    reduce_scatter, all_reduce, broadcast    level0; then per round: in, level1, level2, out
    all_gather                               per round: in, level2, level1, out; then level0

In a server with two rings, all_gather and reduce_scatter march (`templates/march.py`), the others
run two aligned rings. As HCCL documents, reductions overwrite the caller's input.

Source: src/legacy/ascend910/algorithm of hcomm (8958adb), impl/coll_executor: *_ring_zerocopy_*.cc,
and the branches isZeroCopy of coll_{all_gather,all_reduce,broadcast,reduce_scatter}_executor.cc.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

from hccl_executors.levels import fidelities
from hccl_executors.outer_levels import OuterLevel, links
from hccl_executors.rings.orders import between
from hccl_executors.sources import like_newest
from hccl_executors.templates.march import march_all_gather, march_reduce_scatter
from hccl_executors.templates.ring import ring_all_gather, ring_reduce_scatter
from hccl_py.enums import Buffer
from hccl_py.errors import OrchestrationError
from hccl_py.orchestration import Chunks, Plane
from hccl_py.orchestration.region import SLICE_ALIGN
from hccl_py.plugins.executor import (
    AnyRank,
    BaseExecutor,
    Fidelity,
    Mode,
    OpParam,
    PlaneRequest,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)

REGISTERED = (Buffer.USER_IN, Buffer.USER_OUT)


class RegisteredRings(BaseExecutor):
    """Rings on user memory in the servers, `op.level1` and `op.level2` between them."""

    op: str
    zero_copy = True
    in_place = True

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs servers of several devices and superpods alike, op-base mode, inline reduce."""
        level0 = topology.level0
        return require(
            (op.mode is Mode.OP_BASE, "graph mode has user memory registered anyway"),
            (topology.product.device == "910_93", "registered memory is A3's"),
            (topology.is_even, "needs servers alike, and superpods alike"),
            (topology.servers[0] > 1, "needs several devices in a server"),
            (topology.has_sdma_inside, "needs SDMA between all devices of a server"),
            (level0 != "8p_ring", "goes round one ring or two, and a server of 8 has four"),
            (
                op.reduce is None or topology.product.reduces_inline(op.dtype, op.reduce),
                "needs links in a server that reduce: there is nowhere to land",
            ),
            (self.in_place or not op.in_place, "keeps data in the input while it writes output"),
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links on all planes, those in a server to user memory."""
        if not self.most(op, rank):
            raise OrchestrationError(
                "The CCL buffer does not hold one element of every server.",
                "Set HCCL_BUFFSIZE to a larger number of MB.",
            )
        return ResourceRequest(
            planes=(*self.inside(rank), *self.outside(op, rank)), sub_streams=self.sub_streams(rank)
        )

    @abstractmethod
    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        """Record all rounds."""

    @abstractmethod
    def sub_streams(self, rank: RankView) -> int:
        """Return the number of sub streams that HCCL requests."""

    def inside(self, rank: RankView) -> list[PlaneRequest]:
        """Return the links in a server."""
        return [PlaneRequest("level0", "ring", *REGISTERED)]

    def outside(self, op: OpParam, rank: RankView) -> list[PlaneRequest]:
        """Return the links between servers."""
        outer = [(rank.plane(name), word) for name, word in between(op, rank)]
        return [
            PlaneRequest(asked.level, asked.pattern, rdma=asked.rdma)
            for asked in links(op.name, outer, op.root or 0)
        ]

    def most(self, op: OpParam, rank: RankView | AnyRank) -> int:
        """Return the most elements of the op's count in one round."""
        servers = len(rank.topology.servers)
        return rank.ccl_bytes // servers // SLICE_ALIGN * SLICE_ALIGN // op.unit

    def rounds(self, op: OpParam, rank: AnyRank, count: int) -> Iterator[tuple[int, int]]:
        """Yield the start and the size of every round, in bytes; nothing in one server."""
        if len(rank.topology.servers) > 1:
            most = self.most(op, rank)
            for start in range(0, count, most):
                yield start * op.unit, min(most, count - start) * op.unit


def outer_levels(op: OpParam, rank: AnyRank) -> list[OuterLevel]:
    """Return the planes between servers that have several members, from inside to outside."""
    planes = between(op, rank)
    return [OuterLevel(rank.main, rank.plane(name), word, meeting=True) for name, word in planes]


def planes_of(rank: AnyRank) -> Sequence[Plane]:
    """Return the three planes, from inside to outside."""
    return (rank.level0, rank.level1, rank.level2)


def all_gather_inside(rank: AnyRank, slots: Chunks) -> None:
    """Leave in every device of a server all slots, in registered memory."""
    if len(rank.rings) > 1:
        march_all_gather(rank, slots)
    else:
        ring_all_gather(rank.main, rank.level0, slots)


def reduce_scatter_inside(rank: AnyRank, slots: Chunks, unit: int) -> None:
    """Leave in slot d of device d the reduction of its server's, in registered memory."""
    if len(rank.rings) > 1:
        march_reduce_scatter(rank, slots, unit)
    else:
        ring_reduce_scatter(rank.main, rank.level0, slots)


def like_hccl(op: str, *files: str, **cases: Fidelity) -> Fidelity:
    """Return that an executor is HCCL's, but for words of HCCL_ALGO: its files, and its base's."""
    found = like_newest(*files, f"coll_{op}_executor", "coll_comm_executor")
    return found.with_cases({**fidelities(op), **cases})
