"""Formulas of an npz file, bounded without computing them: by the least and the greatest number of
their base, their modulus or their table. Only one whose bounds are too wide is computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hccl_py.documents.checks import defect
from hccl_py.formats.npz import Array
from hccl_py.program.builder.columns import frozen
from hccl_py.program.limits import LIMIT
from hccl_py.values import IntArray, PerRank

REWRITE = "Write the file again with hccl-py."
_EXTREMES = (np.minimum, np.maximum)


@dataclass(frozen=True, eq=False)
class Formulas:
    """Values by row of the file's `formulas`: how many ranks each has, its least and greatest
    number.
    """

    values: list[PerRank]
    lanes: IntArray
    low: IntArray
    high: IntArray

    def check(self, path: str, rows: IntArray, low: IntArray, high: int) -> None:
        """Refuse formulas that have a number outside of low[k] .. high."""
        suspect = (self.low[rows] < low) | (self.high[rows] > high)
        for row, least in zip(rows[suspect].tolist(), low[suspect].tolist(), strict=True):
            within(path, self.values[row].values(), least, high)


def formulas_from(arrays: Mapping[str, Array]) -> Formulas:
    """Return the formulas of a file."""
    base, add, mod, table = shaped(arrays, "formulas", (len(arrays["formulas"]), 4)).T
    sizes, pool = arrays["pool_sizes"], arrays["pool"]
    within("pool_sizes", sizes, 1, max(len(pool), 1))
    if int(sizes.sum()) != len(pool):
        raise defect("pool_sizes", f"{len(pool)} numbers in all", str(sizes.sum()), REWRITE)
    within("pool", pool, -LIMIT, LIMIT)
    within("formulas", base, 0, len(sizes) - 1)
    within("formulas", add, -LIMIT, LIMIT)
    within("formulas", table, -1, len(sizes) - 1)
    looks_up = table >= 0
    within("formulas", mod[~looks_up], 0, LIMIT)
    if (looks_up & ((mod < 1) | (mod > sizes[table]))).any():
        raise defect("formulas", "a modulus within the table", "another one", REWRITE)
    starts = np.cumsum(sizes) - sizes
    low, high = (least.reduceat(pool, starts) if len(sizes) else sizes for least in _EXTREMES)
    parts = [frozen(part) for part in np.split(pool, starts[1:])]
    bounds = list(zip(low.tolist(), high.tolist(), strict=True))
    values = [
        PerRank(parts[b], a, m or None, parts[t] if t >= 0 else None, bounds[b])
        for b, a, m, t in arrays["formulas"].tolist()
    ]
    least = np.where(looks_up, low[table], np.where(mod > 0, 0, low[base] + add))
    most = np.where(looks_up, high[table], np.where(mod > 0, mod - 1, high[base] + add))
    return Formulas(values, sizes[base], least, most)


def shaped(arrays: Mapping[str, Array], name: str, shape: tuple[int, ...]) -> IntArray:
    """Return an array that must have a shape."""
    if arrays[name].shape != shape:
        raise defect(name, f"the shape {shape}", str(arrays[name].shape), REWRITE)
    return arrays[name]


def within(path: str, numbers: Array, low: int, high: int) -> None:
    """Refuse numbers outside of low .. high."""
    wrong = (numbers < low) | (numbers > high)
    if wrong.any():
        raise defect(path, f"numbers from {low} to {high}", str(numbers[wrong][0]), REWRITE)
