"""What programs take, as functions of a cost model's parameters: critical paths and their costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hccl_py.cost import CostModel, per_byte
from hccl_py.program.program import Program
from hccl_py.simulator.batches import simulate_batches
from hccl_py.topology.networks import ProductNetwork, network_of
from hccl_py.topology.networks.product import HCCS, MEDIA, ROCE
from hccl_py.topology.topology import Topology
from hccl_py.values import Floats

__all__ = ["CriticalPaths", "Linearization", "Parameter", "TimedCall", "used_parameters"]


_STEP = 1e-6
"""What a parameter is moved by to see what it counts, as a share of itself."""
_NEAR = 1e-4
_SAME = 1e-8


@dataclass(frozen=True)
class Parameter:
    """α or the rate of a link type, or the rate of reductions, which has no `link`.

    Solved for as microseconds: a step, or a byte.
    """

    link: str
    field: str

    @property
    def name(self) -> str:
        """Return `hccs.alpha_us`, as in a cost model's file."""
        return f"{self.link}.{self.field}" if self.link else self.field

    @property
    def is_rate(self) -> bool:
        """Whether its value is in GB/s, and None where it costs nothing."""
        return self.field != "alpha_us"

    def of(self, cost: CostModel) -> float | None:
        """Return its value in a cost model."""
        value: float | None = getattr(getattr(cost, self.link) if self.link else cost, self.field)
        return value

    def microseconds(self, cost: CostModel) -> float:
        """Return what a step or a byte costs."""
        value = self.of(cost)
        return per_byte(value) if self.is_rate else value or 0.0

    def value(self, microseconds: float) -> float | None:
        """Return the value that makes a step or a byte cost so much."""
        if not self.is_rate:
            return microseconds
        return 1e-3 / microseconds if microseconds > 0 else None

    def put(self, cost: CostModel, microseconds: float) -> CostModel:
        """Return the cost model with this cost of a step or a byte."""
        changed = {self.field: self.value(microseconds)}
        if self.link:
            changed = {self.link: getattr(cost, self.link).model_copy(update=changed)}
        return cost.model_copy(update=changed)

    @property
    def usual(self) -> float:
        """Microseconds to start from where a cost model has none: 1 µs, 100 GB/s."""
        return 1e-5 if self.is_rate else 1.0


@dataclass(frozen=True, eq=False)
class TimedCall:
    """A measured call: its program, where it ran, and how long it took."""

    program: Program
    topology: Topology
    time_us: float


@dataclass(frozen=True, eq=False)
class Linearization:
    """What programs take at a point, and how that grows with each parameter around it."""

    at: Floats
    time_us: Floats
    slopes: Floats


class CriticalPaths:
    """Distinct programs as functions of parameters in microseconds, by the paths known so far.

    One row per path: which program's it is, what it takes besides the parameters, and how often it
    counts each of them.
    """

    def __init__(
        self, samples: Sequence[TimedCall], base: CostModel, parameters: Sequence[Parameter]
    ) -> None:
        self._samples, self._base, self._parameters = samples, base, parameters
        self._program = np.zeros(0, np.int64)
        self._besides = np.zeros(0)
        self._counts = np.zeros((0, len(parameters)))

    def cost(self, at: Floats) -> CostModel:
        """Return the cost model of these parameters."""
        cost = self._base
        for parameter, microseconds in zip(self._parameters, at.tolist(), strict=True):
            cost = parameter.put(cost, microseconds)
        return cost

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
        """Return what some programs take."""
        cost, chosen = self.cost(at), [self._samples[row] for row in rows]
        return np.array([simulate_batches(s.program, s.topology, cost).total_us for s in chosen])

    def _steps(self, at: Floats) -> Floats:
        """Return the size of each parameter, or something where it is 0."""
        return np.maximum(at, [_STEP * parameter.usual for parameter in self._parameters])


def used_parameters(samples: Iterable[TimedCall]) -> list[Parameter]:
    """Return α and β of the links that programs have transports over, and γ."""
    used = np.zeros(len(MEDIA), np.bool_)
    for sample in samples:
        ends, network = sample.program.transports, network_of(sample.topology)
        media = np.where(ends.is_rdma, ROCE, HCCS)
        if isinstance(network, ProductNetwork):
            media = network.media(ends.rank, ends.peer, ends.is_rdma)
        used[media] = True
    links = [name for name, is_used in zip(MEDIA, used, strict=True) if is_used]
    of_links = [Parameter(link, field) for link in links for field in ("alpha_us", "gbps")]
    return [*of_links, Parameter("", "reduce_gbps")]
