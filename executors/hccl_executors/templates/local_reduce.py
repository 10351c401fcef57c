"""Local reduce by halving: pieces side by side at one rank become one, in a fixed order.

Pieces beyond a power of two are added first, then the upper half to the lower one, (x0 + x2) +
(x1 + x3): ceil(log2 k) steps, each on as many streams as it has sums. Cost for k pieces of n bytes:
ceil(log2 k)nγ. Source: ReduceScatterLocalReduce (hcomm b5f3e5b, alg_template/temp_reduce_scatter).
"""

from collections.abc import Sequence

from hccl_executors.templates.mesh_peers import empty_copy
from hccl_py.orchestration import Region
from hccl_py.plugins.executor import AnyRank


def local_halving(rank: AnyRank, pieces: Sequence[Region]) -> None:
    """Leave in the first piece the reduction of all; the others hold partial results. A step with
    k sums wakes k - 1 sub streams.
    """
    left = list(pieces)
    steps = (len(pieces) - 1).bit_length()
    for step in rank.main.steps("local reduce", steps):
        kept = 1 << (steps - 1 - step)
        into, added = left[:kept], left[kept:]
        empty_copy(rank, pieces[0])
        with rank.fork(len(added) - 1) as subs:
            for stream, dst, src in zip((rank.main, *subs), into, added, strict=False):
                stream.reduce(dst, src)
        empty_copy(rank, pieces[0])
        left = into
