"""Ops on two axes at a time whose ranks have a block each: AllGather, ReduceScatter, Scatter."""

from __future__ import annotations

from math import ceil

from hccl_executors.aicpu.all_gather import MeshAllGather, NhrAllGather
from hccl_executors.aicpu.chunk_steps import PAGE
from hccl_executors.aicpu.from_root import MeshScatter, NhrScatter
from hccl_executors.aicpu.on_aicpu import TRANSFER
from hccl_executors.aicpu.reduce_scatter import MeshReduceScatter, NhrReduceScatter
from hccl_executors.aicpu.seats import (
    ALIGN,
    AnyChannelRank,
    RankGroup,
    Seat,
    of_server,
    piece,
    place_at,
    slots,
    taken,
)
from hccl_executors.aicpu.two_axes import LEAST, CallShape, Parts, TwoAxes, eighths
from hccl_py.orchestration import Chunks, Region
from hccl_py.plugins.executor import OpParam
from hccl_py.values import RankInt

BLOCK = 16 << 10
"""Bytes to which ReduceScatter's blocks of the buffer are cut (PARALLEL_DATA_ALIGN_SIZE)."""


class PartOfBlocks:
    """One part of the blocks of all ranks, by server and place there."""

    def __init__(
        self, blocks: Chunks, begin: int, size: int, inner: RankGroup, outer: RankGroup
    ) -> None:
        self.blocks = piece(blocks, begin, size)
        self.inner, self.outer = inner, outer

    def of_server(self, server: RankInt) -> Chunks:
        """Return those of a server."""
        n = self.inner.size
        return taken(self.blocks, lambda s: of_server(s, n), server)

    def across(self, place: RankInt) -> Chunks:
        """Return those at a place of all servers."""
        n, servers = self.inner.size, range(self.outer.size)
        return taken(self.blocks, lambda p: [s * n + p for s in servers], place)


