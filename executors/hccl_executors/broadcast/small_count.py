"""BroadCastSmallCountExecutor: the whole buffer along a tree, to two ranks at a time."""

from collections.abc import Callable, Iterable
from typing import Any

from hccl_executors.staging import staged
from hccl_py.executor import OpParam, PlaneRequest, Rank, RankView, ResourceRequest, Topology
from hccl_py.orchestration import exchange

__all__ = ["BroadCastSmallCountExecutor"]


class BroadCastSmallCountExecutor:
    """Broadcast of small data along a binomial tree: ceil(log2 p) levels, α + nβ each.

    d is a rank's distance to the right of the root. It has the buffer from the rank whose distance
    lacks the last 1 in d's binary digits, and hands it to those at distances d + w, for all powers
    w below that 1, the widest first. Main and one sub stream take turns in handing on; the sub
    stream copies to the output, too. In graph mode the buffer is the output. HCCL requests scratch
    in some cases; this needs none.
    """

    op = "broadcast"
    algorithm = "level0:NA;level1:tree"

    def suits(self, op: OpParam, topology: Topology) -> bool:
        """Runs everywhere, uneven servers included."""
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links along the tree; a round fills CCL_In."""
        return ResourceRequest(
            planes=(PlaneRequest("flat", _tree(op.root or 0)),),
            sub_streams=int(rank.size > 1),
            max_count=rank.ccl_bytes // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Any, Any]) -> None:
        """Receive, hand on, deliver."""
        work = staged(op, rank)
        root = op.root or 0
        distance = (rank.id - root) % rank.size
        with rank.main.phase("broadcast"):
            if distance:
                parent = rank.flat[((distance & (distance - 1)) + root) % rank.size]
                exchange(rank.main, frm=parent, recv=work)
            with rank.fork() as subs:
                streams = (rank.main, *subs)
                for i, width in enumerate(_widths(int(distance & -distance), rank.size)):
                    if distance + width < rank.size:
                        child = rank.flat[(rank.id + width) % rank.size]
                        exchange(streams[i % len(streams)], to=child, send=work)
                if work.buffer != rank.user_out.buffer:
                    streams[-1].copy(rank.user_out, work)


def _widths(lowest: int, size: int) -> list[int]:
    """Return the powers of two below the lowest 1 of a distance, below `size` for none; the widest
    first.
    """
    most = (lowest or 1 << (size - 1).bit_length()).bit_length() - 1
    return [1 << k for k in reversed(range(most))]


def _tree(root: int) -> Callable[[int, int], Iterable[int]]:
    """Return the pattern of the links along the tree."""

    def peers(index: int, size: int) -> Iterable[int]:
        distance = (index - root) % size
        ends = [distance + width for width in _widths(distance & -distance, size)]
        parent = [distance & (distance - 1)] if distance else []
        return [(end + root) % size for end in parent + ends if end < size]

    return peers
