"""AllGatherSmallCount: by fours through CCL_Out, and straight to the output in the last step."""

from collections.abc import Sequence

from hccl_executors.templates.bruck import (
    PORTS,
    bruck_distances,
    bruck_gather,
    bruck_peers,
    bruck_take,
)
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
from hccl_py.orchestration import Chunks, Region

__all__ = ["AllGatherSmallCount"]


class AllGatherSmallCount:
    """AllGather of small data over SDMA links, servers of a superpod included.

    Ranks are taken in f parts, 4, 2 or 1 as their number can be divided. First rank r gathers p/f
    blocks from its own one on; then it takes as many from each of f - 1 ranks at once, straight to
    the output, so that CCL_Out need not hold them. Three sub streams, as far as there are peers for
    them. In graph mode all blocks lie in the output.
    """

    op = "all_gather"
    algorithm = "level0:NA;level1:bruck"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs SDMA links between all ranks."""
        return require((not topology.has_rdma, "reads from peers: SDMA links only"))

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links to those taken from; p/f blocks of a round fill CCL_Out."""
        parts = _parts(rank.size)
        each = rank.size // parts
        distances = [*bruck_distances(each), *range(each, rank.size, each)]
        return ResourceRequest(
            planes=(PlaneRequest("flat", bruck_peers(distances)),),
            sub_streams=min(PORTS, max(parts, each) - 1),
            max_count=rank.ccl_bytes // (op.unit * rank.size) * parts,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Region, Chunks]) -> None:
        """Gather a part, take the others."""
        size, is_graph = rank.user_in.size, op.mode is Mode.GRAPH

        def in_output(first: int, n: int) -> Sequence[Region]:
            return _in_output(op, rank, first, n)

        def staged(first: int, n: int) -> Sequence[Region]:
            return [rank.ccl_out[first * size : (first + n) * size]]

        source = None if is_graph else rank.ccl_out
        places = in_output if is_graph else staged
        rank.main.copy(places(0, 1), [rank.user_in])
        each = rank.size // _parts(rank.size)
        bruck_gather(rank, rank.flat, each, places, source)
        others = range(each, rank.size, each)
        with rank.main.phase("take"), rank.fork(len(others)) as subs:
            if not is_graph:
                _copy_own(rank, in_output(0, each))
            for sub, at in zip(subs, others, strict=True):
                bruck_take(sub, rank.flat, at, places(0, each), in_output(at, each), source)


def _parts(ranks: int) -> int:
    return 4 if ranks % 4 == 0 else 2 if ranks % 2 == 0 else 1


def _in_output(op: OpParam, rank: Rank[Region, Chunks], first: int, n: int) -> Sequence[Region]:
    """Return where n blocks from block r + first lie in the output: where a round takes all, side
    by side, up to the last block and from the first one on.
    """
    size, outputs = rank.user_in.size, rank.user_out
    start = (rank.id + first) % rank.size
    if size != op.size:
        return [outputs[(start + i) % rank.size] for i in range(n)]
    whole = Region(outputs.buffer, 0, size * rank.size)
    if start + n <= rank.size:
        return [whole[start * size : (start + n) * size]]
    return [whole[start * size :], whole.head((start + n - rank.size) * size)]


def _copy_own(rank: Rank[Region, Chunks], outputs: Sequence[Region]) -> None:
    """Copy what lies in CCL_Out from its beginning to the output."""
    start = 0
    for output in outputs:
        rank.main.copy(output, rank.ccl_out[start : start + output.size])
        start = start + output.size
