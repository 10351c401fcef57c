"""The machinery of executors that run two templates at a time: one inside servers on one part of
the data, one between servers on the other part; then the other way round.

HCCL: Ins...ParallelExecutor. A main thread wakes the threads of both templates in every stage, and
waits for them. Rounds fill the buffer with whole pages, but for the last and what pages leave over.
"""

from __future__ import annotations

from collections.abc import Callable
from math import floor
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hccl_executors.aicpu.chunk_steps import PAGE
from hccl_executors.aicpu.on_aicpu import OnAicpu
from hccl_executors.aicpu.seats import AnyChannelRank, Seat, post_sync, requests, seat, server_axes
from hccl_py.plugins.executor import (
    ChannelResources,
    OpParam,
    RankView,
    Topology,
    Unsuitable,
    require,
)
from hccl_py.topology.rank_graph import RankGraph

INTRA, INTER = 0, 1

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
    axes = staticmethod(server_axes)
    pairs: ClassVar[tuple[tuple[Any, ...], ...]]

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        found = super().suits(op, topology)
        return found and self.has_axes(topology)

    def has_axes(self, topology: Topology) -> bool | Unsuitable:
        """Return True if the machine has both axes."""
        several = len(topology.servers) > 1 and RankGraph.of(topology).divisor > 1
        return require(
            (topology.is_in_server_order, "needs ranks numbered server by server"),
            (several, "needs several servers whose sizes have a common divisor above 1"),
        )

    def resources(self, op: OpParam, rank: RankView) -> ChannelResources:
        inner, outer = self.axes(rank)
        threads = [2]
        for axis, n in ((INTRA, inner.size), (INTER, outer.size)):
            asked = [pair[axis].threads(n) for pair in self.pairs]
            threads += [one[0] + 1 for one in asked]
            threads += max(asked, key=len)[1:]
        rounds = self.schedule(self.shape(op, rank))
        return ChannelResources(
            channels=(*requests(inner, self.pairs[0][0]), *requests(outer, self.pairs[0][1])),
            threads=tuple(threads),
            max_count=max(map(sum, rounds), default=0 if op.extent else None),
            first_rounds=tuple(map(sum, rounds)),
        )

    def shape(self, op: OpParam, rank: RankView | AnyChannelRank) -> CallShape:
        """Return the numbers of a call."""
        inner, outer = self.axes(rank)
        return CallShape(inner.size, outer.size, op.unit, rank.ccl_bytes, op.extent)

    def orchestrate(self, op: OpParam, rank: AnyChannelRank) -> None:
        shape = self.shape(op, rank)
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
        """Split a round's elements."""
        first = self.first(shape, count)
        return Parts(first, count - first)

    def first(self, shape: CallShape, count: int) -> int:
        """Return the first part of so many elements; HCCL computes in single precision."""
        return int(np.float32(self.ratio(shape)) * np.float32(count))

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
        groups = self.axes(rank)
        return [
            one.threads(group.size) for one, group in zip(self.pairs[pair], groups, strict=True)
        ]

    def _seats(self, rank: AnyChannelRank, op: OpParam, pair: int) -> list[Seat]:
        found, first = [], 1
        for axis, group in zip((INTRA, INTER), self.axes(rank), strict=True):
            subs = [len(one[axis].threads(group.size)) - 1 for one in self.pairs]
            begin = first + len(self.pairs)
            threads = (rank.threads[first + pair], *rank.threads[begin : begin + subs[pair]])
            found.append(seat(rank, group, threads, op))
            first = begin + max(subs)
        return found


def eighths(ratio: float) -> float:
    """Return the nearest of 1/8 to 7/8."""
    return max(1, min(7, floor(ratio * 8 + 0.5))) / 8
