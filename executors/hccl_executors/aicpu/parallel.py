"""Executors that run two templates at a time: one inside servers on one part of the data, one
between servers on the other part; then the other way round.

HCCL: Ins...ParallelExecutor. A main thread wakes the threads of both templates in every stage, and
waits for them. Rounds are cut so that the buffer holds both parts, of whole pages but in the last.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hccl_executors.aicpu.ag_mesh import MeshAllGather
from hccl_executors.aicpu.ag_nhr import NhrAllGather
from hccl_executors.aicpu.ar_two_shot import rounded_down
from hccl_executors.aicpu.rs_chunks import PAGE
from hccl_executors.aicpu.rs_mesh import MeshReduceScatter
from hccl_executors.aicpu.rs_nhr import NhrReduceScatter
from hccl_executors.aicpu.scatter_mesh import MeshScatter
from hccl_executors.aicpu.seats import (
    ALIGN,
    AnyChannelRank,
    RankGroup,
    Seat,
    cut,
    level0,
    level1,
    place_at,
    post_sync,
    requests,
    seat,
    slots,
)
from hccl_executors.aicpu.sole import SCATTER_NHR, TRANSFER, OnAicpu
from hccl_executors.aicpu.tree_nhr import NhrScatter
from hccl_executors.sources import like_ascend950, over_tree
from hccl_py.orchestration import Chunks, Region
from hccl_py.plugins.executor import (
    ChannelResources,
    OpParam,
    RankView,
    Topology,
    Unsuitable,
    require,
)
from hccl_py.values import PerRank, RankInt, values_of

MESH, NHR = MeshAllGather(), NhrAllGather()
INTRA, INTER = 0, 1
BLOCK = 16 << 10
"""Bytes to which ReduceScatter's blocks of the buffer are cut (PARALLEL_DATA_ALIGN_SIZE)."""
LEAST = 1 << 20
"""The smallest buffer that HCCL makes; smaller ones are cut finer."""

Work = Callable[[Seat], None] | None


class CallShape(NamedTuple):
    """Ranks of a server, servers, bytes of an element and of the buffer, and elements in all."""

    n0: int
    n1: int
    unit: int
    buffer: int
    elements: int


class Parts(NamedTuple):
    """The elements of both parts in a round."""

    first: int
    second: int


