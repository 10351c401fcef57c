"""A comparison as a chart of characters: time against data size, both logarithmic."""

from __future__ import annotations

import math
import textwrap

from hccl_py.trace.units import format_size, format_time
from hccl_py.tuning.compare import Comparison, Row

HEIGHT = 14
MARGIN = 12
"""Columns for the numbers on the left."""

WIDEST_STEP = 9
"""Columns between two sizes."""

NAMED = "abcdef"
"""Letters of the candidates that come next; those that are slower have dots."""

UNICODE, ASCII = tuple("●○·│└─"), tuple("*o.|+-")


def chart(found: Comparison, width: int, *, unicode: bool = True) -> list[str]:
    """Return the lines of a chart that fits into so many columns: the winners, the choice of HCCL's
    rules, a letter for each of those that come next, and the others; below it the names.
    """
    best, rules, other, side, corner, line = UNICODE if unicode else ASCII
    sizes = list(found.by_size)
    times = [row.time_us for row in found.rows if row.time_us > 0]
    if not times:
        return []
    step = max(1, min(WIDEST_STEP, (width - MARGIN - 2) // len(sizes)))
    low, high = math.log(min(times)), math.log(max(times))
    grid = [[" "] * (step * len(sizes)) for _ in range(HEIGHT)]

    def put(row: Row, mark: str) -> bool:
        """Put a mark where none is; return True if it can be seen."""
        share = (math.log(row.time_us) - low) / (high - low) if high > low else 0.0
        cells = grid[round((HEIGHT - 1) * (1 - share))]
        column = sizes.index(row.bytes) * step + step // 2
        is_free = cells[column] == " "
        cells[column] = mark if is_free else cells[column]
        return is_free

    rows = [row for row in found.rows if row.time_us > 0]
    for row in sorted(rows, key=lambda row: (not row.is_winner, not row.candidate.is_hccl)):
        if row.is_winner or row.candidate.is_hccl:
            put(row, best if row.is_winner else rules)
    letters: dict[str, str] = {}
    for name in _next_fastest(found):
        letter = NAMED[len(letters)] if len(letters) < len(NAMED) else other
        seen = [put(row, letter) for row in rows if row.candidate.name == name]
        if any(seen) and letter != other:
            letters[name] = letter
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
    lines += _legend(found, letters, width)
    return [text.rstrip() for text in lines]


def _next_fastest(found: Comparison) -> list[str]:
    """Return the names of all candidates, those first that are the fastest over their sizes."""
    ratios: dict[str, list[float]] = {}
    for row in found.rows:
        if row.time_us > 0:
            ratio = math.log(row.time_us / found.winners[row.bytes].time_us)
            ratios.setdefault(row.candidate.name, []).append(ratio)
    return sorted(ratios, key=lambda name: (sum(ratios[name]) / len(ratios[name]), name))


def _legend(found: Comparison, letters: dict[str, str], width: int) -> list[str]:
    """Return lines with the names of the fastest, and of those that have letters."""
    best = dict.fromkeys(row.candidate.name for row in found.winners.values())
    names = [f"fastest: {', '.join(best)}"]
    names += [f"{letter} {name}" for name, letter in letters.items()]
    return textwrap.wrap(
        "; ".join(names), max(width - 2, 40), break_on_hyphens=False, break_long_words=False
    )


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
