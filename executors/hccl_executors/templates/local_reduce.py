"""Local reduce: what lies side by side at one rank becomes one, in a fixed order.

    fold     one after the other, ((x0 + x1) + x2) + x3: n - 1 steps on one stream
    tree     neighbours first, (x0 + x1) + (x2 + x3): ceil(log2 n) steps, on as many streams as
             there are

Both give the same bits in every run. Only the fold adds in the order of the ranks as a loop over
them does. Cost for k pieces of n bytes: fold (k-1)nγ, tree ceil(log2 k)nγ. Source: HCCL's public
documents (local reduce).
"""

from collections.abc import Sequence
from typing import Any

from hccl_py.orchestration import Rank, Region

__all__ = ["local_fold", "local_tree"]


def local_fold(rank: Rank[Any, Any], pieces: Sequence[Region]) -> None:
    """Leave in the first piece the reduction of all, added in order."""
    with rank.main.phase("local reduce"):
        for piece in pieces[1:]:
            rank.main.reduce(pieces[0], piece)


def local_tree(rank: Rank[Any, Any], pieces: Sequence[Region]) -> None:
    """Leave in the first piece the reduction of all; the others hold partial results."""
    for step in rank.main.steps("local reduce", (len(pieces) - 1).bit_length()):
        width = 1 << step
        into, added = pieces[:: 2 * width], pieces[width :: 2 * width]
        with rank.fork(min(len(rank.subs), len(added) - 1)) as subs:
            streams = (rank.main, *subs)
            for i, piece in enumerate(added):
                streams[i % len(streams)].reduce(into[i], piece)