class TwoAxes(OnAicpu):
    """The machinery. `pairs` are the templates inside and between servers, one pair after the
    other.
    """

    algorithm = "level0:mesh;level1:NHR"
    pairs: ClassVar[tuple[tuple[Any, ...], ...]]

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        found = super().suits(op, topology)
        several = len(topology.servers) > 1 and topology.servers[0] > 1
        return found and require(
            (topology.has_equal_servers, "needs servers of equal size"),
            (several, "needs several servers of several ranks"),
        )

    def resources(self, op: OpParam, rank: RankView) -> ChannelResources:
        inner, outer = level0(rank), level1(rank)
        threads = [2]
        for axis, n in ((INTRA, inner.size), (INTER, outer.size)):
            asked = [pair[axis].threads(n) for pair in self.pairs]
            threads += [one[0] + 1 for one in asked]
            threads += max(asked, key=len)[1:]
        rounds = self.schedule(shape_of(op, rank))
        return ChannelResources(
            channels=(*requests(inner, self.pairs[0][0]), *requests(outer, self.pairs[0][1])),
            threads=tuple(threads),
            max_count=max(map(sum, rounds), default=0 if op.extent else None),
            first_rounds=tuple(map(sum, rounds)),
        )

    def orchestrate(self, op: OpParam, rank: AnyChannelRank) -> None:
        shape = shape_of(op, rank)
        rounds = self.schedule(shape)
        starts = np.cumsum([0, *map(sum, rounds)]).tolist()
        parts = rounds[starts.index(rank.start)] if rounds else Parts(0, 0)
        first = parts.first * op.unit
        self.stages(op, rank, shape, (first, parts.second * op.unit))

    def stages(
        self, op: OpParam, rank: AnyChannelRank, shape: CallShape, sizes: tuple[int, int]
    ) -> None:
        """Record the stages of a round whose parts have so many bytes."""
        raise NotImplementedError

    def schedule(self, shape: CallShape) -> list[Parts]:
        """Return the parts of every round, as even as rounds can be."""
        most, left = self.most(shape), shape.elements
        if most < 1:
            return []
        times = -(-shape.elements // most)
        found: list[Parts] = []
        while left:
            remaining = max(times - len(found), 1)
            now = min(-(-left // remaining), most)
            parts = self.split(shape, now)
            if remaining > 1:
                parts = self.paged(parts, shape.unit)
            found.append(parts)
            left -= sum(parts)
        return found

    def paged(self, parts: Parts, unit: int) -> Parts:
        """Cut both parts to whole pages, unless nothing would be left."""
        cut_parts = Parts(*(part * unit // PAGE * PAGE // unit for part in parts))
        return cut_parts if any(cut_parts) else parts

    def split(self, shape: CallShape, count: int) -> Parts:
        """Split a round's elements; HCCL computes in single precision."""
        first = int(np.float32(self.ratio(shape)) * np.float32(count))
        return Parts(first, count - first)

    def ratio(self, shape: CallShape) -> float:
        """Return the first part's share, in eighths, so that both templates take as long.

        HCCL counts a mesh channel and a channel between servers as one port each, as its own tests
        do; machines may tell other numbers.
        """
        mesh = 21 / (20 * shape.n0)
        clos = (shape.n1 - 1) / shape.n1
        return eighths(clos / (clos + mesh))

    def most(self, shape: CallShape) -> int:
        """Return the elements of one round."""
        raise NotImplementedError

    def run(self, rank: AnyChannelRank, op: OpParam, pair: int, *works: Work) -> None:
        """Run one stage: work inside servers and between them, on the threads of a pair."""
        seats = self._seats(rank, op, pair)
        indices = [one[0] for one in self._asked(rank, pair)]
        for place, index in zip(seats, indices, strict=True):
            rank.main.post(place.main.notifies[index])
            place.main.wait(place.main.notifies[index])
        for place, work in zip(seats, works, strict=True):
            if work:
                work(place)
        post_sync(rank.main, [place.main for place in seats], (0, 1))

    def _asked(self, rank: AnyChannelRank, pair: int) -> list[tuple[int, ...]]:
        sizes = level0(rank).size, level1(rank).size
        return [one.threads(n) for one, n in zip(self.pairs[pair], sizes, strict=True)]

    def _seats(self, rank: AnyChannelRank, op: OpParam, pair: int) -> list[Seat]:
        found, first = [], 1
        for axis, group in ((INTRA, level0(rank)), (INTER, level1(rank))):
            subs = [len(one[axis].threads(group.size)) - 1 for one in self.pairs]
            begin = first + len(self.pairs)
            threads = (rank.threads[first + pair], *rank.threads[begin : begin + subs[pair]])
            found.append(seat(rank, group, threads, op))
            first = begin + max(subs)
        return found


def shape_of(op: OpParam, rank: RankView | AnyChannelRank) -> CallShape:
    """Return the numbers of a call."""
    sizes = level0(rank).size, level1(rank).size
    return CallShape(*sizes, op.unit, rank.ccl_bytes, op.extent)


def eighths(ratio: float) -> float:
    """Return the nearest of 1/8 to 7/8."""
    return max(1, min(7, floor(ratio * 8 + 0.5))) / 8


def taken(blocks: Chunks, places: Callable[[int], list[int]], row: RankInt) -> Chunks:
    """Return some of the blocks that all ranks have alike: `places(v)` names them where `row` is
    v.
    """
    kinds = np.unique(np.atleast_1d(values_of(row)))
    table = np.array([places(int(kind)) for kind in kinds])
    offsets, sizes = blocks.offsets[0][table], blocks.sizes[0][table]
    at = np.searchsorted(kinds, np.atleast_1d(values_of(row)))
    return Chunks(blocks.buffer, offsets, sizes, PerRank.of(at.astype(np.int64)))


def piece(blocks: Chunks, begin: int, size: int) -> Chunks:
    """Return the same piece of every block."""
    return Chunks(
        blocks.buffer, blocks.offsets + begin, np.full_like(blocks.sizes, size), blocks.row
    )


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
        return taken(self.blocks, lambda s: [s * n + i for i in range(n)], server)

    def across(self, place: RankInt) -> Chunks:
        """Return those at a place of all servers."""
        n, servers = self.inner.size, range(self.outer.size)
        return taken(self.blocks, lambda p: [s * n + p for s in servers], place)


class TwoAxesAllGather(TwoAxes):
    """AllGather in two stages."""

    op = "all_gather"
    pairs = ((MESH, NHR),)

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
        inner, outer, (a, b) = level0(rank), level1(rank), sizes
        block, times = self._block(shape)
        mesh, clos = rank.buffer, rank.buffer[block * times :]
        first = PartOfBlocks(rank.user_out, 0, a, inner, outer)
        second = PartOfBlocks(rank.user_out, a, b, inner, outer)
        given = rank.user_in.head(a), rank.user_in[a:].head(b)

        def intra0(place: Seat) -> None:
            MESH.run(place, [given[0]], [first.of_server(outer.me)], [slots(mesh, a, shape.n0)])

        def inter1(place: Seat) -> None:
            NHR.run(place, [given[1]], [second.across(inner.me)], [slots(clos, b, shape.n1)])

        def inter0(place: Seat) -> None:
            targets = [first.across(k) for k in range(shape.n0)]
            places = _repeated(clos, a, shape.n1, shape.n0)
            NHR.run(place, [target[outer.me] for target in targets], targets, places)

        def intra1(place: Seat) -> None:
            targets = [second.of_server(k) for k in range(shape.n1)]
            places = _repeated(mesh, b, shape.n0, shape.n1)
            MESH.run(place, [target[inner.me] for target in targets], targets, places)

        self.run(rank, op, 0, intra0 if a else None, inter1 if b else None)
        self.run(rank, op, 0, intra1 if b else None, inter0 if a else None)


def _repeated(region: Region, size: int, n: int, times: int) -> list[Chunks]:
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
        inner, outer, (a, b) = level0(rank), level1(rank), sizes
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
            places = _repeated(rank.buffer[at[3] :], b, n1, n0)
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
        inner, outer, (a, b) = level0(rank), level1(rank), sizes
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
            places = _repeated(rank.buffer[at:], b, n1, n0)
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
        groups, begins = (level0(rank), level1(rank)), (0, sizes[0])
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
        (MESH, NHR),
    )
    times = 2

    def most(self, shape: CallShape) -> int:
        r = self.ratio(shape)
        share = float(max(np.float32(r / shape.n0), np.float32((1 - r) / shape.n1)))
        bound = floor(min(TRANSFER // shape.unit, shape.elements) / share)
        return min(shape.buffer // shape.unit // self.times, bound)

    def bases(self, shape: CallShape, sizes: tuple[int, int]) -> tuple[int, int]:
        first = floor(self.most(shape) * self.ratio(shape)) * shape.unit
        if first >= PAGE and shape.buffer >= LEAST:
            first = first // PAGE * PAGE // shape.unit * shape.unit
        return 0, first * self.times

    def split(self, shape: CallShape, count: int) -> Parts:
        first = floor(count * self.ratio(shape))
        return Parts(first, count - first)

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
    pairs = ((MeshScatter(), NhrScatter()), (MESH, NhrAllGather(reads=False)))
    times = 1

    def ratio(self, shape: CallShape) -> float:
        mesh, clos = 1 / shape.n0, (shape.n1 - 1) / shape.n1
        return eighths(clos / (clos + mesh))

    def most(self, shape: CallShape) -> int:
        return min(super().most(shape), shape.elements)

    def split(self, shape: CallShape, count: int) -> Parts:
        parts = TwoAxes.split(self, shape, count)
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
        groups = level0(rank), level1(rank)
        return bool(groups[1 - axis].me == self._root(op, groups[INTRA].size, 1 - axis))

    def _root(self, op: OpParam, n0: int, axis: int) -> int:
        """Return the root's place on an axis."""
        return (op.root or 0) % n0 if axis == INTRA else (op.root or 0) // n0


def _files(op: str, name: str) -> Any:
    return like_ascend950(f"{op}/executor/{name}")


class AicpuAllGatherParallelMeshNHR(TwoAxesAllGather):
    """AllGather over servers, in a mesh inside and by NHR between them."""

    fidelity = _files("all_gather", "ins_v2_all_gather_parallel_executor")


class AicpuReduceScatterParallelMeshNHR(TwoAxesReduceScatter):
    """ReduceScatter over servers, in a mesh inside and by NHR between them."""

    fidelity = _files("reduce_scatter", "ins_reduce_scatter_parallel_executor")


class AicpuScatterParallelMeshNHR(TwoAxesScatter):
    """Scatter over servers, in a mesh inside and by NHR between them."""

    fidelity = over_tree(_files("scatter", "ins_v2_scatter_parallel_executor"), SCATTER_NHR)


class AicpuAllReduceParallelMeshNHR(TwoAxesAllReduce):
    """AllReduce over servers, in a mesh inside and by NHR between them."""

    fidelity = _files("all_reduce", "ins_v2_all_reduce_parallel_executor")


class AicpuReduceParallelMeshNHR(TwoAxesReduce):
    """Reduce over servers, in a mesh inside and by NHR between them."""

    fidelity = _files("reduce", "reduce_parallel_executor")


class AicpuBroadcastParallelMeshNHR(TwoAxesBroadcast):
    """Broadcast over servers, in a mesh inside and by NHR between them."""

    fidelity = over_tree(_files("broadcast", "ins_v2_broadcast_parallel_executor"), SCATTER_NHR)
