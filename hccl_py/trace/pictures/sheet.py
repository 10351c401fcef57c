"""A whole picture: header, bands from top to bottom, legend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from html import escape
from typing import NamedTuple

from hccl_py.trace.pictures.arrows import arrows
from hccl_py.trace.pictures.captions import caption, describe, label
from hccl_py.trace.pictures.flow import Band, Flow
from hccl_py.trace.pictures.grid import CELL, Grid, cells, grid_of, headings
from hccl_py.trace.pictures.input_chunks import InputChunk
from hccl_py.trace.pictures.stars import StarPicture, rows_of, stars_of
from hccl_py.trace.pictures.svg import STYLE, text

GUTTER, MARGIN, SERVER_GAP = 128, 12, 18
ROW, GAP = 19, 10
"""Heights and widths in pixels: a row of arrows, the space between things."""

NARROWEST, LETTER = 84, 6.2
"""Width of a rank's column at least, and of a letter, roughly."""

Holds = Sequence[frozenset[InputChunk]]


class _Shelf(NamedTuple):
    """A band and where it stands: its top, its rows of arrows, its cells."""

    number: int
    band: Band
    before: Holds
    rows: list[list[StarPicture]]
    top: int
    cells: int
    bottom: int


class Page:
    """A flow on paper; `servers` has the server of every rank."""

    def __init__(self, flow: Flow, servers: Sequence[int]) -> None:
        self.flow, self.servers = flow, servers
        self.grid: Grid = grid_of(flow)
        self.first = 78 if len(set(servers)) > 1 else 62  # the cells to begin with

    def svg(self, title: str) -> str:
        """Return the picture."""
        bottom = self._shelves[-1].bottom if self._shelves else self._top
        width, height = self._columns[-1] + self._pitch // 2 + MARGIN, bottom + 62
        width = max(width, round(len(title) * LETTER * 1.35) + 2 * MARGIN, 400)
        said = " ".join(describe(self.flow, s.number, s.band) for s in self._shelves)
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                f'viewBox="0 0 {width} {height}" role="img">',
                f"<title>{escape(title)}</title>",
                f"<desc>{escape(said)}</desc>",
                f"<style>{STYLE}</style>",
                f'<rect width="{width}" height="{height}" rx="6" class="paper"/>',
                *self._lifelines(bottom),
                text(MARGIN, 22, title, "ink big"),
                *self._names(),
                *self._begin(),
                *(line for shelf in self._shelves for line in self._band(shelf, width)),
                *self._legend(bottom + 8),
                "</svg>\n",
            ]
        )

    # ---- where things are ----

    @cached_property
    def _pitch(self) -> int:
        """Width of a rank's column: enough for its cells and the labels between two ranks."""
        texts = [label(self.flow, move) for band in self.flow.bands for move in band.moves]
        longest = max((len(said) for said in texts), default=0)
        return max(NARROWEST, self.grid.width + 2 * GAP, round(longest * LETTER) + 30)

    @cached_property
    def _columns(self) -> list[int]:
        """The middle of every rank's column."""
        found, at = [], GUTTER + self._pitch // 2
        for rank, server in enumerate(self.servers):
            if rank and server != self.servers[rank - 1]:
                at += SERVER_GAP
            found.append(at)
            at += self._pitch
        return found

    @cached_property
    def _lefts(self) -> list[int]:
        """The left edge of every rank's cells."""
        return [x - self.grid.width // 2 for x in self._columns]

    @property
    def _top(self) -> int:
        """The top edge of the first band."""
        return self.first + max(self.grid.height, 14) + 2 * GAP

    @cached_property
    def _shelves(self) -> list[_Shelf]:
        found, before = [], self.flow.holds
        y = self._top
        for number, band in enumerate(self.flow.bands, 1):
            rows = rows_of(stars_of(band.moves))
            at = y + GAP + len(rows) * ROW
            bottom = max(at + self.grid.height, y + 16 + 13 * len(self._said(band))) + 2 * GAP
            found.append(_Shelf(number, band, before, rows, y, at, bottom))
            y, before = bottom, band.holds
        return found

    # ---- drawing ----

    def _lifelines(self, bottom: int) -> Iterator[str]:
        for x in self._columns:
            yield f'<line x1="{x}" y1="{self.first}" x2="{x}" y2="{bottom - GAP}" class="line"/>'

    def _names(self) -> Iterator[str]:
        for rank, x in enumerate(self._columns):
            yield text(x, self.first - 17, f"rank {rank}", "ink bold", "middle")
        for server in sorted(set(self.servers)) if len(set(self.servers)) > 1 else ():
            at = [x for x, own in zip(self._columns, self.servers, strict=True) if own == server]
            first, last = at[0] - self._pitch // 3, at[-1] + self._pitch // 3
            yield f'<line x1="{first}" y1="47" x2="{last}" y2="47" class="move"/>'
            yield text((first + last) // 2, 42, f"server {server}", "faint", "middle")

    def _begin(self) -> Iterator[str]:
        yield text(MARGIN, self.first + 9, "to begin with", "faint")
        yield from self._cells(self.first, self.flow.holds, self.flow.holds)
        yield from headings(self.grid, self._lefts, self.first)

    def _band(self, shelf: _Shelf, width: int) -> Iterator[str]:
        rule = shelf.top - 4
        yield f'<line x1="{MARGIN}" y1="{rule}" x2="{width - MARGIN}" y2="{rule}" class="rule"/>'
        yield text(MARGIN, shelf.top + 13, str(shelf.number), "ink bold")
        for k, said in enumerate(self._said(shelf.band)):
            yield text(MARGIN + 20, shelf.top + 13 + 13 * k, said, "faint")
        for k, row in enumerate(shelf.rows):
            for star in row:
                yield from arrows(self.flow, self._columns, shelf.top + GAP + k * ROW + 8, star)
        yield from self._cells(shelf.cells, shelf.band.holds, shelf.before)

    def _said(self, band: Band) -> list[str]:
        return caption(band) + (["then local reduce"] if band.adds else [])

    def _cells(self, y: int, holds: Holds, before: Holds) -> Iterator[str]:
        for left, *parts in zip(self._lefts, holds, before, self.flow.wanted, strict=True):
            yield from cells(self.grid, left, y, *parts)

    def _legend(self, y: int) -> Iterator[str]:
        moves = [move for band in self.flow.bands for move in band.moves]
        marks = [("has", "held"), ("new", "new in this step")]
        if any(wanted and len(wanted) < len(self.grid.places) for wanted in self.flow.wanted):
            marks.append(("goal", "wanted in the end"))
        x = MARGIN
        for kind, said in marks:
            yield f'<rect x="{x}" y="{y}" width="14" height="{CELL}" class="{kind}"/>'
            yield text(x + 19, y + 9, said, "faint")
            x += 19 + round(len(said) * LETTER) + 16
        yield text(MARGIN, y + 26, self.grid.legend, "faint")
        said = "arrows: what travels"
        said += "; + where it is added to what is there" if self.flow.reduces else ""
        said += "; dashed: RDMA" if any(move.rdma for move in moves) else ""
        yield text(MARGIN, y + 42, said, "faint")
