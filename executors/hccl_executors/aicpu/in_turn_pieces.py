"""Ops on one level after another that bring the whole to pieces, and gather them: AllReduce,
Reduce, Broadcast.
"""

from __future__ import annotations

from collections.abc import Sequence

from hccl_executors.aicpu.all_reduce import rounded_down
from hccl_executors.aicpu.chunk_steps import PAGE
from hccl_executors.aicpu.in_turn import GATHERS, REDUCE_SCATTERS, SCATTERS, InTurn, levels
from hccl_executors.aicpu.seats import ALIGN, AnyChannelRank, Seat, cut, slots
from hccl_py.orchestration import Chunks, Region
from hccl_py.plugins.executor import OpParam, RankView


class InTurnAllReduce(InTurn):
    """AllReduce: reduce-scatters from inside servers outwards, gathers back, in the buffer."""

    op = "all_reduce"
    on_the_way = True
    templates = (REDUCE_SCATTERS, GATHERS)
    align = ALIGN

    def schedule(self, op: OpParam, rank: RankView) -> list[int]:
        """Rounds such that a rank's piece of one inside a server fits its slice of the buffer."""
        n0, most, left = levels(rank)[0].size, self.most(op, rank), op.extent
        fits, found = self.slice_bytes(op, rank) // op.unit, []
        while left and most > 0:
            now = min(left, most)
            each, rest = divmod(now, n0)
            if left <= most and each + rest > fits and each:
                each = min(each - 1, fits)
                now = each * n0 + min(n0 - 1, fits - each)
            found.append(now)
            left -= now
        return found

    def slice_bytes(self, op: OpParam, rank: RankView | AnyChannelRank) -> int:
        """Return the bytes of a slice: one holds a rank's sum, the others what it collects."""
        return rank.ccl_bytes // (levels(rank)[0].size + 1) // op.unit * op.unit

    def most(self, op: OpParam, rank: RankView) -> int:
        n0, n = levels(rank)[0].size, rank.size
        whole = n0 * self.slice_bytes(op, rank) // self.align * self.align
        return whole // op.unit // n * n

    def orchestrate(self, op: OpParam, rank: AnyChannelRank) -> None:
        inner, middle, outer = self.seats(op, rank, 0)
        assert inner is not None
        pieces = cut(rank.user_in, self._sizes(rank.user_in, inner.n, op))
        collected = rank.buffer[self.slice_bytes(op, rank) :]
        first = rank.buffer.head(pieces[inner.me].size)
        self.run(0, 0, inner, [pieces], [first], [collected])
        second = self._down(op, 1, middle, first)
        self._down(op, 2, outer, second)
        inner, middle, outer = self.seats(op, rank, 1)
        self._up(op, 2, outer, second)
        self._up(op, 1, middle, first)
        result = self.result(rank, collected)
        targets = cut(result, self._sizes(result, pieces_of(inner), op))
        starts = slots(rank.buffer, 0, len(targets))
        places = Chunks(starts.buffer, starts.offsets, targets.sizes)
        self.run(1, 0, inner, [first], [targets], [places])
        self.finish(op, rank, result)

    def result(self, rank: AnyChannelRank, collected: Region) -> Region:
        """Return the memory that gets all sums."""
        whole: Region = rank.user_out
        return whole

    def finish(self, op: OpParam, rank: AnyChannelRank, result: Region) -> None:
        """End a round."""

    def _sizes(self, region: Region, n: int, op: OpParam) -> Sequence[int]:
        return rounded_down(int(region.size), n, op.unit)

    def _down(self, op: OpParam, level: int, place: Seat | None, work: Region) -> Region:
        """Reduce-scatter a region in its place; return my piece."""
        if place is None:
            return work
        pieces = cut(work, self._sizes(work, place.n, op))
        if work.size > 0:
            self.run(0, level, place, [pieces], [pieces[place.me]], [pieces])
        return pieces[place.me]

    def _up(self, op: OpParam, level: int, place: Seat | None, work: Region) -> None:
        """Gather a region in its place."""
        if place is not None and work.size > 0:
            pieces = cut(work, self._sizes(work, place.n, op))
            self.run(1, level, place, [pieces[place.me]], [pieces], [pieces])


def pieces_of(place: Seat | None) -> int:
    """Return the number of ranks of a level."""
    return 1 if place is None else place.n


class InTurnAllReduceInPod(InTurnAllReduce):
    """AllReduce on two levels: sums in the first half of the buffer, by way of the second."""

    in_pod = True

    def schedule(self, op: OpParam, rank: RankView) -> list[int]:
        return InTurn.schedule(self, op, rank)

    def slice_bytes(self, op: OpParam, rank: RankView | AnyChannelRank) -> int:
        return rank.ccl_bytes // 2 // op.unit * op.unit

    def most(self, op: OpParam, rank: RankView) -> int:
        return rank.ccl_bytes // 2 // ALIGN * ALIGN // op.unit // rank.size * rank.size


class InTurnReduce(InTurnAllReduce):
    """Reduce: the same in the buffer, whence the root copies."""

    op = "reduce"
    align = PAGE

    def result(self, rank: AnyChannelRank, collected: Region) -> Region:
        return collected.head(rank.user_in.size)

    def finish(self, op: OpParam, rank: AnyChannelRank, result: Region) -> None:
        if rank.id == op.root:
            rank.main.copy(rank.user_out, result)


class InTurnBroadcast(InTurn):
    """Broadcast: scatters from the root outwards, gathers back, in the buffer."""

    op = "broadcast"
    templates = (SCATTERS, GATHERS)

    def most(self, op: OpParam, rank: RankView) -> int:
        return rank.ccl_bytes // PAGE * PAGE // op.unit

    def orchestrate(self, op: OpParam, rank: AnyChannelRank) -> None:
        groups, root = levels(rank), op.root or 0
        data = rank.user_in if rank.id == root else rank.user_out
        n0, pod = groups[0].size, groups[0].size * groups[1].size
        roots = root % n0, root // n0 % groups[1].size, root // pod
        at_work = rank.id // n0 == root // n0, rank.id // pod == root // pod, True
        work, given, cuts = rank.buffer.head(data.size), data, []
        deciding = [work]  # where it has data, a level is at work: the last one by the first piece
        for level, place in enumerate(self.seats(op, rank, 0)):
            if place is not None:
                sizes = rounded_down(int(work.size), place.n, op.unit)
                pieces, sources = cut(work, sizes), cut(given, sizes)
                if deciding[level // 2].size > 0 and at_work[level]:
                    mine = [pieces[place.me]]
                    self.run(0, level, place, roots[level], [sources], mine, [pieces])
                cuts.append((level, pieces))
                work = given = pieces[place.me]
            deciding.append(work)
        seats = self.seats(op, rank, 1)
        for level, pieces in reversed(cuts):
            place = seats[level]
            assert place is not None
            targets = pieces if level else cut(rank.user_out, pieces.sizes[0].tolist())
            if pieces.sizes.sum() > 0:
                self.run(1, level, place, [pieces[place.me]], [targets], [pieces])
