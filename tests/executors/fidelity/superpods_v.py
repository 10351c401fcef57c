"""Rings of blocks of A3, written from HCCL's sources, as one rank runs them, round by round.

Files are those of libochao-huawei/hcomm @ 8958adb under src/legacy/ascend910/algorithm/impl/
coll_executor. Between servers and superpods all run rings.
"""

from collections.abc import Sequence

from tests.executors.fidelity.superpods import Executor, Grid
from tests.executors.fidelity.transports import Slice

ALIGN = 128


class Blocks(Executor):
    """A rank of a call whose blocks begin at `starts` of user memory."""

    def __init__(self, rank: int, grid: Grid, starts: Sequence[int], *, op_base: bool) -> None:
        super().__init__(rank, grid, 0, op_base=op_base)
        self.sizes, self.starts = [0] * grid.size, list(starts)

    def slot(self, rank: int) -> Slice:
        """CalLevel0DataSegsSliceV, PrepareSlicesL0: blocks lie side by side in exported memory."""
        return Slice(sum(self.sizes[:rank]), self.sizes[rank])

    def user_slot(self, rank: int) -> Slice:
        """PrepareUserMemSlices of coll_all_gather_v_ring_for_910_93_executor.cc:110."""
        return Slice(self.starts[rank], self.sizes[rank])

    def run(self, op: str, form: str, rounds: Sequence[Sequence[int]]) -> None:
        """Every round: RunLoopV of coll_all_gather/coll_all_gather_executor.cc and of
        coll_reduce_scatter/coll_reduce_scatter_executor.cc.
        """
        for sizes in rounds:
            self.sizes = list(sizes)
            getattr(self, op)(form)
            self.starts = [at + size for at, size in zip(self.starts, sizes, strict=True)]
            self.received += sizes[self.me.rank]


def capped_rounds(counts: Sequence[int], unit: int, room: int) -> list[list[int]]:
    """The bytes of every block in every round of an all-gather: CalcCountsDispls of
    coll_all_gather_executor.cc:149, with the limit of coll_all_gather_ring_for_910_93_executor.cc.
    """
    most, left, rounds = room // len(counts) // ALIGN * ALIGN // unit, list(counts), []
    finished = False
    while not finished:
        took = [min(most, n) for n in left]
        left = [n - k for n, k in zip(left, took, strict=True)]
        rounds.append([unit * k for k in took])
        finished = not any(left)
    return rounds


def shared_rounds(
    counts: Sequence[int], unit: int, room: int, *, aligned: bool = True, looks_again: bool = False
) -> list[list[int]]:
    """Those of a reduce-scatter: RunLoopV and CalcCurCountsAndCurDispls of
    coll_reduce_scatter_executor.cc:304 and :423, with the limit of coll_reduce_scatter_v_ring_for_
    910_93_executor.cc. What is left to do is looked at only while the buffer has room. Not aligned
    in 310P/coll_reduce_scatter_v_for_310p_ring_executor.cc:65, and in coll_all_gather_v/
    coll_all_gather_v_mesh_executor.cc:305, which looks again behind the loop.
    """
    limit, left, rounds = room // ALIGN * ALIGN // unit, list(counts), []
    finished = False
    while not finished:
        took, free = [0] * len(left), limit
        while free > 0:
            waiting = sum(n != 0 for n in left)
            if not waiting:
                finished = True
                break
            share = free // waiting
            if share == 0:
                break
            if aligned and share * unit > ALIGN:
                share = share * unit // ALIGN * ALIGN // unit
            elif aligned and share * unit < ALIGN and free != limit:
                break
            for i, n in enumerate(left):
                each = min(n, share)
                free -= each
                took[i] += each
                left[i] -= each
        finished |= looks_again and not any(left)
        rounds.append([unit * k for k in took])
    return rounds
