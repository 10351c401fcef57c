"""The report of `hccl-py fit`: times beside the model's, parameters with their errors and the times
that tell them, parameters that the times do not tell apart, and errors of groups left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, groupby, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from hccl_py.cli.measured_calls import MeasuredCall, TimesGroup
from hccl_py.cli.output import table
from hccl_py.clocks.cost import CostModel
from hccl_py.clocks.cost_files import find_cost
from hccl_py.clocks.engines import engine_of
from hccl_py.clocks.measured import Kind, MeasuredSet
from hccl_py.errors import ParameterError, did_you_mean
from hccl_py.fit.fit import Estimate, Fit
from hccl_py.fit.leaving_out import HeldOutGroup, held_out_errors, leave_out
from hccl_py.fit.parameters import TimedCall
from hccl_py.fit.prediction import fit_and_predict, parse_parameters, program_parameters
from hccl_py.simulator.entry import Network

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

_COUNTS_LESS = 0.5
"""Weight below which a time is said to be far off."""

_TELLS = 0.1
"""The share of what is known about a parameter from which a time is named."""

_MANY = 200
"""Rows of a group from which those of one call share a line."""

_COLUMNS = ("group", "op", "executor", "name")
"""What rows can be left out by."""


@dataclass(frozen=True)
class FitReport:
    """The measured times and the cost model found; `model_us` and `weights` have one value for each
    sample, those held out included.
    """

    groups: Sequence[TimesGroup]
    base: CostModel
    network: Network
    fit: Fit
    model_us: tuple[float, ...]
    weights: tuple[float, ...]
    without: tuple[HeldOutGroup, ...] = ()

    @staticmethod
    def of(
        groups: Sequence[TimesGroup],
        base: str | None,
        network: Network,
        parameters: str | None,
        leave: str | None = None,
    ) -> FitReport:
        """Fit the samples that are not held out, and predict the others; fit again without each of
        the groups that the column `leave` makes.
        """
        product = groups[0].product
        model = CostModel.of(product) if base is None else find_cost(base, product)
        samples = [sample for group in groups for sample in group.samples]
        calls = [TimedCall(s.program, s.topology, s.time_us) for s in samples]
        held_out = [s.held_out for s in samples]
        asked = None if parameters is None else parse_parameters(parameters)
        if asked is None and any(group.is_list for group in groups):
            learned = [call for call, is_out in zip(calls, held_out, strict=True) if not is_out]
            asked = program_parameters(learned, network)
        found = fit_and_predict(calls, held_out, model, asked, network)
        without: tuple[HeldOutGroup, ...] = ()
        if leave is not None:
            names = [_group_of(s, leave) for s in samples]
            learned_of = [
                (c, n) for c, n, is_out in zip(calls, names, held_out, strict=True) if not is_out
            ]
            without = tuple(leave_out(learned_of, model, asked, network, found.fit.cost))
        return FitReport(groups, model, network, found.fit, found.model_us, found.weights, without)

    @cached_property
    def _places(self) -> list[list[int]]:
        """The numbers of each group's samples."""
        begins = np.cumsum([0, *(len(group.samples) for group in self.groups)]).tolist()
        return [list(range(first, last)) for first, last in pairwise(begins)]

    @cached_property
    def _samples(self) -> list[MeasuredCall]:
        return [sample for group in self.groups for sample in group.samples]

    @cached_property
    def deviations(self) -> list[float]:
        """Measured times over the model's, minus 1."""
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
            "parameters": [
                {
                    "name": e.parameter.name,
                    "value": e.value,
                    "standard_error": e.error,
                    "base": e.parameter.of(self.base),
                    "decided_by": [
                        {"time": self._learned[k].title, "share": share}
                        for k, share in e.decided_by
                    ],
                }
                for e in self.fit.estimates
            ],
            "kept": [
                {"name": k.parameter.name, "value": k.value, "why": k.why} for k in self.fit.held
            ],
            "rank": self.fit.rank,
            "alike": [
                {"one": p.one.name, "other": p.other.name, "correlation": p.correlation}
                for p in self.fit.alike
            ],
            "rms_deviation": self._rms(fitted),
            "cost": self.fit.cost.model_dump(),
        }
        right, pairs = self._order()
        found["order"] = {"right": right, "pairs": pairs}
        if held_out:
            found["held_out_rms_deviation"] = self._rms(held_out)
        if self.without:
            found["without"] = [one.document() for one in self.without]
        return found

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
            "executor": s.executor,
            "algorithm": dict(s.algorithm),
            "measured_us": s.time_us,
            "model_us": self.model_us[k],
            "deviation": self.deviations[k],
            "weight": self.weights[k],
        }

    def judged(self, kind: Kind, source: str, column: str | None) -> FitReport:
        """Return the report with what the model was held to in the model."""
        measured = (self._measured_set(kind, source, column),)
        cost = self.fit.cost.model_copy(update={"measured": measured})
        return replace(self, fit=replace(self.fit, cost=cost))

    def _measured_set(self, kind: Kind, source: str, column: str | None) -> MeasuredSet:
        """Return the measurements of the model for its file: the errors of groups left out, else of
        the rows that were held out.
        """
        errors = [d for one in self._counted for d in one.deviations]
        how = f"each {column} left out, but for those that alone tell a parameter"
        if not self.without:
            errors, how = [self.deviations[k] for k in self._split()[1]], "rows held out"
        sizes, samples = [s.bytes for s in self._samples], self._samples
        engines = {engine_of(s.program, s.topology) for s in samples} - {""}
        return MeasuredSet(
            what=f"{len(samples)} times",
            kind=kind,
            source=source,
            ops=tuple(sorted({s.op for s in samples})),
            bytes=(min(sizes), max(sizes)),
            ranks=tuple(sorted({s.topology.size for s in samples})),
            engines=tuple(sorted(engines)),
            protocols=tuple(sorted({s.program.protocol for s in samples} - {""})),
            network=self.network,
            points=len(samples),
            fitted=True,
            how=how if errors else "",
            held_out=held_out_errors(errors) if errors else None,
        )

    def drawing(self) -> Iterator[RenderableType]:
        """Yield the parts of the text for people."""
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
        right, pairs = self._order()
        if pairs:
            yield f"order:      {right} of {pairs} pairs of programs of one op and size"
        yield from self._left_out_groups()

    def _rows(self, group: TimesGroup, places: Sequence[int]) -> Table:
        last: tuple[str, ...] = ("call",) if group.is_list else ("executor",)
        rows = [[k] for k in places]
        if len(places) > _MANY:
            rows, last = self._by_call(places), ("rows", *last)
        shown = table("bytes", "measured us", "model us", "deviation", left=last)
        for some in rows:
            s, k = self._samples[some[0]], some[0]
            far = " *" if self.weights[k] < _COUNTS_LESS else ""
            measured = float(np.median([self._samples[j].time_us for j in some]))
            cells = [
                str(s.bytes),
                f"{measured:.2f}",
                f"{self.model_us[k]:.2f}",
                f"{measured / self.model_us[k] - 1 if self.model_us[k] else 0.0:+.1%}{far}",
                *([str(len(some))] if len(last) > 1 else []),
                self._call(s) if group.is_list else s.algorithm_text,
            ]
            shown.add_row(*cells)
        return shown

    def _by_call(self, places: Sequence[int]) -> list[list[int]]:
        """Return rows of the same call together, in the order of the first ones."""
        calls: dict[tuple[int, bool], list[int]] = {}
        for k in places:
            s = self._samples[k]
            calls.setdefault((id(s.program), s.held_out), []).append(k)
        return list(calls.values())

    def _call(self, s: MeasuredCall) -> str:
        return f"{s.title}, held out" if s.held_out else s.title

    def _left_out_groups(self) -> Iterator[RenderableType]:
        """Yield the table of what fits without one group say of its times."""
        if not self.without:
            return
        shown = table(
            "times", "median", "p90", "worst", left=("left out", "not determined without it")
        )
        for one in self.without:
            errors = held_out_errors(one.deviations)
            kept = ", ".join(k.parameter.name for k in one.held)
            shares = (f"{share:.1%}" for share in (errors.median, errors.p90, errors.worst))
            shown.add_row(str(errors.points), *shares, one.group, kept or "-")
        yield ""
        yield shown
        yield self._predicted()

    def _predicted(self) -> str:
        """Return a line on all groups that count."""
        counted, alone = self._counted, [one for one in self.without if one not in self._counted]
        others = f"not counted, as they alone tell a parameter: {', '.join(o.group for o in alone)}"
        if not counted:
            return f"left out, {others}"
        every = held_out_errors([d for one in counted for d in one.deviations])
        line = (
            f"left out, {every.points} times: median {every.median:.1%}, p90 {every.p90:.1%}, "
            f"worst {every.worst:.1%}"
        )
        return f"{line}; {others}" if alone else line

    @property
    def _counted(self) -> list[HeldOutGroup]:
        """The groups without which all parameters are determined that all times determine."""
        held = {k.parameter.name for k in self.fit.held}
        return [one for one in self.without if {k.parameter.name for k in one.held} <= held]

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
        for e in self.fit.estimates:
            yield f"{e.parameter.name} is determined by {self._deciding(e)}"
        for k in self.fit.held:
            yield f"kept: {k.parameter.name} {_format(k.value)}, for {k.why}"
        for pair in self.fit.alike:
            yield (
                f"hard to tell apart: {pair.one.name} and {pair.other.name}, "
                f"correlation {pair.correlation:+.2f}"
            )

    def _deciding(self, e: Estimate) -> str:
        """Return the times that tell most of an estimate, with their shares."""
        rows = [(self._learned[k].label, share) for k, share in e.decided_by if share >= _TELLS]
        merged = [(title, sum(s for _, s in some)) for title, some in groupby(rows, lambda r: r[0])]
        return ", ".join(f"{title} ({share:.0%})" for title, share in merged) or "all times alike"

    @cached_property
    def _learned(self) -> list[MeasuredCall]:
        """The samples that were fitted."""
        return [s for s in self._samples if not s.held_out]

    def _split(self) -> tuple[list[int], list[int]]:
        """Return the numbers of the samples that were fitted and of those that were held out."""
        every = range(len(self._samples))
        held_out = [k for k in every if self._samples[k].held_out]
        return [k for k in every if k not in set(held_out)], held_out

    def _order(self) -> tuple[int, int]:
        """Return the number of pairs of programs, of one op and size each, that the model has in
        the order in which they were measured, and the number of all pairs.
        """
        alike: dict[tuple[str, int, int], dict[int, list[int]]] = {}
        for k, s in enumerate(self._samples):
            call = s.op, s.bytes, s.topology.size
            alike.setdefault(call, {}).setdefault(id(s.program), []).append(k)
        right = pairs = 0
        for programs in alike.values():
            times = [
                (float(np.median([self._samples[k].time_us for k in some])), self.model_us[some[0]])
                for some in programs.values()
            ]
            for (one, mine), (other, others) in combinations(times, 2):
                if one != other:
                    pairs += 1
                    right += (one - other) * (mine - others) > 0
        return right, pairs

    def _rms(self, places: Sequence[int]) -> float:
        return float(np.sqrt(np.mean(np.square([self.deviations[k] for k in places]))))

    def _summary(self, places: Sequence[int]) -> str:
        worst = max(places, key=lambda k: abs(self.deviations[k]))
        s = self._samples[worst]
        errors = held_out_errors([self.deviations[k] for k in places])
        return (
            f"{self._rms(places):.1%} root mean square, median {errors.median:.1%}, "
            f"p90 {errors.p90:.1%}, at most {self.deviations[worst]:+.1%} at {s.label}"
        )


def _group_of(s: MeasuredCall, column: str) -> str:
    """Return the value of a sample in the column that rows are left out by."""
    known = {"group": s.group, "op": s.op, "executor": s.executor, "name": s.name}
    if column not in known:
        hint = did_you_mean(column, _COLUMNS) or f"Those known are {', '.join(_COLUMNS)}."
        raise ParameterError(f"--leave-out {column!r:.60} is no column that groups rows.", hint)
    return known[column]


def _format(value: float | None, unit: str = "") -> str:
    return "free" if value is None else f"{value:.4g}{unit}"