class TwoAxesAllGather(TwoAxes):
    """AllGather in two stages."""

    op = "all_gather"
    pairs = ((MeshAllGather(), NhrAllGather()),)

    def ratio(self, shape: CallShape) -> float:
        mesh, clos = 1.0, float(shape.n1 - 1)
        return eighths(min(clos / (clos + mesh), 0.5))

    def paged(self, parts: Parts, unit: int) -> Parts:
        paged = (part * unit // PAGE * PAGE // unit for part in parts)
        return Parts(*(cut_part or part for cut_part, part in zip(paged, parts, strict=True)))

    def most(self, shape: CallShape) -> int:
        return min(self._block(shape)[0], TRANSFER) // shape.unit

    def _block(self, shape: CallShape) -> tuple[int, int]:
        """Return the bytes of a block of the buffer, and how many of them the mesh takes."""
        r, n0, n1 = self.ratio(shape), shape.n0, shape.n1
        inner = max(ceil(r * n0), ceil((1 - r) * n0 * n1))
        outer = max(ceil((1 - r) * n1), ceil(r * n1 * n0))
        return min(shape.buffer // ALIGN // (inner + outer) * ALIGN, TRANSFER), inner

    def stages(
        self, op: OpParam, rank: AnyChannelRank, shape: CallShape, sizes: tuple[int, int]
    ) -> None:
        (inner, outer), (a, b), (gather, nhr) = self.axes(rank), sizes, self.pairs[0]
        block, times = self._block(shape)
        mesh, clos = rank.buffer, rank.buffer[block * times :]
        first = PartOfBlocks(rank.user_out, 0, a, inner, outer)
        second = PartOfBlocks(rank.user_out, a, b, inner, outer)
        given = rank.user_in.head(a), rank.user_in[a:].head(b)

        def intra0(place: Seat) -> None:
            gather.run(place, [given[0]], [first.of_server(outer.me)], [slots(mesh, a, shape.n0)])

        def inter1(place: Seat) -> None:
            nhr.run(place, [given[1]], [second.across(inner.me)], [slots(clos, b, shape.n1)])

        def inter0(place: Seat) -> None:
            targets = [first.across(k) for k in range(shape.n0)]
            places = repeated(clos, a, shape.n1, shape.n0)
            nhr.run(place, [target[outer.me] for target in targets], targets, places)

        def intra1(place: Seat) -> None:
            targets = [second.of_server(k) for k in range(shape.n1)]
            places = repeated(mesh, b, shape.n0, shape.n1)
            gather.run(place, [target[inner.me] for target in targets], targets, places)

        self.run(rank, op, 0, intra0 if a else None, inter1 if b else None)
        self.run(rank, op, 0, intra1 if b else None, inter0 if a else None)


def repeated(region: Region, size: int, n: int, times: int) -> list[Chunks]:
    """Return so many times n slots, side by side."""
    return [slots(region[k * n * size :], size, n) for k in range(times)]


class TwoAxesReduceScatter(TwoAxes):
    """ReduceScatter in two stages."""

    op = "reduce_scatter"
    on_the_way = True
    pairs = ((MeshReduceScatter(), NhrReduceScatter()),)

    def most(self, shape: CallShape) -> int:
        return min(self._places(shape)[0], TRANSFER) // shape.unit

    def _places(self, shape: CallShape) -> tuple[int, list[int]]:
        """Return the bytes of a block of the buffer, and where the four works begin: the mesh on
        the first part and on the second, and between servers.
        """
        r, n0, n1 = self.ratio(shape), shape.n0, shape.n1
        times = [ceil(r * n0 * n1), ceil((1 - r) * n0), ceil(r * n1), ceil((1 - r) * n1 * n0)]
        align = BLOCK if shape.buffer >= LEAST else ALIGN
        block = shape.buffer // align // sum(times) * align
        return block, [block * sum(times[:k]) for k in range(4)]

    def stages(
        self, op: OpParam, rank: AnyChannelRank, shape: CallShape, sizes: tuple[int, int]
    ) -> None:
        (inner, outer), (a, b) = self.axes(rank), sizes
        n0, n1 = shape.n0, shape.n1
        at = self._places(shape)[1]
        first = PartOfBlocks(rank.user_in, 0, a, inner, outer)
        second = PartOfBlocks(rank.user_in, a, b, inner, outer)
        mesh, nhr = self.pairs[0]

        def intra0(place: Seat) -> None:
            places = [rank.buffer[at[0] + k * n0 * a :] for k in range(n1)]
            targets = [place_at(one, inner.me * a, a) for one in places]
            mesh.run(place, [first.of_server(k) for k in range(n1)], targets, places)

        def inter1(place: Seat) -> None:
            places = repeated(rank.buffer[at[3] :], b, n1, n0)
            targets = [one[outer.me] for one in places]
            nhr.run(place, [second.across(k) for k in range(n0)], targets, places)

        def inter0(place: Seat) -> None:
            mine = slots(place_at(rank.buffer, at[0] + inner.me * a, a), a, n1, n0 * a)
            nhr.run(place, [mine], [rank.user_out.head(a)], [mine])

        def intra1(place: Seat) -> None:
            mine = slots(place_at(rank.buffer, at[3] + outer.me * b, b), b, n0, n1 * b)
            mesh.run(place, [mine], [rank.user_out[a:].head(b)], [rank.buffer[at[1] :]])

        self.run(rank, op, 0, intra0 if a else None, inter1 if b else None)
        self.run(rank, op, 0, intra1 if b else None, inter0 if a else None)


class TwoAxesScatter(TwoAxes):
    """Scatter in two stages, half by half."""

    op = "scatter"
    pairs = ((MeshScatter(), NhrScatter()),)

    def ratio(self, shape: CallShape) -> float:
        return 0.5

    def split(self, shape: CallShape, count: int) -> Parts:
        return Parts(count // 2, count - count // 2)

    def most(self, shape: CallShape) -> int:
        return min(self._block(shape)[0], TRANSFER) // ALIGN * ALIGN // shape.unit

    def _block(self, shape: CallShape) -> tuple[int, int]:
        """Return the bytes of a block of the buffer, and where works between servers begin."""
        inner, outer = max(shape.n0, shape.n1) / 2, shape.n0 * shape.n1 / 2
        count = int(shape.buffer / (inner + outer)) // shape.unit
        block = 2 * (count // 2) * shape.unit
        return block, int(inner * block)

    def stages(
        self, op: OpParam, rank: AnyChannelRank, shape: CallShape, sizes: tuple[int, int]
    ) -> None:
        (inner, outer), (a, b) = self.axes(rank), sizes
        n0, n1, root = shape.n0, shape.n1, op.root or 0
        first = PartOfBlocks(rank.user_in, 0, a, inner, outer)
        second = PartOfBlocks(rank.user_in, a, b, inner, outer)
        (mesh, nhr), at = self.pairs[0], self._block(shape)[1]
        inside, across = root % n0, root // n0

        def intra0(place: Seat) -> None:
            places = [slots(rank.buffer[k * a :], a, n0, 0) for k in range(n1)]
            targets = [one[0] for one in places]
            mesh.run(place, inside, [first.of_server(k) for k in range(n1)], targets, places)

        def inter1(place: Seat) -> None:
            places = repeated(rank.buffer[at:], b, n1, n0)
            targets = [rank.buffer[at + k * b :].head(b) for k in range(n0)]
            nhr.run(place, across, [second.across(k) for k in range(n0)], targets, places)

        def inter0(place: Seat) -> None:
            places = slots(rank.buffer, a, n1)
            nhr.run(place, across, [places], [rank.user_out.head(a)], [places])

        def intra1(place: Seat) -> None:
            given, places = (slots(rank.buffer[at:], b, n0, stride) for stride in (b, 0))
            mesh.run(place, inside, [given], [rank.user_out[a:].head(b)], [places])

        with_root = outer.me == across, inner.me == inside
        self.run(rank, op, 0, intra0 if with_root[0] else None, inter1 if with_root[1] else None)
        self.run(rank, op, 0, intra1, inter0)
