"""Contents of ranks as cells: a column for every chunk of the data, a row for every rank whose
input is in it; what a rank holds is a set of bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hccl_py.trace.pictures.captions import label
from hccl_py.trace.pictures.flow import Flow, PictureMove
from hccl_py.trace.pictures.input_chunks import InputChunk
from hccl_py.values import IntArray

MOST_COLUMNS = 32
"""Columns of a card; of more chunks, neighbours share one."""


class HeldCells(NamedTuple):
    """Bit `row * columns + column` of a set stands for a cell. `holds` has the sets of all ranks to
    begin with and after each step, `wanted` those in the end, `parts` what each move carries.

    `reduces`: rows are contributions to a sum; `owners`: columns are the ranks `sources`.
    """

    rows: int
    columns: int
    sources: tuple[int, ...]
    owners: bool
    reduces: bool
    holds: tuple[tuple[int, ...], ...]
    wanted: tuple[int, ...]
    parts: tuple[int, ...]
    labels: tuple[str, ...]

    def fresh(self, step: int, rank: int, arrived: int) -> int:
        """Return the cells that are new at a rank in a step, `arrived` those that came."""
        now = self.holds[step][rank]
        return now & (~self.holds[step - 1][rank] | arrived)

    def column(self, column: int) -> int:
        """Return the cells of a column."""
        return sum(1 << (row * self.columns + column) for row in range(self.rows))


def cells_of(flow: Flow, step: IntArray, source: IntArray, target: IntArray) -> HeldCells:
    """Return the cells of a flow; moves are given by step, source and target."""
    owners = flow.chunks == 1 and not flow.reduces
    rows = 1 if owners or len(flow.sources) == 1 else len(flow.sources)
    columns = len(flow.sources) if owners else min(flow.chunks, MOST_COLUMNS)
    place = {rank: k for k, rank in enumerate(flow.sources)}

    def bit(part: InputChunk) -> int:
        row = 0 if rows == 1 else place[part.source]
        chunk = part.chunk * columns // flow.chunks
        return row * columns + (place[part.source] if owners else chunk)

    every = frozenset().union(*flow.holds, *flow.wanted)
    needed: dict[int, set[InputChunk]] = {}
    for part in every:
        needed.setdefault(bit(part), set()).add(part)

    def whole(parts: frozenset[InputChunk]) -> int:
        return sum(1 << k for k in {bit(part) for part in parts} if needed[k] <= parts)

    def some(parts: Iterable[InputChunk]) -> int:
        return sum(1 << k for k in {bit(part) for part in parts})

    known = {
        (number, move.source, move.target): move
        for number, band in enumerate(flow.bands, 1)
        for move in band.moves
    }
    places = zip(step.tolist(), source.tolist(), target.tolist(), strict=True)
    moves: list[PictureMove | None] = [known.get(at) for at in places]
    return HeldCells(
        rows=rows,
        columns=columns,
        sources=flow.sources,
        owners=owners,
        reduces=flow.reduces,
        holds=tuple(
            tuple(map(whole, held)) for held in (flow.holds, *(band.holds for band in flow.bands))
        ),
        wanted=tuple(map(some, flow.wanted)),
        parts=tuple(some(move.parts) if move else 0 for move in moves),
        labels=tuple(label(flow, move) if move else "" for move in moves),
    )
