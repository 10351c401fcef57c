"""Measurements that a cost model was held to, and the calls that they speak for.

A cost model states its sets of measured times (`CostModel.measured`). Each set says of what kind it
is, which calls it holds, and by how much the model missed those times of it that were held out of
its fit. The 90th percentile of these errors is the band beside a time; a call outside the ops,
bytes, ranks, engines or network of the set has the band of other calls, and the reasons say so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Kind = Literal["hardware", "vendor simulation", "document", "none"]
"""Where times come from: a machine, a vendor's simulation of one, a text that states rates."""

Share = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""The size of a relative deviation: 0.09 is 9 %."""


class HeldOut(BaseModel):
    """Sizes of the relative deviations of times that a fit did not see."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    points: Annotated[int, Field(ge=1)]
    median: Share
    p90: Share
    worst: Share | None = None


class MeasuredSet(BaseModel):
    """One set of measured times. An empty list, and `bytes` of none, leave a side open.

    `what` says for people what was measured, `how` how errors were held out. `bytes` are the least
    and the most of a call, `network` is the view of the links that was compared.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    what: str
    kind: Kind
    source: str = ""
    ops: Annotated[tuple[str, ...], Field(strict=False)] = ()
    bytes: Annotated[tuple[int, int] | None, Field(strict=False)] = None
    ranks: Annotated[tuple[int, ...], Field(strict=False)] = ()
    engines: Annotated[tuple[str, ...], Field(strict=False)] = ()
    protocols: Annotated[tuple[str, ...], Field(strict=False)] = ()
    links: Annotated[tuple[str, ...], Field(strict=False)] = ()
    network: Literal["", "uncontended", "contended"] = ""
    points: Annotated[int, Field(ge=0)] = 0
    fitted: bool = False
    how: str = ""
    held_out: HeldOut | None = None


@dataclass(frozen=True)
class TimedCallFacts:
    """Facts of a call that sets of measured times know: `links` are the sorts of links that it
    uses; None and empty texts are not held against a set.
    """

    op: str
    bytes: int
    ranks: int
    engine: str = ""
    protocol: str = ""
    links: tuple[str, ...] = ()
    network: str = ""


@dataclass(frozen=True)
class Accuracy:
    """The accuracy of a time: the set that comes nearest to the call, and the reasons why the
    call is outside of it, `128 ranks, measured at 16`; inside where there is none.

    Without a set, or with one that has no held-out errors, there is no band.
    """

    measured: MeasuredSet | None
    outside: tuple[str, ...] = ()

    @property
    def band(self) -> float | None:
        """The size of the relative error that nine of ten held-out times stayed below."""
        held_out = None if self.measured is None else self.measured.held_out
        return None if held_out is None else held_out.p90

    @property
    def is_inside(self) -> bool:
        """True if there is a set and the call is inside of it."""
        return self.measured is not None and not self.outside


def accuracy_of(measured: tuple[MeasuredSet, ...], call: TimedCallFacts) -> Accuracy:
    """Return the accuracy of a model's time of a call by the model's sets of measured times.

    Of several sets the one counts that has errors held out and is nearest to the call: with the
    fewest reasons against it, then with the nearest sizes, then with the most points.
    """
    judged = [
        (Accuracy(one, tuple(_reasons(one, call))), one) for one in measured if one.kind != "none"
    ]
    if not judged:
        return Accuracy(None)

    def distance(pair: tuple[Accuracy, MeasuredSet]) -> tuple[bool, int, float, int]:
        found, one = pair
        return one.held_out is None, len(found.outside), _from_sizes(one, call.bytes), -one.points

    return min(judged, key=distance)[0]


def _from_sizes(one: MeasuredSet, size: int) -> float:
    """Return the logarithm of the ratio of a size to the nearest of a set."""
    if one.bytes is None:
        return 0.0
    least, most = (math.log2(max(n, 1)) for n in one.bytes)
    at = math.log2(max(size, 1))
    return max(least - at, at - most, 0.0)


def _reasons(one: MeasuredSet, call: TimedCallFacts) -> list[str]:
    """Return the facts of a call that are outside a set."""
    found = []
    if one.ops and call.op and call.op not in one.ops:
        found.append(f"{call.op}, measured for {_listed(one.ops)}")
    if one.bytes is not None and not one.bytes[0] <= call.bytes <= one.bytes[1]:
        least, most = one.bytes
        sizes = f"{least} to {most}" if most > least else f"{least}"
        found.append(f"{call.bytes} bytes, measured at {sizes}")
    if one.ranks and call.ranks not in one.ranks:
        found.append(f"{call.ranks} ranks, measured at {_listed(one.ranks)}")
    found += _other("engine", call.engine, one.engines)
    found += _other("protocol", call.protocol, one.protocols)
    unmeasured = [link for link in call.links if one.links and link not in one.links]
    if unmeasured:
        found.append(f"over {_listed(unmeasured)}, measured over {_listed(one.links)}")
    found += _other("network", call.network, (one.network,) if one.network else ())
    return found


def _other(noun: str, own: str, measured: tuple[str, ...]) -> list[str]:
    if not own or not measured or own in measured:
        return []
    return [f"{noun} {own}, measured with {_listed(measured)}"]


def _listed(values: tuple[str, ...] | tuple[int, ...] | list[str]) -> str:
    """Return values as text: each of few, the ends of many."""
    texts = [str(value) for value in values]
    if len(texts) <= 3:
        return ", ".join(texts)
    return f"{', '.join(texts[:2])} and {len(texts) - 2} others"
