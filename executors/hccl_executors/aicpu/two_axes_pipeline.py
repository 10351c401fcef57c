"""AllGather in a pipeline over two axes: while a rank's own data is still on its way along the
slower axis, the faster one passes on what came that way.

HCCL: InsV2AllGatherOmniPipeExecutor; how data is cut, CalcAGOmniPipeSliceInfo.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import ceil, log
from typing import NamedTuple

from hccl_executors.aicpu import nhr_steps
from hccl_executors.aicpu.all_gather import MeshAllGather, NhrAllGather
from hccl_executors.aicpu.duplex import send_recv_read, send_recv_write
from hccl_executors.aicpu.on_aicpu import TRANSFER
from hccl_executors.aicpu.seats import ALIGN, AnyChannelRank, Cuts, Seat, others, slots
from hccl_executors.aicpu.two_axes import INTER, INTRA, CallShape, Parts, TwoAxes
from hccl_executors.aicpu.two_axes_blocks import PartOfBlocks
from hccl_py.orchestration import Chunks
from hccl_py.plugins.executor import OpParam


class MeshPieces(MeshAllGather):
    """The template in a mesh."""

    def step(self, seat: Seat, targets: Cuts, places: Cuts, *, reads: bool) -> None:
        """Bring the pieces `places` of every rank to all, or `reads` to their `targets`."""
        if reads:
            self.fetch(seat, targets, places)
            return
        seat.pre_sync()
        moves = [(place[seat.me], place[seat.me]) for place in places]
        for d, thread in zip(others(seat.n), seat.threads, strict=True):
            channel = seat.channel((seat.me + d) % seat.n)
            send_recv_write(thread, channel, channel, moves)
        seat.post_sync()


class NhrPieces(NhrAllGather):
    """The template by NHR; only what its last step brings can be read to the output."""

    def step(self, seat: Seat, targets: Cuts, places: Cuts, *, reads: bool, copies: bool) -> None:
        """Bring the pieces `places` of every rank to all, the last ones to their `targets` where it
        `reads`; `copies` says that the second thread copies the earlier ones there.
        """
        steps = list(nhr_steps.gather_steps(seat.me, seat.n))
        seat.pre_sync()
        for step in steps:
            tx, rx = seat.channel(step.to), seat.channel(step.source)
            if reads and step is steps[-1]:
                pairs = list(zip(targets, places, strict=True))
                moves = [(target[i], place[i]) for i in step.received for target, place in pairs]
                send_recv_read(seat.main, tx, rx, moves)
            else:
                moves = [(place[i], place[i]) for i in step.sent for place in places]
                send_recv_write(seat.main, tx, rx, moves)
        seat.post_sync()
        seat.pre_sync()
        for step in steps[:-1] if copies else ():
            for i in step.received:
                for target, place in zip(targets, places, strict=True):
                    seat.threads[1].copy(target[i], place[i])
        seat.post_sync()


MOST_STEPS = 5
CUT = 512
"""Bytes to which pieces are cut (HCCL_MIN_SLICE_ALIGN_OMNIPIPE)."""

MESH_GBPS, CLOS_GBPS = 50.0, 191.0
"""The bandwidths that HCCL counts with (BW_OMNI_DEFAULT, BW_OMNI_UBX_AG_CLOS)."""


class StepPiece(NamedTuple):
    """A part of every rank's data, in bytes. `corner`: of ranks that lie on neither axis of mine,
    in the place of those on my own one.
    """

    begin: int
    size: int
    corner: bool


class AxisRate(NamedTuple):
    """The ranks of an axis, and the bandwidth to each other one."""

    n: int
    gbps: float


class PipelinedAllGather(TwoAxes):
    """The machinery. Main copies to the output what the step before brought."""

    op = "all_gather"
    pairs = ((MeshPieces(), NhrPieces()),)

    def most(self, shape: CallShape) -> int:
        room = shape.buffer // (shape.n0 * shape.n1) // ALIGN * ALIGN
        return min(room // shape.unit, TRANSFER)

    def schedule(self, shape: CallShape) -> list[Parts]:
        """Return full rounds, and the rest."""
        most = self.most(shape)
        begins = range(0, shape.elements, most) if most else ()
        return [Parts(min(most, shape.elements - begin), 0) for begin in begins]

    def stages(
        self, op: OpParam, rank: AnyChannelRank, shape: CallShape, sizes: tuple[int, int]
    ) -> None:
        mesh = AxisRate(shape.n0, MESH_GBPS)
        clos = AxisRate(shape.n1, CLOS_GBPS / (shape.n1 - 1))
        swaps = clos.gbps < mesh.gbps
        cuts = pieces(sizes[0], *((clos, mesh) if swaps else (mesh, clos)))
        buffer = slots(rank.buffer, sizes[0], rank.size)
        rank.main.copy(buffer[rank.id], rank.user_in)
        before: list[list[tuple[Chunks, Chunks]]] = []
        for number, step in enumerate(cuts):
            both = step[::-1] if swaps else step
            moves = [self._blocks(rank, axis, both[axis], buffer) for axis in (INTRA, INTER)]
            self._step(op, rank, moves, before, reads=number == len(cuts) - 1)
            before = moves
        for group, pairs in zip(self.axes(rank), before, strict=True):
            for target, place in pairs:
                rank.main.copy(target[group.me], place[group.me])

    def _blocks(
        self, rank: AnyChannelRank, axis: int, piece: StepPiece, buffer: Chunks
    ) -> list[tuple[Chunks, Chunks]]:
        """Return a piece in the output and in the buffer: each time those of an axis' ranks."""
        inner, outer = self.axes(rank)
        other = (outer, inner)[axis]
        lines = [other.me]
        if piece.corner:
            lines = [k + (other.me <= k) for k in range(other.size - 1)]
        out, there = (
            PartOfBlocks(blocks, piece.begin, piece.size, inner, outer)
            for blocks in (rank.user_out, buffer)
        )
        if axis == INTRA:
            return [(out.of_server(k), there.of_server(k)) for k in lines]
        return [(out.across(k), there.across(k)) for k in lines]

    def _step(
        self,
        op: OpParam,
        rank: AnyChannelRank,
        moves: Sequence[Sequence[tuple[Chunks, Chunks]]],
        before: Sequence[Sequence[tuple[Chunks, Chunks]]],
        *,
        reads: bool,
    ) -> None:
        """Run a step on both axes. HCCL's NHR copies in every step of a later round, too."""
        mesh, nhr = self.pairs[0]
        copies = reads or rank.start > 0

        def inside(place: Seat) -> None:
            mesh.step(place, *zip(*moves[INTRA], strict=True), reads=reads)

        def across(place: Seat) -> None:
            nhr.step(place, *zip(*moves[INTER], strict=True), reads=reads, copies=copies)
            for pairs in before:
                for k in range(len(pairs[0][0])):
                    for target, there in pairs:
                        rank.main.copy(target[k], there[k])

        self.run(rank, op, 0, inside, across)


