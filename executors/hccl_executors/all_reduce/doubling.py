"""AllReduceDoubling: partners exchange whole buffers, for small data and powers of two."""

from hccl_executors.sources import like_april
from hccl_executors.templates.doubling import doubling_all_reduce
from hccl_py.enums import Buffer
from hccl_py.orchestration import Region
from hccl_py.plugins.executor import (
    AnyRank,
    BaseExecutor,
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


def can_double(op: OpParam, topology: Topology) -> bool | Unsuitable:
    """Demand a power of two ranks, and links that reduce."""
    size = topology.size
    inline = topology.reduces_inline(op.dtype, op.reduce)
    return require(
        (not size & (size - 1), f"needs a power of two ranks, there are {size}"),
        (inline, f"needs links that reduce {op.dtype.value} on their way"),
    )


class AllReduceDoubling(BaseExecutor):
    """AllReduce of small data in log2 p steps, on one stream.

    Partners go by number, in a server of eight 910A by their place on its first ring. In graph mode
    partners read a copy in scratch, as large as the data; HCCL asks for none.
    """

    op = "all_reduce"
    algorithm = "level0:NA;level1:H-D_R"
    fidelity = like_april("310P/coll_all_reduce_for_310p_doubling_executor", "all_reduce_doubling")

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs a power of two ranks, and links that reduce."""
        return can_double(op, topology)

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links to the partners; a round fills CCL_In."""
        graph = op.mode is Mode.GRAPH and rank.size > 1
        pair = (Buffer.USER_OUT, Buffer.SCRATCH) if graph else (None, None)
        return ResourceRequest(
            planes=(PlaneRequest(ring_plane(rank), "rhd", *pair),),
            scratch_bytes=op.size if graph else 0,
            max_count=rank.ccl_bytes // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
        """Stage, double, deliver."""
        work = rank.stage_in()
        doubling_all_reduce(rank.main, rank.plane(ring_plane(rank)), work)
        rank.deliver(work)


def ring_plane(rank: RankView | AnyRank) -> str:
    """Return the plane whose indices pair the ranks: the first ring of eight 910A, where each of
    its neighbours is a partner.
    """
    return "ring0" if rank.topology.level0 == "8p_ring" and rank.size == 8 else "flat"
