"""The parameters of a cost model as numbers to be solved for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hccl_py.clocks.cost import CostModel, LinkCost, per_byte
from hccl_py.clocks.links import ports_of
from hccl_py.errors import ParameterError, did_you_mean
from hccl_py.program.program import Program
from hccl_py.topology.networks import ProductNetwork, network_of
from hccl_py.topology.networks.product import HCCS, MEDIA, ROCE
from hccl_py.topology.topology import Topology
from hccl_py.values import Floats

_UNITS = ("_us", "gbps")
_FREE = 1e-12
"""Microseconds of a byte below which it costs nothing: rates end at 1e9 GB/s."""


@dataclass(frozen=True)
class Parameter:
    """A field of a link type, or one of the model itself, which has no `link`; those that are
    `tied` to it have the same value.

    Solved for as microseconds: a step, or a byte.
    """

    link: str
    field: str
    tied: tuple[Parameter, ...] = ()

    @staticmethod
    def parse(text: str) -> Parameter:
        """Return the parameter of a name such as `hccs.alpha_us`, or of several in a row with `=`
        between them, which are to have one value; ParameterError for other names.
        """
        first, *others = [_named(name.strip()) for name in text.split("=")]
        for other in others:
            if other.is_rate != first.is_rate:
                raise ParameterError(
                    f"{first.name} and {other.name} cannot be equal: one is a rate.",
                    "Tie rates to rates, and times to times.",
                )
        return Parameter(first.link, first.field, tuple(others))

    @property
    def name(self) -> str:
        """Return `hccs.alpha_us`, as in a cost model's file."""
        own = f"{self.link}.{self.field}" if self.link else self.field
        return "=".join([own, *(other.name for other in self.tied)])

    @property
    def is_rate(self) -> bool:
        """True if its value is in GB/s, and None where it costs nothing."""
        return self.field.endswith("gbps")

    def of(self, cost: CostModel) -> float | None:
        """Return its value in a cost model."""
        if self.field == "local_notify_us":
            return cost.inside_us
        value: float | None = getattr(getattr(cost, self.link) if self.link else cost, self.field)
        return value

    def microseconds(self, cost: CostModel) -> float:
        """Return the cost of a step or of a byte, in µs."""
        value = self.of(cost)
        return per_byte(value) if self.is_rate else value or 0.0

    def value(self, microseconds: float) -> float | None:
        """Return the value that makes a step or a byte cost so much."""
        if not self.is_rate:
            return microseconds
        return 1e-3 / microseconds if microseconds >= _FREE else None

    def put(self, cost: CostModel, microseconds: float) -> CostModel:
        """Return the cost model with this cost of a step or a byte."""
        changed = {self.field: self.value(microseconds)}
        if self.link:
            changed = {self.link: getattr(cost, self.link).model_copy(update=changed)}
        cost = cost.model_copy(update=changed)
        for other in self.tied:
            cost = other.put(cost, microseconds)
        return cost

    @property
    def usual(self) -> float:
        """Microseconds to start from where a cost model has none: 1 µs, 100 GB/s."""
        return 1e-5 if self.is_rate else 1.0


_OF_LINKS = [
    f"{link}.{field}" for link in MEDIA for field in LinkCost.model_fields if field.endswith(_UNITS)
]
_OF_MODELS = [field for field in CostModel.model_fields if field.endswith(_UNITS)]

PARAMETERS = (*_OF_LINKS, *_OF_MODELS)
"""The names of all of them."""


def _named(name: str) -> Parameter:
    if name not in PARAMETERS:
        hint = did_you_mean(name, PARAMETERS) or f"Those known are {', '.join(PARAMETERS)}."
        raise ParameterError(f"A cost model has no parameter {name!r:.60}.", hint)
    link, _, field = name.rpartition(".")
    return Parameter(link, field)


@dataclass(frozen=True, eq=False)
class TimedCall:
    """A measured call: its program, where it ran, and how long it took."""

    program: Program
    topology: Topology
    time_us: float


@dataclass(frozen=True, eq=False)
class Linearization:
    """Times of programs at a point, and their slopes along each parameter."""

    at: Floats
    time_us: Floats
    slopes: Floats


def cost_at(base: CostModel, parameters: Sequence[Parameter], at: Floats) -> CostModel:
    """Return the cost model that has these parameters, in microseconds."""
    for parameter, microseconds in zip(parameters, at.tolist(), strict=True):
        base = parameter.put(base, microseconds)
    return base


def used_parameters(samples: Iterable[TimedCall]) -> list[Parameter]:
    """Return α and β of the links that programs have transports over, and γ."""
    used = np.zeros(len(MEDIA), np.bool_)
    for sample in samples:
        ends, network = sample.program.transports, network_of(sample.topology)
        media = np.where(ends.is_rdma, ROCE, HCCS)
        if isinstance(network, ProductNetwork):
            media = network.media(ends.rank, ends.peer, ports_of(sample.topology, ends))
        used[media] = True
    links = [name for name, is_used in zip(MEDIA, used, strict=True) if is_used]
    of_links = [Parameter(link, field) for link in links for field in ("alpha_us", "gbps")]
    return [*of_links, Parameter("", "reduce_gbps")]
