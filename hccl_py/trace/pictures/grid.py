"""The contents of ranks as cells: the place of each part, and the cells of a band."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from hccl_py.trace.pictures.captions import letter
from hccl_py.trace.pictures.flow import Flow
from hccl_py.trace.pictures.input_chunks import InputChunk
from hccl_py.trace.pictures.svg import text

CELL = 11
"""Height of a cell in pixels."""


class Grid(NamedTuple):
    """Rows and columns with their names, the places of parts (row, column), a cell's width."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    places: dict[InputChunk, tuple[int, int]]
    cell: int
    legend: str

    @property
    def width(self) -> int:
        """Pixels of all columns."""
        return len(self.columns) * self.cell

    @property
    def height(self) -> int:
        """Pixels of all rows."""
        return len(self.rows) * CELL

    def shape(self, parts: Iterable[InputChunk], x: int, y: int) -> str:
        """Return the outline of some parts' cells, the grid being at (x, y)."""
        corners = sorted(self.places[part] for part in parts)
        return "".join(
            f"M{x + column * self.cell} {y + row * CELL}h{self.cell}v{CELL}h-{self.cell}z"
            for row, column in corners
        )


def grid_of(flow: Flow) -> Grid:
    """Rows are sources and columns chunks; one row where there is only one of either."""
    parts = sorted(frozenset().union(*flow.holds, *flow.wanted))
    sources = {rank: row for row, rank in enumerate(flow.sources)}
    names = tuple(str(rank) for rank in flow.sources)
    chunks = tuple(str(k) for k in range(flow.chunks))
    if flow.chunks == 1 and not flow.reduces:
        places = {part: (0, sources[part.source]) for part in parts}
        return Grid(("",), names, places, 14, "cells: whose input")
    places = {part: (sources[part.source], part.chunk) for part in parts}
    cell = 14 if flow.chunks <= 6 else max(6, 84 // flow.chunks)
    if len(flow.sources) == 1:
        return Grid(("",), chunks, places, cell, "cells: chunks")
    if flow.reduces:
        legend = "columns: chunks; rows: whose contribution is in"
    elif flow.op.name.startswith("all_to_all"):
        legend = "columns: for whom; rows: whose input"
    else:
        legend = "columns: chunks; rows: whose input"
        chunks = tuple(map(letter, range(flow.chunks)))
    return Grid(names, chunks, places, cell, legend)


def cells(
    grid: Grid,
    left: int,
    y: int,
    holds: frozenset[InputChunk],
    before: frozenset[InputChunk],
    wanted: frozenset[InputChunk],
) -> Iterator[str]:
    """Draw what a rank holds, apart from what it held before; frame what it must have in the
    end, where that is not everything.
    """
    kinds = {"cell": grid.places.keys() - holds, "has": holds & before, "new": holds - before}
    for kind, parts in kinds.items():
        if parts:
            yield f'<path d="{grid.shape(parts, left, y)}" class="{kind}"/>'
    if wanted and len(wanted) < len(grid.places):
        rows, columns = zip(*(grid.places[part] for part in wanted), strict=True)
        x, top = left + min(columns) * grid.cell - 1, y + min(rows) * CELL - 1
        width = (max(columns) - min(columns) + 1) * grid.cell + 2
        height = (max(rows) - min(rows) + 1) * CELL + 2
        yield f'<rect x="{x}" y="{top}" width="{width}" height="{height}" class="goal"/>'


def headings(grid: Grid, lefts: Sequence[int], y: int) -> Iterator[str]:
    """Name the columns of every rank's cells, and the rows of the first one's."""
    crowded = 2 if len(grid.columns) > 10 else 1
    for left in lefts:
        for column, name in enumerate(grid.columns[::crowded]):
            middle = left + column * crowded * grid.cell + grid.cell // 2
            yield text(middle, y - 3, name, "faint small", "middle")
    for row, name in enumerate(grid.rows):
        yield text(lefts[0] - 4, y + row * CELL + 9, name, "faint small", "end")