def pieces(size: int, slow: AxisRate, fast: AxisRate) -> list[tuple[StepPiece, StepPiece]]:
    """Return the pieces of every step on the slower and on the faster axis of several ranks each.

    On the slower axis all steps but the last bring data of the own line, on the faster one only the
    first does, which brings all of it; the last step divides what is left between them.
    """
    near, far = sizes_by_step(size, slow, fast)
    begins = [0, *accumulate(far[1:-1], initial=0)]
    last = begins[-1]
    near_begins = [*accumulate(near[:-2], initial=0), last]
    far_begins = [*begins[:-1], last + near[-1]]
    return [
        (
            StepPiece(near_begins[k], near[k], k == len(near) - 1),
            StepPiece(far_begins[k], far[k], k > 0),
        )
        for k in range(len(near))
    ]


def sizes_by_step(size: int, slow: AxisRate, fast: AxisRate) -> tuple[list[int], list[int]]:
    """Return the bytes of every step's piece on both axes, so that both take as long."""
    ratio, links = fast.gbps / slow.gbps, slow.n - 1
    steps, scale = step_count(slow.n, ratio)
    near, far = [size if steps == 2 else _cut(scale * size / ratio)], [size]
    for step in range(1, steps - 1):
        if step == steps - 2:
            rest = size - sum(near)
            far.append(_cut(min(int(ratio * rest / links), near[-1])))
            near.append(rest)
        else:
            far.append(near[-1])
            near.append(_cut(far[-1] * links / ratio))
    left = size - sum(far[1:])
    near.append(_cut(left * links / (links + (fast.n - 1) * ratio)))
    far.append(left - near[-1])
    return near, far


def step_count(n: int, ratio: float) -> tuple[int, float]:
    """Return the number of steps, at most MOST_STEPS, and the factor of the first step's piece that
    makes do with so few.
    """
    growth, total = (n - 1) / ratio, 0.0
    for step in range(MOST_STEPS - 1):
        total += growth**step
    if n > ratio:
        whole = growth == 1
        steps = int(ratio + 1) if whole else ceil(log(n - ratio) / log(growth)) + 1
        if steps <= MOST_STEPS:
            return steps, 1.0
    return MOST_STEPS, ratio / total


def _cut(size: float) -> int:
    return int(size) // CUT * CUT
