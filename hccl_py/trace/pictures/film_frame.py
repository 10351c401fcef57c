"""One frame of a film strip: the moves of a step as arrows, and what nodes hold after it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from math import atan2, cos, hypot, sin

from hccl_py.trace.pictures.algorithm_steps import RDMA, AlgorithmSteps
from hccl_py.trace.pictures.held_cells import HeldCells
from hccl_py.trace.pictures.svg import text, text_on_lines

Point = tuple[float, float]

MANY = 40
"""Arrows of which those of one rank alone stand out."""

HUES = 16


class FilmFrame:
    """Frames of one size, `width` pixels wide."""

    def __init__(self, steps: AlgorithmSteps, width: int) -> None:
        self.steps, self.width = steps, width
        kind = steps.seats.kind
        self.height = round(width * {"ring": 0.86, "rows": 0.5, "grid": 0.62}[kind])
        self.card = self._card()
        half = self.card[0] / 2 + 6, self.card[1] / 2 + (14 if self.is_large else 5)
        margin = half if kind == "ring" else (2.0, 2.0)
        wide, high = width - 2 * margin[0], self.height - 2 * margin[1]
        self.at: list[Point] = [
            (margin[0] + x * wide, margin[1] + y * high)
            for x, y in zip(steps.seats.x, steps.seats.y, strict=True)
        ]

    def _card(self) -> Point:
        """Return the width and the height of a node."""
        count, seats = len(self.names), self.steps.seats
        rows = 1 if self.steps.cells is None else self.steps.cells.rows
        if seats.kind == "ring":
            wide = max(10.0, min(self.width * 0.24, self.width * 1.6 / max(count, 1)))
            return wide, min(wide * (0.8 if rows > 1 else 0.36), self.height * 0.22)
        down = -(-count // max(seats.across, 1))
        wide = self.width / max(seats.across, 1) * (0.8 if seats.kind == "rows" else 0.62)
        return wide, min(wide * 0.9, self.height / max(down, 1) * 0.5)

    @property
    def is_large(self) -> bool:
        """True if there is room for names."""
        return self.width >= 150 and len(self.names) <= 8

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all nodes."""
        return self.steps.nodes.names

    def draw(self, number: int) -> Iterator[str]:
        """Draw the frame of a step; 0 is the beginning."""
        yield f'<rect class="card" width="{self.width}" height="{self.height}" rx="5"/>'
        for left, top, right, bottom, _ in self.steps.seats.boxes:
            yield (
                f'<rect class="box" x="{left * self.width + 2:.1f}" '
                f'y="{top * self.height + 2:.1f}" width="{(right - left) * self.width - 4:.1f}" '
                f'height="{(bottom - top) * self.height - 4:.1f}" rx="4"/>'
            )
        moves = self.steps.moves_of(number) if number else range(0)
        yield from self._arrows(moves)
        for node, (x, y) in enumerate(self.at):
            left, top = x - self.card[0] / 2, y - self.card[1] / 2
            yield (
                f'<rect class="node" x="{left - 1:.1f}" y="{top - 1:.1f}" '
                f'width="{self.card[0] + 2:.1f}" height="{self.card[1] + 2:.1f}" rx="1.5"/>'
            )
            if self.is_large and self.steps.nodes.noun == "rank":
                yield text(round(left) - 2, round(top) - 3, self.names[node], "faint small")
            yield from self._contents(number, node, moves, left, top)
        yield from self._labels(moves)

    # ---- arrows ----

    def _arrows(self, moves: range) -> Iterator[str]:
        found = self.steps.moves
        crowded = len(moves) > MANY or self.steps.nodes.noun != "rank"
        for k in moves:
            source, target = int(found.source[k]), int(found.target[k])
            if source == target:
                continue
            leads = not crowded or self._leads(source)
            kind = (
                f"arrow {self._hue(k) if leads and not crowded else 'lead' if leads else 'aside'}"
            )
            if found.kind[k] & RDMA and not crowded:
                kind += " rdma"
            begin, control, end = self._curve(source, target)
            path = f"M{_xy(begin)}Q{_xy(control)} {_xy(end)}"
            yield f'<path class="{kind}" d="{path}"/>'
            if leads:
                yield f'<path class="{kind} head" d="{_head(control, end)}"/>'

    def _leads(self, node: int) -> bool:
        """Return True for a node whose arrows stand for those of all others."""
        if self.steps.nodes.noun == "rank":
            return int(self.steps.places.place[node]) == 0
        return node == 0

    def _hue(self, move: int) -> str:
        """Return the class of a colour: of the only chunk that travels, or none."""
        cells = self.steps.cells
        columns = [] if cells is None else columns_of(cells, cells.parts[move])
        return f"h{columns[0] % HUES}" if len(columns) == 1 else "plain"

    def _curve(self, source: int, target: int) -> tuple[Point, Point, Point]:
        (ax, ay), (bx, by) = self.at[source], self.at[target]
        dx, dy = bx - ax, by - ay
        middle = (ax + bx) / 2, (ay + by) / 2
        if self.steps.seats.kind != "ring" and abs(dy) < 1:
            return self._bow(ax, bx, ay)
        if self.steps.seats.kind == "ring":
            cx, cy = self.width / 2, self.height / 2
            pull = 0.28 if hypot(dx, dy) > 0.45 * min(cx, cy) else 0.05
            control = (
                middle[0] * (1 - pull) + cx * pull - dy * 0.07,
                middle[1] * (1 - pull) + cy * pull + dx * 0.07,
            )
        else:
            control = middle[0] - dy * 0.16, middle[1] + dx * 0.16
        return self._edge(self.at[source], control), control, self._edge(self.at[target], control)

    def _bow(self, begin: float, end: float, y: float) -> tuple[Point, Point, Point]:
        """Return a curve between cards of a row: above them to the right, below to the left."""
        way = 1 if end > begin else -1
        edge = y - way * (self.card[1] / 2 + 2)
        rise = min(abs(end - begin) * 0.3, self.card[1] * 1.2) + 3
        begin, end = begin + way * self.card[0] * 0.2, end - way * self.card[0] * 0.2
        return (begin, edge), ((begin + end) / 2, edge - way * rise), (end, edge)

    def _edge(self, at: Point, to: Point) -> Point:
        """Return the point at which a line from a node leaves its card."""
        dx, dy = to[0] - at[0], to[1] - at[1]
        across = (self.card[0] / 2 + 3) / abs(dx) if dx else 9e9
        down = (self.card[1] / 2 + 3) / abs(dy) if dy else 9e9
        part = min(across, down, 0.8)
        return at[0] + dx * part, at[1] + dy * part

    def _labels(self, moves: range) -> Iterator[str]:
        """Name what travels, where there is room."""
        cells = self.steps.cells
        if cells is None or not self.is_large or len(moves) > 16:
            return
        for k in moves:
            if 0 < len(cells.labels[k]) <= 6:
                curve = self._curve(
                    int(self.steps.moves.source[k]), int(self.steps.moves.target[k])
                )
                x, y = _label_place(curve)
                yield text_on_lines(round(x), round(y) + 4, cells.labels[k])

    # ---- contents ----

    def _contents(
        self, number: int, node: int, moves: range, left: float, top: float
    ) -> Iterator[str]:
        width, height = self.card
        cells = self.steps.cells
        if cells is None:
            share = float(self.steps.share[number - 1, node]) if number else 0.0
            if share:
                yield (
                    f'<rect class="h2" x="{left:.1f}" y="{top + height * (1 - share):.1f}" '
                    f'width="{width:.1f}" height="{height * share:.1f}"/>'
                )
            return
        arrived = 0
        for k in moves:
            if self.steps.moves.target[k] == node:
                arrived |= cells.parts[k]
        new = cells.fresh(number, node, arrived) if number else cells.holds[0][node]
        yield from self._cells(cells, cells.holds[number][node], new, left, top)

    def _cells(
        self, cells: HeldCells, held: int, new: int, left: float, top: float
    ) -> Iterator[str]:
        """Draw cells: runs of rows in a column are one shape, a path for each hue and age."""
        wide, high = self.card[0] / cells.columns, self.card[1] / cells.rows
        gap = 0.92 if wide > 3 else 1.0
        paths: dict[str, list[str]] = defaultdict(list)
        for column in range(cells.columns):
            for first, stop, is_new in runs(cells, held, new, column):
                style = f"h{column % HUES}" + ("" if is_new else " old")
                paths[style].append(
                    f"M{left + column * wide:.1f} {top + first * high:.1f}h{wide * gap:.1f}"
                    f"v{(stop - first) * high:.1f}h-{wide * gap:.1f}z"
                )
        for style, shapes in paths.items():
            yield f'<path class="{style}" d="{"".join(shapes)}"/>'


