"""Times of programs as functions of a cost model's parameters, simulated at every point.

Where links are shared, times are no longer sums along a path: a flow that is slower makes others
faster. So slopes are differences of two simulations.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hccl_py.clocks.cost import CostModel
from hccl_py.fit.parameters import Linearization, Parameter, TimedCall, cost_at
from hccl_py.simulator.entry import Network, simulate
from hccl_py.values import Floats

_FASTEST = 1e-7
"""Microseconds of a byte that no rate goes below: 10 TB/s."""
_STEP = 1e-4
"""What a parameter is moved by to see what it counts, as a share of itself."""
_LEAST = 1e-3
"""The same where it is 0, as a share of what is usual."""


class SimulatedTimes:
    """Distinct programs as functions of parameters in microseconds."""

    learns = False
    tolerance = 1e-5
    most = 20
    steady = 1e-2

    def __init__(
        self, samples: Sequence[TimedCall], base: CostModel, parameters: Sequence[Parameter]
    ) -> None:
        self._samples, self._base, self._parameters = samples, base, parameters
        self._least = np.array([_FASTEST if parameter.is_rate else 0.0 for parameter in parameters])
        self._known: dict[bytes, Floats] = {}

    def cost(self, at: Floats) -> CostModel:
        """Return the cost model of these parameters. No rate is free: what takes no time alone does
        not share memory either, which would be a step between almost nothing and nothing.
        """
        return cost_at(self._base, self._parameters, np.maximum(at, self._least))

    def time_us(self, at: Floats) -> Floats:
        """Return the times of the programs, simulated once for every point."""
        key = at.tobytes()
        if key not in self._known:
            self._known[key] = simulated(self._samples, self.cost(at), "contended")
        return self._known[key]

    def linearize(self, at: Floats) -> Linearization:
        """Return times and slopes at a point."""
        time_us = self.time_us(at)
        slopes = np.zeros((len(time_us), len(at)))
        usual = np.array([parameter.usual for parameter in self._parameters])
        begin = np.maximum(at, self._least)
        for k, step in enumerate(np.maximum(_STEP * begin, _LEAST * usual)):
            moved = begin.copy()
            moved[k] += step
            slopes[:, k] = (self.time_us(moved) - time_us) / (moved[k] - begin[k])
        return Linearization(at, time_us, slopes)

    def extend(self, at: Floats) -> bool:
        """There is nothing to learn: every point is simulated."""
        return False


def simulated(samples: Sequence[TimedCall], cost: CostModel, network: Network) -> Floats:
    """Return the times of programs, in µs."""
    found = [simulate(s.program, s.topology, cost, network=network).total_us for s in samples]
    return np.array(found)
