"""The part of time that is drawn, and its columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_py.trace.units import format_time
from hccl_py.values import Floats, IntArray


class Window(NamedTuple):
    """Microseconds `begin_us` to `end_us`, over so many columns."""

    begin_us: float
    end_us: float
    columns: int

    @property
    def us_per_column(self) -> float:
        """Microseconds of one column."""
        return (self.end_us - self.begin_us) / self.columns

    def shows(self, start_us: Floats, end_us: Floats) -> npt.NDArray[np.bool_]:
        """Return a mask of the spans that take time in the window."""
        return (end_us > start_us) & (end_us > self.begin_us) & (start_us < self.end_us)

    def spans(self, start_us: Any, end_us: Any) -> tuple[IntArray, IntArray]:
        """Return first .. stop - 1, the columns of spans that it shows: at least one for each."""
        begin, end = (
            (np.asarray(us, np.float64) - self.begin_us) / self.us_per_column
            for us in (start_us, end_us)
        )
        first = np.clip(np.floor(begin), 0, self.columns - 1).astype(np.int64)
        stop = np.rint(np.clip(end, 0, self.columns)).astype(np.int64)
        return first, np.maximum(stop, first + 1)

    def widths(self, start_us: Floats, end_us: Floats) -> IntArray:
        """Return the number of whole columns that spans last within the window."""
        inside = np.minimum(end_us, self.end_us) - np.maximum(start_us, self.begin_us)
        return np.floor(inside / self.us_per_column + 1e-6).astype(np.int64)

    def column(self, at_us: float) -> int:
        """Return the column of a moment; the nearest one where it is outside."""
        at = int((at_us - self.begin_us) / self.us_per_column)
        return min(max(at, 0), self.columns - 1)

    def scale(self) -> str:
        """Return a line of round numbers of microseconds, and the end."""
        line = [" "] * self.columns
        step = _round_step(self.us_per_column * 10)
        whole, part = (int(np.floor(np.log10(us) + 1e-9)) for us in (self.end_us, step))
        digits = max(whole + 1 - min(part, 0), 6)
        end = f"{self.end_us:.{digits}g}" if step < 0.01 else format_time(self.end_us)
        tick, free = int(np.ceil(self.begin_us / step - 1e-9)), 0
        while tick * step < self.end_us:
            at, label = self.column(tick * step), f"{tick * step:.{digits}g}"
            if at + len(label) + 2 > self.columns - len(end):
                break
            if at >= free:
                line[at : at + len(label)] = label
                free = at + len(label) + 1
            tick += 1
        line[max(self.columns - len(end), 0) :] = end[-self.columns :]
        return "".join(line)


def _round_step(least: float) -> float:
    """Return the smallest of 1, 2 or 5 times a power of ten that is not below `least`."""
    power = 10.0 ** np.floor(np.log10(least))
    return float(next(power * f for f in (1, 2, 5, 10) if power * f >= least * (1 - 1e-9)))
