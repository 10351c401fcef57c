"""ReduceScatterDeterExecutor: HCCL's reduce-scatter in a fixed order, and of small data on A3."""

from hccl_executors.one_mesh import require_inline_reduce, require_mesh
from hccl_executors.sources import like_april
from hccl_executors.templates.local_reduce import local_halving
from hccl_executors.templates.mesh_collect import ALIGN, Places, collect_beside
from hccl_executors.templates.recursive_halving import recursive_halving_reduce_scatter
from hccl_py.enums import Buffer
from hccl_py.orchestration import Chunks, Region
from hccl_py.plugins.executor import (
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

SMALL = 32 << 10
"""Bytes of a chunk up to which A2 halves."""

FEW = 3
"""Sub streams over several servers, of which one is used."""


class ReduceScatterDeterExecutor(BaseExecutor):
    """ReduceScatter whose sums do not depend on timing, in two forms.

    Halving: chunks of at most 32 KiB among 4 or 8 devices of A2 in op-base mode, and several
    servers of A3. Collecting: everything else, in one server; chunks come to lie side by side and
    are reduced by halves. HCCL also halves in one server of A3 with a power of two, where the host
    makes the tasks (HCCL_OP_EXPANSION_MODE=HOST).

    A round of the halving form takes 2/p of a CCL buffer in bytes; HCCL takes that for elements,
    which its selection never lets come to be.
    """

    op = "reduce_scatter"
    algorithm = "level0:mesh"
    fidelity = like_april(
        "coll_reduce_scatter_deter_executor",
        "reduce_scatter_local_reduce",
        "reduce_scatter_hd_stage",
    )

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs SDMA links that reduce, in one server a full mesh, over several a power of two."""
        ranks = topology.size
        inline = require_inline_reduce(op, topology) and require(
            (ranks > 1, "needs two ranks, there is one")
        )
        if topology.product.device != "910_93" or topology.is_single_server:
            return require_mesh(topology) and inline
        return inline and require(
            (not topology.has_rdma, "reads from partners: SDMA links only"),
            (not ranks & (ranks - 1), f"needs a power of two ranks, there are {ranks}"),
            (ranks > 2, "needs two steps over several servers: 4 ranks, there are 2"),
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links to all peers; in graph mode scratch as large as the input."""
        graph, one = op.mode is Mode.GRAPH, rank.topology.is_single_server
        pair = (Buffer.USER_IN, Buffer.SCRATCH) if graph else (None, None)
        return ResourceRequest(
            planes=(PlaneRequest("level0" if one else "flat", "mesh", *pair),),
            sub_streams=rank.size - 1 - graph if one else FEW,
            scratch_bytes=op.size * rank.size if graph else 0,
            max_count=_count(op, rank),
        )

    def orchestrate(self, op: OpParam, rank: Rank[Chunks, Region]) -> None:
        """Halve, or collect and reduce into the output."""
        memory = rank.scratch if op.mode is Mode.GRAPH else rank.ccl_out
        plane = rank.level0 if rank.topology.is_single_server else rank.flat
        if _halves(op, rank.topology):
            recursive_halving_reduce_scatter(rank, plane, rank.user_in, memory, rank.user_out)
            return
        places = Places(memory, rank.user_in.largest, op.size, rank.size)
        theirs = collect_beside(rank, plane, rank.user_in, rank.user_out, places)
        local_halving(rank, [rank.user_out, *theirs])


def _halves(op: OpParam, topology: Topology) -> bool:
    """True if this call takes the halving form."""
    if topology.product.device == "910_93":
        return not topology.is_single_server
    return op.mode is Mode.OP_BASE and op.size <= SMALL and topology.size in (4, 8)


def _count(op: OpParam, rank: RankView) -> int:
    """Return the elements of a round's chunk; HCCL's for collecting counts in elements what are
    bytes, and takes no round at all where a buffer has less than 16 KiB for each rank.
    """
    if _halves(op, rank.topology):
        return 2 * rank.ccl_bytes // rank.size // op.unit
    peers = rank.size - 1
    hccl = (rank.ccl_bytes - ALIGN * rank.size) // op.unit // peers // ALIGN * ALIGN
    return hccl if hccl > 0 else rank.ccl_bytes // peers // 128 * 128 // op.unit
