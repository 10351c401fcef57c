"""Ops on two axes at a time that bring the whole to pieces, and gather them: AllReduce, Reduce,
Broadcast.
"""

from __future__ import annotations

from math import floor
from typing import Any, ClassVar

import numpy as np

from hccl_executors.aicpu.all_gather import MeshAllGather, NhrAllGather
from hccl_executors.aicpu.all_reduce import rounded_down
from hccl_executors.aicpu.chunk_steps import PAGE
from hccl_executors.aicpu.from_root import MeshScatter, NhrScatter
from hccl_executors.aicpu.on_aicpu import TRANSFER
from hccl_executors.aicpu.reduce_scatter import MeshReduceScatter, NhrReduceScatter
from hccl_executors.aicpu.seats import AnyChannelRank, Seat, cut, place_at
from hccl_executors.aicpu.two_axes import INTRA, LEAST, CallShape, Parts, TwoAxes, Work, eighths
from hccl_py.orchestration import Chunks, Region
from hccl_py.plugins.executor import OpParam


class InPieces(TwoAxes):
    """Ops that bring either part to pieces on one axis and then to smaller ones on the other, and
    gather them on the way back. The parts lie in the buffer.
    """

    def bases(self, shape: CallShape, sizes: tuple[int, int]) -> tuple[int, int]:
        """Return the bytes of the buffer at which both parts begin."""
        return 0, sizes[0]

    def down(
        self,
        op: OpParam,
        place: Seat,
        axis: int,
        given: Chunks,
        into: Chunks,
        scratch: Region,
        n0: int,
    ) -> None:
        """Bring data to its pieces, one for every rank of an axis."""
        target = into[place.me]
        where = scratch if axis == INTRA else into
        self.pairs[0][axis].run(place, [given], [target], [where])

    def takes_part(self, op: OpParam, rank: AnyChannelRank, axis: int) -> bool:
        """Return True if a rank is at work in the first stage of an axis."""
        return True

    def scratch(
        self, rank: AnyChannelRank, sizes: tuple[int, int], part: int, into: Region
    ) -> Region:
        """Return the memory in which a mesh collects blocks."""
        return rank.buffer

    def output(self, rank: AnyChannelRank, op: OpParam, whole: Region, begin: int) -> Region:
        """Return the memory that gets a part."""
        found: Region = rank.user_out[begin:].head(whole.size)
        return found

    def stages(
        self, op: OpParam, rank: AnyChannelRank, shape: CallShape, sizes: tuple[int, int]
    ) -> None:
        groups, begins = self.axes(rank), (0, sizes[0])
        wholes = [
            place_at(rank.buffer, base, size)
            for base, size in zip(self.bases(shape, sizes), sizes, strict=True)
        ]
        pieces = []  # of each part, the one that its first axis leaves to this rank
        for part in (0, 1):
            cuts = rounded_down(sizes[part], groups[part].size, op.unit)
            pieces.append(cut(wholes[part], cuts)[groups[part].me])

        def down(part: int, axis: int, given: Region, into: Region, *, first: bool) -> Work:
            def work(place: Seat) -> None:
                if first and not self.takes_part(op, rank, axis):
                    return
                cuts = rounded_down(int(into.size), place.n, op.unit)
                scratch = self.scratch(rank, sizes, part, into)
                self.down(op, place, axis, cut(given, cuts), cut(into, cuts), scratch, shape.n0)

            return work if into.size > 0 else None

        def up(axis: int, given: Region, into: Region) -> Work:
            def work(place: Seat) -> None:
                cuts = rounded_down(int(given.size), place.n, op.unit)
                places = cut(given, cuts)
                self.pairs[1][axis].run(place, [places[place.me]], [cut(into, cuts)], [places])

            return work if given.size > 0 else None

        ins = [rank.user_in[begin:].head(size) for begin, size in zip(begins, sizes, strict=True)]
        outs = [self.output(rank, op, wholes[k], begins[k]) for k in (0, 1)]
        self.run(rank, op, 0, *(down(k, k, ins[k], wholes[k], first=True) for k in (0, 1)))
        self.run(rank, op, 0, *(down(k, 1 - k, pieces[k], pieces[k], first=False) for k in (1, 0)))
        self.run(rank, op, 1, *(up(1 - k, pieces[k], pieces[k]) for k in (1, 0)))
        self.run(rank, op, 1, *(up(k, wholes[k], outs[k]) for k in (0, 1)))


