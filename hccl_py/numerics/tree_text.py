"""A summation tree as text: ranks as leaves from top to bottom, steps from left to right.

    rank 0 ─┐
    rank 1 ─┴─┐
    rank 2 ───┴─ sum

A step takes a column; what is added in the order of arrival meets at a star, and a sum in fp32 is
rounded at a circle. Trees that are too wide are written as a formula.
"""

from __future__ import annotations

from typing import NamedTuple

from hccl_py.numerics.sum_trees import SumTree

MOST_LEAVES = 256
"""Leaves of a tree that is drawn; others are formulas."""

_STEP = 2


class _Signs(NamedTuple):
    line: str
    down: str
    corner: str
    middle: str
    join: str
    arrival: str
    rounding: str


_UNICODE = _Signs("─", "│", "┐", "┤", "┴", "✱", "○")
_ASCII = _Signs("-", "|", "+", "+", "+", "*", "o")


def draw_tree(tree: SumTree, width: int, *, unicode: bool = True) -> list[str]:
    """Return the lines of a drawing, or the formula where it would be wider than `width`."""
    leaves = list(tree.leaves())
    name = max(len(f"rank {rank}") for rank in leaves)
    if len(leaves) > MOST_LEAVES or name + _STEP * tree.depth + 6 > width:
        return [tree.formula()]
    signs = _UNICODE if unicode else _ASCII
    canvas = _Canvas(len(leaves), _STEP * tree.depth + 1, signs)
    row = canvas.place(tree)
    lines = []
    for at, rank in enumerate(leaves):
        text = "".join(canvas.cells[at])
        end = f"{signs.line} sum" if at == row else ""
        lines.append(f"{f'rank {rank}':<{name}} {text.rstrip()}{end}".rstrip())
    return lines


class _Canvas:
    """Rows of leaves, and columns of steps."""

    def __init__(self, rows: int, columns: int, signs: _Signs) -> None:
        self.cells = [[" "] * columns for _ in range(rows)]
        self._signs, self._next = signs, 0

    def place(self, root: SumTree) -> int:
        """Draw a tree below the leaves that are placed; return the row at which it ends. A stack,
        because chains are as deep as there are ranks.
        """
        rows: list[int] = []
        waiting: list[tuple[SumTree, bool]] = [(root, False)]
        while waiting:
            tree, is_placed = waiting.pop()
            if not tree.parts:
                rows.append(self._next)
                self._next += 1
            elif not is_placed:
                waiting.append((tree, True))
                waiting += [(part, False) for part in reversed(tree.parts)]
            else:
                count = len(tree.parts)
                rows[-count:] = [self._join(tree, rows[-count:])]
        return rows[0]

    def _join(self, tree: SumTree, rows: list[int]) -> int:
        column, signs = _STEP * tree.depth, self._signs
        for part, row in zip(tree.parts, rows, strict=True):
            for at in range(_STEP * part.depth + (part.depth > 0), column):
                self.cells[row][at] = signs.line
        for row in range(rows[0] + 1, rows[-1]):
            self.cells[row][column] = signs.middle if row in rows else signs.down
        self.cells[rows[0]][column] = signs.corner
        joint = (signs.rounding, signs.join, signs.arrival)[min(len(rows), 3) - 1]
        self.cells[rows[-1]][column] = joint
        return rows[-1]
