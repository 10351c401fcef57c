"""The parameters of a cost model as numbers to be solved for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from pydantic import BaseModel

from hccl_py.clocks.cost import (
    ENGINES,
    GIVE_WAY,
    PROTOCOLS,
    CostModel,
    EngineCost,
    LinkCost,
    ProtocolCost,
    per_byte,
)
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
    """A field of a part of the model, or one of the model itself, which has no `part`: a sort of
    links, `engines.ccu`, `protocols.ll`. Those that are `tied` to it have the same value.

    Solved for as microseconds: a step, or a byte.
    """

    part: str
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
        return Parameter(first.part, first.field, tuple(others))

    @property
    def name(self) -> str:
        """Return `hccs.alpha_us`, as in a cost model's file."""
        own = f"{self.part}.{self.field}" if self.part else self.field
        return "=".join([own, *(other.name for other in self.tied)])

    @property
    def is_rate(self) -> bool:
        """True if its value is in GB/s, and None where it costs nothing."""
        return self.field.endswith("gbps")

    def of(self, cost: CostModel) -> float | None:
        """Return its value in a cost model."""
        found: object = cost
        for name in self.part.split(".") if self.part else ():
            found = getattr(found, name)
        value: float | None = getattr(found, self.field)
        if value is None and self.field in _INSTEAD:
            value = getattr(found, _INSTEAD[self.field])
        return value

    @property
    def link(self) -> str:
        """The sort of links that it is of; "" for none."""
        return self.part if self.part in MEDIA else ""

    @property
    def engine(self) -> str:
        """The engine whose calls take no less than this; "" where it is no such time."""
        return self.part.removeprefix("engines.") if self.field == "call_us" else ""

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
        cost = _with(cost, [*self.part.split("."), self.field], self.value(microseconds))
        for other in self.tied:
            cost = other.put(cost, microseconds)
        return cost

    @property
    def usual(self) -> float:
        """Microseconds to start from where a cost model has none: 1 µs, 100 GB/s."""
        return 1e-5 if self.is_rate else 1.0


_INSTEAD = {
    "local_notify_us": "notify_us",
    "far_alpha_us": "alpha_us",
    "read_gbps": "gbps",
    "write_gbps": "gbps",
}
"""The fields that count where others are left out."""

_PARTS: tuple[tuple[str, type[BaseModel]], ...] = (
    *((link, LinkCost) for link in MEDIA),
    ("", CostModel),
    *((f"engines.{engine}", EngineCost) for engine in ENGINES),
    *((f"protocols.{protocol.lower()}", ProtocolCost) for protocol in PROTOCOLS),
)

PARAMETERS = tuple(
    f"{part}.{field}".lstrip(".")
    for part, model in _PARTS
    for field in model.model_fields
    if field.endswith(_UNITS)
)
"""The names of all of them."""


def _named(name: str) -> Parameter:
    if name not in PARAMETERS:
        hint = did_you_mean(name, PARAMETERS) or f"Those known are {', '.join(PARAMETERS)}."
        raise ParameterError(f"A cost model has no parameter {name!r:.60}.", hint)
    part, _, field = name.rpartition(".")
    return Parameter(part, field)


M = TypeVar("M", bound=BaseModel)


def _with(model: M, path: Sequence[str], value: float | None) -> M:
    """Return a model with another value at a path of fields; empty names are left out."""
    name, *further = [name for name in path if name]
    changed = _with(getattr(model, name), further, value) if further else value
    return model.model_copy(update={name: changed})


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


def with_plain_links(base: CostModel, parameters: Sequence[Parameter]) -> CostModel:
    """Return the model without what gives way to parameters that are fitted, unless it is fitted
    itself.
    """
    asked = {name for parameter in parameters for name in parameter.name.split("=")}
    for name in asked:
        part, _, field = name.rpartition(".")
        finer = [other for other in GIVE_WAY.get(field, ()) if f"{part}.{other}" not in asked]
        for other in finer if part in MEDIA else ():
            base = _with(base, [part, other], None)
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