class TwoAxesAllReduce(InPieces):
    """AllReduce: reduce-scatters down, gathers back up; parts lie in the first halves of theirs."""

    op = "all_reduce"
    on_the_way = True
    pairs: ClassVar[tuple[tuple[Any, ...], ...]] = (
        (MeshReduceScatter(), NhrReduceScatter()),
        (MeshAllGather(), NhrAllGather()),
    )
    times = 2

    def most(self, shape: CallShape) -> int:
        r, sizes = self.ratio(shape), (shape.n0, shape.n1)
        parts = zip((r, 1 - r), sizes, strict=True)
        share = float(max(np.float32(part) * np.float32(1 / n) for part, n in parts))
        bound = floor(min(TRANSFER // shape.unit, shape.elements) / share)
        room = shape.buffer // shape.unit // self.times
        if shape.buffer < LEAST:  # whose last piece's rest a mesh would collect behind the end
            room -= shape.n0 * shape.n0
        return max(0, min(room, bound))

    def bases(self, shape: CallShape, sizes: tuple[int, int]) -> tuple[int, int]:
        first = self.first(shape, self.most(shape)) * shape.unit
        if first >= PAGE and shape.buffer >= LEAST:
            first = first // PAGE * PAGE // shape.unit * shape.unit
        return 0, first * self.times

    def first(self, shape: CallShape, count: int) -> int:
        return floor(count * self.ratio(shape))

    def scratch(
        self, rank: AnyChannelRank, sizes: tuple[int, int], part: int, into: Region
    ) -> Region:
        return place_at(into, sizes[part], 0)


class TwoAxesReduce(TwoAxesAllReduce):
    """Reduce: the same in the buffer, whence the root copies; blocks are collected behind both."""

    op = "reduce"

    def most(self, shape: CallShape) -> int:
        times = max(self.ratio(shape), (1 - self.ratio(shape)) / shape.n1) + 1
        return int(shape.buffer / times) // shape.unit

    def bases(self, shape: CallShape, sizes: tuple[int, int]) -> tuple[int, int]:
        return 0, sizes[0]

    def scratch(
        self, rank: AnyChannelRank, sizes: tuple[int, int], part: int, into: Region
    ) -> Region:
        return rank.buffer[sum(sizes) :]

    def output(self, rank: AnyChannelRank, op: OpParam, whole: Region, begin: int) -> Region:
        return whole

    def stages(
        self, op: OpParam, rank: AnyChannelRank, shape: CallShape, sizes: tuple[int, int]
    ) -> None:
        super().stages(op, rank, shape, sizes)
        if rank.id == op.root:
            rank.main.copy(rank.user_out, rank.buffer.head(sum(sizes)))


class TwoAxesBroadcast(TwoAxesAllReduce):
    """Broadcast: scatters down from the root, gathers back up."""

    op = "broadcast"
    pairs = ((MeshScatter(), NhrScatter()), (MeshAllGather(), NhrAllGather(reads=False)))
    times = 1

    def ratio(self, shape: CallShape) -> float:
        mesh, clos = 1 / shape.n0, (shape.n1 - 1) / shape.n1
        return eighths(clos / (clos + mesh))

    def most(self, shape: CallShape) -> int:
        return min(super().most(shape), shape.elements)

    def first(self, shape: CallShape, count: int) -> int:
        return TwoAxes.first(self, shape, count)

    def split(self, shape: CallShape, count: int) -> Parts:
        parts = super().split(shape, count)
        limit = self.bases(shape, (0, 0))[1] // shape.unit
        return self.paged(parts, shape.unit) if parts.first > limit else parts

    def down(
        self,
        op: OpParam,
        place: Seat,
        axis: int,
        given: Chunks,
        into: Chunks,
        scratch: Region,
        n0: int,
    ) -> None:
        root = self._root(op, n0, axis)
        self.pairs[0][axis].run(place, root, [given], [into[place.me]], [into])

    def takes_part(self, op: OpParam, rank: AnyChannelRank, axis: int) -> bool:
        groups = self.axes(rank)
        return bool(groups[1 - axis].me == self._root(op, groups[INTRA].size, 1 - axis))

    def _root(self, op: OpParam, n0: int, axis: int) -> int:
        """Return the root's place on an axis."""
        return (op.root or 0) % n0 if axis == INTRA else (op.root or 0) // n0
