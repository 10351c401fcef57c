"""Times of programs as functions of a cost model's parameters: critical paths and their costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from hccl_py.clocks.cost import CostModel
from hccl_py.fit.parameters import Linearization, Parameter, TimedCall, cost_at
from hccl_py.simulator.batches import simulate_batches
from hccl_py.values import Floats

_STEP = 1e-6
"""What a parameter is moved by to see what it counts, as a share of itself."""
_NEAR = 1e-4
_SAME = 1e-8


class CriticalPaths:
    """Distinct programs as functions of parameters in microseconds, by the paths known so far.

    One row per path: which program's it is, what it takes besides the parameters, and how often it
    counts each of them.
    """

    learns = True
    tolerance = 1e-15
    """Of the search over them, which is cheap: it simulates nothing."""

    most = 1000
    steady = 1e-8
    """By how much, relatively, a point that does not move any more may move."""

    def __init__(
        self, samples: Sequence[TimedCall], base: CostModel, parameters: Sequence[Parameter]
    ) -> None:
        self._samples, self._base, self._parameters = samples, base, parameters
        self._program = np.zeros(0, np.int64)
        self._besides = np.zeros(0)
        self._counts = np.zeros((0, len(parameters)))

    def cost(self, at: Floats) -> CostModel:
        """Return the cost model of these parameters."""
        return cost_at(self._base, self._parameters, at)

    def time_us(self, at: Floats) -> Floats:
        """Return times at a point, by the paths known so far."""
        return self.linearize(at).time_us

    def linearize(self, at: Floats) -> Linearization:
        """Return times and slopes at a point, by the paths known so far."""
        time_us = self._besides + self._counts @ at
        order = np.lexsort((time_us, self._program))
        longest = order[np.flatnonzero(np.diff(self._program[order], append=-1))]
        return Linearization(at, time_us[longest], self._counts[longest])

    def extend(self, at: Floats) -> bool:
        """Add the critical paths at a point that are longer than those known; False where none is.

        Their counts are those close by: at the point itself two paths may be equally long. Counts
        are rounded, so a path may come out longer than the program, which needs no other path;
        and one that adds nothing at this point would be added for ever.
        """
        every = range(len(self._samples))
        known = self.linearize(at).time_us if len(self._program) else np.zeros(len(every))
        rows = np.flatnonzero(self.times(at, every) > known * (1 + _SAME))
        close = at + _NEAR * self._steps(at) * np.sqrt(np.arange(2, 2 + len(at)))
        time_us = self.times(close, rows)
        counts = np.zeros((len(rows), len(at)))
        for k, step in enumerate((_STEP * self._steps(at)).tolist() if len(rows) else ()):
            moved = close.copy()
            moved[k] += step
            counts[:, k] = (self.times(moved, rows) - time_us) / (moved[k] - close[k])
        self._program = np.concatenate([self._program, rows])
        self._besides = np.concatenate([self._besides, time_us - counts @ close])
        self._counts = np.concatenate([self._counts, counts])
        return bool((self.linearize(at).time_us > known * (1 + _SAME)).any())

    def times(self, at: Floats, rows: Iterable[int]) -> Floats:
        """Return the times of some programs."""
        cost, chosen = self.cost(at), [self._samples[row] for row in rows]
        return np.array([simulate_batches(s.program, s.topology, cost).total_us for s in chosen])

    def _steps(self, at: Floats) -> Floats:
        """Return the size of each parameter, or something where it is 0."""
        return np.maximum(at, [_STEP * parameter.usual for parameter in self._parameters])
