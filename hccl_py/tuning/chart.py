"""A comparison as a chart of characters: time against data size, both logarithmic."""

from __future__ import annotations

import math

from hccl_py.trace.units import format_size, format_time
from hccl_py.tuning.compare import Comparison

HEIGHT = 14
MARGIN = 12
"""Columns for the numbers on the left."""

WIDEST_STEP = 9
"""Columns between two sizes."""

UNICODE, ASCII = tuple("●○·│└─"), tuple("*o.|+-")


def chart(found: Comparison, width: int, *, unicode: bool = True) -> list[str]:
    """Return the lines of a chart that fits into so many columns: the winners, the choice of HCCL's
    rules, and the others.
    """
    best, rules, other, side, corner, line = UNICODE if unicode else ASCII
    sizes = list(found.by_size)
    times = [row.time_us for row in found.rows if row.time_us > 0]
    if not times:
        return []
    step = max(1, min(WIDEST_STEP, (width - MARGIN - 2) // len(sizes)))
    low, high = math.log(min(times)), math.log(max(times))
    grid = [[" "] * (step * len(sizes)) for _ in range(HEIGHT)]

    def put(size: int, time_us: float, mark: str) -> None:
        share = (math.log(time_us) - low) / (high - low) if high > low else 0.0
        grid[round((HEIGHT - 1) * (1 - share))][sizes.index(size) * step + step // 2] = mark

    rows = [row for row in found.rows if row.time_us > 0]
    for mark, chosen in (
        (other, rows),
        (rules, [row for row in rows if row.candidate.is_hccl]),
        (best, [row for row in rows if row.is_winner]),
    ):
        for row in chosen:
            put(row.bytes, row.time_us, mark)
    lines = []
    for number, cells in enumerate(grid):
        share = 1 - number / (HEIGHT - 1)
        label = format_time(math.exp(low + share * (high - low))) if number % 3 == 0 else ""
        lines.append(f"{label:>{MARGIN - 1}} {side}{''.join(cells)}")
    lines.append(f"{'us':>{MARGIN - 1}} {corner}{line * (step * len(sizes))}")
    lines.append(" " * (MARGIN + 1) + _names(sizes, step))
    lines.append(
        " " * (MARGIN + 1) + f"{best} fastest  {rules} HCCL's rules, where slower  {other} others"
    )
    return [text.rstrip() for text in lines]


def _names(sizes: list[int], step: int) -> str:
    """Return the sizes below their columns; where they would touch, some only."""
    names = [format_size(size) for size in sizes]
    every = math.ceil((max(map(len, names)) + 1) / step)
    cells = [" "] * (step * len(sizes) + max(map(len, names)))
    for number in range(0, len(sizes), every):
        name = names[number]
        at = max(0, number * step + step // 2 - len(name) // 2)
        cells[at : at + len(name)] = name
    return "".join(cells)
