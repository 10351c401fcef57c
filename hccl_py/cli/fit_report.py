"""What `hccl-py fit` says: times beside the model's, parameters with their errors, and what times
do not tell apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from hccl_py.cli.fit_groups import TimedPlan, TimesGroup
from hccl_py.cli.output import table
from hccl_py.cli.request import describe_op
from hccl_py.clocks.cost import CostModel
from hccl_py.fit.fit import Estimate, Fit, Kept, Likeness

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

_COUNTS_LESS = 0.5
"""Weight below which a time is said to be far off."""


@dataclass(frozen=True)
class FitReport:
    """What was measured and the cost model found; `model_us` and `weights` have one value for every
    sample, those held out included.
    """

    groups: Sequence[TimesGroup]
    base: CostModel
    network: str
    fit: Fit
    model_us: tuple[float, ...]
    weights: tuple[float, ...]

    @cached_property
    def _places(self) -> list[list[int]]:
        """The numbers of each group's samples."""
        begins = np.cumsum([0, *(len(group.samples) for group in self.groups)]).tolist()
        return [list(range(first, last)) for first, last in pairwise(begins)]

    @cached_property
    def _samples(self) -> list[TimedPlan]:
        return [sample for group in self.groups for sample in group.samples]

    @cached_property
    def deviations(self) -> list[float]:
        """What measured times are more than the model's, as a share of the model's."""
        pairs = zip(self._samples, self.model_us, strict=True)
        return [s.time_us / us - 1 if us else 0.0 for s, us in pairs]

    def document(self) -> dict[str, Any]:
        """Return the JSON document."""
        fitted, held_out = self._split()
        found = {
            "schema": "hccl-py.fit/1",
            "base": self.base.name,
            "network": self.network,
            "tables": [self._group(number) for number in range(len(self.groups))],
            "parameters": [_estimate(e, self.base) for e in self.fit.estimates],
            "kept": [_kept(k) for k in self.fit.kept],
            "rank": self.fit.rank,
            "alike": [_likeness(pair) for pair in self.fit.alike],
            "rms_deviation": self._rms(fitted),
            "cost": self.fit.cost.model_dump(),
        }
        return found | ({"held_out_rms_deviation": self._rms(held_out)} if held_out else {})

    def _group(self, number: int) -> dict[str, Any]:
        group = self.groups[number]
        return {
            "where": group.where,
            **group.facts,
            "rows": [self._row(k, group) for k in self._places[number]],
            "left_out": [
                {"line": line, "bytes": size, "why": why} for line, size, why in group.left_out
            ],
        }

    def _row(self, k: int, group: TimesGroup) -> dict[str, Any]:
        s = self._samples[k]
        return {
            "line": s.line,
            **({"name": s.name, "held_out": s.held_out} if group.is_list else {}),
            "bytes": s.bytes,
            "executor": s.plan.selection.executor,
            "algorithm": dict(s.plan.selection.algorithm),
            "measured_us": s.time_us,
            "model_us": self.model_us[k],
            "deviation": self.deviations[k],
            "weight": self.weights[k],
        }

    def drawing(self) -> Iterator[RenderableType]:
        """Return what people see, part by part."""
        for group, places in zip(self.groups, self._places, strict=True):
            yield from group.heads
            for line, size, why in group.left_out:
                yield f"line {line}, {size} bytes, is left out: {why}"
            yield self._rows(group, places)
            if any(self.weights[k] < _COUNTS_LESS for k in places):
                yield "* is far off and counts less than half"
            yield ""
        yield from self._parameters()
        fitted, held_out = self._split()
        yield f"deviations: {self._summary(fitted)}"
        if held_out:
            yield f"held out:   {self._summary(held_out)}"

    def _rows(self, group: TimesGroup, places: Sequence[int]) -> Table:
        """Return a line for each time."""
        last = ("call",) if group.is_list else ("executor",)
        shown = table("bytes", "measured us", "model us", "deviation", left=last)
        for k in places:
            s = self._samples[k]
            far = " *" if self.weights[k] < _COUNTS_LESS else ""
            shown.add_row(
                str(s.bytes),
                f"{s.time_us:.2f}",
                f"{self.model_us[k]:.2f}",
                f"{self.deviations[k]:+.1%}{far}",
                self._call(s) if group.is_list else _executor(s),
            )
        return shown

    def _call(self, s: TimedPlan) -> str:
        what = s.name or f"{describe_op(s.plan.op)} {_executor(s)}".strip()
        return f"{what}, held out" if s.held_out else what

    def _parameters(self) -> Iterator[RenderableType]:
        shown = table(left=("parameter",))
        for name in ("value", "standard error", self.base.name):
            shown.add_column(name, justify="right", no_wrap=True)
        for e in self.fit.estimates:
            unit = " GB/s" if e.parameter.is_rate else " us"
            error = "-" if e.error is None else f"{e.error:.3g}"
            was = _format(e.parameter.of(self.base))
            shown.add_row(e.parameter.name, _format(e.value, unit), error, was)
        yield shown
        for k in self.fit.kept:
            yield f"kept: {k.parameter.name} {_format(k.value)}, for {k.why}"
        for pair in self.fit.alike:
            yield (
                f"hard to tell apart: {pair.one.name} and {pair.other.name}, "
                f"correlation {pair.correlation:+.2f}"
            )

    def _split(self) -> tuple[list[int], list[int]]:
        """Return the numbers of what was fitted and of what was held out."""
        every = range(len(self._samples))
        held_out = [k for k in every if self._samples[k].held_out]
        return [k for k in every if k not in set(held_out)], held_out

    def _rms(self, places: Sequence[int]) -> float:
        return float(np.sqrt(np.mean(np.square([self.deviations[k] for k in places]))))

    def _summary(self, places: Sequence[int]) -> str:
        worst = max(places, key=lambda k: abs(self.deviations[k]))
        s = self._samples[worst]
        return (
            f"{self._rms(places):.1%} root mean square, at most {self.deviations[worst]:+.1%} at "
            f"{s.name or f'{s.bytes} bytes'}"
        )


def _executor(s: TimedPlan) -> str:
    return " ".join([s.plan.selection.executor, *s.plan.selection.algorithm.values()])


def _estimate(estimate: Estimate, base: CostModel) -> dict[str, Any]:
    return {
        "name": estimate.parameter.name,
        "value": estimate.value,
        "standard_error": estimate.error,
        "base": estimate.parameter.of(base),
    }


def _kept(kept: Kept) -> dict[str, Any]:
    return {"name": kept.parameter.name, "value": kept.value, "why": kept.why}


def _likeness(pair: Likeness) -> dict[str, Any]:
    return {"one": pair.one.name, "other": pair.other.name, "correlation": pair.correlation}


def _format(value: float | None, unit: str = "") -> str:
    return "free" if value is None else f"{value:.4g}{unit}"
