"""AllReduceMeshSmallCountExecutor: HCCL's choice for small data inside one server."""

from typing import NamedTuple

from hccl_executors.one_mesh import mesh_request, require_inline_reduce, require_mesh
from hccl_executors.sources import like_april
from hccl_executors.templates.doubling import direct_doubling_all_reduce, doubling_all_reduce
from hccl_executors.templates.mesh_star import star_all_reduce_added, star_all_reduce_collected
from hccl_executors.templates.recursive_doubling import recursive_doubling_all_reduce, slots_needed
from hccl_py.enums import Buffer
from hccl_py.orchestration import Region
from hccl_py.plugins.executor import (
    BaseExecutor,
    Mode,
    OpParam,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)


class Form(NamedTuple):
    """One of the executor's algorithms: how many times the data its memory holds, and how many of
    them are scratch in graph mode.
    """

    name: str
    slots: int
    in_scratch: int


class AllReduceMeshSmallCountExecutor(BaseExecutor):
    """AllReduce of small data inside one full mesh, whole buffers in every step.

    Atlas A3: recursive doubling in slots. Elsewhere every rank adds at rank 0, as data comes, and
    reads the sum there; where the call asks for sums in a fixed order, 8 ranks double directly, and
    others collect at rank 0.

    HCCL cuts nothing: here a round takes what a CCL buffer holds. Doubling in graph mode shows
    partners a copy in scratch; HCCL's overwrites the caller's input.
    """

    op = "all_reduce"
    algorithm = "level0:mesh"
    fidelity = like_april(
        "coll_all_reduce_mesh_small_count_executor",
        "all_reduce_reduce_broadcast",
        "all_reduce_local_reduce_bcast",
        "all_reduce_hd_optim",
        "all_reduce_doubling",
    )

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs one server with a full mesh that reduces, on A3 two sub streams."""
        ranks, least = topology.size, 4 if op.mode is Mode.GRAPH else 3
        enough = topology.product.device != "910_93" or ranks >= least
        fits = require_mesh(topology) and require_inline_reduce(op, topology)
        return fits and require(
            (enough, f"needs two sub streams on Atlas A3: {least} ranks, there are {ranks}")
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """A stream and a link per peer; slots in CCL_Out, or in scratch in graph mode."""
        form = _form(op, rank.topology)
        return mesh_request(
            op,
            rank,
            max_bytes=rank.ccl_bytes // form.slots,
            scratch_bytes=op.size * form.in_scratch,
            memories=(form.in_scratch and (Buffer.USER_IN, Buffer.SCRATCH)) or (None, None),
        )

    def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
        """Run the form of the product and the call."""
        if rank.size == 1:
            if not op.in_place:
                rank.main.copy(rank.user_out, rank.user_in)
            return
        form, graph = _form(op, rank.topology), op.mode is Mode.GRAPH
        memory = rank.ccl_out
        if graph:
            memory = rank.scratch if form.in_scratch else rank.user_out
        if form.name == "recursive doubling":
            recursive_doubling_all_reduce(rank, rank.level0, memory)
        elif form.name == "added":
            star_all_reduce_added(rank, rank.level0, memory.head(rank.user_in.size))
        elif form.name == "collected":
            star_all_reduce_collected(rank, rank.level0, memory)
        elif graph:
            doubling_all_reduce(rank.main, rank.level0, rank.stage_in())
        else:
            direct_doubling_all_reduce(rank, rank.level0)


def _form(op: OpParam, topology: Topology) -> Form:
    ranks = topology.size
    if topology.product.device == "910_93":
        slots = slots_needed(ranks)
        return Form("recursive doubling", slots, slots)
    if not op.deterministic or ranks == 1:
        return Form("added", 1, 0)
    if ranks == 8:
        return Form("doubling", 1, 1)
    return Form("collected", ranks - 1, ranks - 1 if ranks > 2 else 0)