def runs(cells: HeldCells, held: int, new: int, column: int) -> Iterator[tuple[int, int, bool]]:
    """Yield the runs of held rows of a column that are as new as each other: first, stop, new."""
    states = [
        (held >> bit & 1, new >> bit & 1)
        for bit in range(column, cells.rows * cells.columns, cells.columns)
    ]
    first = 0
    for row in range(1, len(states) + 1):
        if row == len(states) or states[row] != states[first]:
            if states[first][0]:
                yield first, row, bool(states[first][1])
            first = row


def columns_of(cells: HeldCells, parts: int) -> list[int]:
    """Return the columns that some cells are in."""
    return [c for c in range(cells.columns) if parts & cells.column(c)]


def _label_place(curve: tuple[Point, Point, Point]) -> Point:
    """Return the point of a curve where its label is, a little before its middle."""
    (ax, ay), (cx, cy), (bx, by) = curve
    part = 0.42
    rest = 1 - part
    return (
        rest * rest * ax + 2 * rest * part * cx + part * part * bx,
        rest * rest * ay + 2 * rest * part * cy + part * part * by,
    )


def _xy(point: Point) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"


def _head(control: Point, end: Point) -> str:
    turn = atan2(end[1] - control[1], end[0] - control[0])
    tip = end[0] + 2 * cos(turn), end[1] + 2 * sin(turn)
    sides = [(end[0] - 5 * cos(turn + by), end[1] - 5 * sin(turn + by)) for by in (0.45, -0.45)]
    return f"M{_xy(tip)}L{_xy(sides[0])}L{_xy(sides[1])}z"
