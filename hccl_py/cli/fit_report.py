"""The measured times that `hccl-py fit` reads, and its report: times beside the model's, parameters
with their errors, and parameters that the times do not tell apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np

from hccl_py.call.call_spec import CallSpec
from hccl_py.cli.call import describe_topology
from hccl_py.cli.options import CallOptions, ProgramOptions
from hccl_py.cli.output import table
from hccl_py.cli.request import CallRequest, Request, describe_op, spec_of
from hccl_py.cli.sources import request_of
from hccl_py.clocks.cost import CostModel
from hccl_py.clocks.cost_files import find_cost
from hccl_py.communicator.planning import Plan
from hccl_py.documents.disk import format_path
from hccl_py.errors import ParameterError
from hccl_py.fit.fit import Fit
from hccl_py.fit.logs.hccl_test import LogTable
from hccl_py.fit.logs.logged_calls import logged_call
from hccl_py.fit.logs.measured import read_log
from hccl_py.fit.logs.time_lists import TimedRow, is_list, read_list
from hccl_py.fit.parameters import TimedCall
from hccl_py.fit.prediction import fit_and_predict, parse_parameters, program_parameters
from hccl_py.simulator.entry import Network
from hccl_py.topology import Topology

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

_COUNTS_LESS = 0.5
"""Weight below which a time is said to be far off."""

_NOT_IN_LISTS = ("op", "minbytes", "platform", "wire", "device")
"""Options of a call that a list of times has by another name, or not at all."""


@dataclass(frozen=True)
class TimedPlan:
    """A measured time that counts, the plan and topology that it is of, and its name in a list."""

    line: int
    bytes: int
    time_us: float
    plan: Plan
    topology: Topology
    name: str = ""
    held_out: bool = False


@dataclass(frozen=True)
class TimesGroup:
    """The times of a table or a list, in `where`: heads for people, facts for documents, and rows
    that do not count, by line, bytes and reason.
    """

    where: str
    heads: tuple[str, ...]
    facts: dict[str, Any]
    samples: tuple[TimedPlan, ...]
    left_out: tuple[tuple[int, int, str], ...]
    product: str
    is_list: bool


def read_groups(files: Sequence[str], call: CallOptions) -> list[TimesGroup]:
    """Read all files, and record the calls that were measured."""
    groups: list[TimesGroup] = []
    logs = [name for name in files if not is_list(name)]
    groups += _of_tables([table for log in logs for table in read_log(log)], call)
    lists = [name for name in files if is_list(name)]
    groups += [_of_list(name, read_list(name, _kinds(), call.op), call) for name in lists]
    return groups


def _kinds() -> dict[str, type]:
    """Return the types of the options that a row of a list may have: int, bool or str."""
    kinds: dict[str, type] = {}
    for name, hint in get_type_hints(CallOptions).items():
        if name not in _NOT_IN_LISTS:
            members = getattr(hint, "__args__", (hint,))
            kinds[name] = next((kind for kind in (bool, int) if kind in members), str)
    return kinds


def _of_list(name: str, rows: Sequence[TimedRow], call: CallOptions) -> TimesGroup:
    """Record the calls of a list; equal ones are recorded once, and what a row leaves out is as
    `call` says.
    """
    known = {field.name: getattr(call, field.name) for field in fields(CallOptions)}
    requests: dict[ProgramOptions, Request] = {}
    plans: dict[tuple[ProgramOptions, str | None], Plan] = {}
    samples = []
    for row in rows:
        options = ProgramOptions(**{**known, **row.options})
        of_any_size = replace(options, minbytes=None)
        if of_any_size not in requests:
            requests[of_any_size] = request_of(options)
        request = requests[of_any_size]
        key = of_any_size, options.minbytes
        if key not in plans:
            request = request_of(options)
            plans[key] = request.plan(request.op(request.minbytes))
        size = request.data_size(plans[key].op)
        plan, topology = plans[key], request.topology
        samples.append(
            TimedPlan(row.line, size, row.time_us, plan, topology, row.name, row.held_out)
        )
    if not samples:
        raise ParameterError(
            f"{format_path(name)} has no measured time.", "Write a row for each program."
        )
    topology = samples[0].topology
    where, count = format_path(name), f"{len(samples)} measured times"
    return TimesGroup(
        where, (f"{where}: {count}",), {}, tuple(samples), (), topology.product.name, True
    )


def _of_tables(tables: Sequence[LogTable], call: CallOptions) -> Iterator[TimesGroup]:
    """Record the calls of the rows that count."""
    for log, request in zip(tables, _requests(tables, call), strict=True):
        samples = tuple(
            TimedPlan(row.line, row.bytes, row.time_us, plan, request.topology)
            for row in log.rows
            if not row.why_not
            for plan in (request.plan(request.op(row.bytes)),)
        )
        op = samples[0].plan.op if samples else request.op(request.minbytes)
        head = f"{log.where}: {describe_op(op)} {op.dtype.value}, {op.mode.value}"
        facts = {
            "op": request.operator.name,
            "ranks": request.topology.size,
            "topology": request.topology.description,
            "dtype": request.spec.dtype,
        }
        left_out = tuple((row.line, row.bytes, row.why_not) for row in log.rows if row.why_not)
        heads = (head, describe_topology(request.topology))
        product = request.topology.product.name
        yield TimesGroup(log.where, heads, facts, samples, left_out, product, False)


def _requests(tables: Sequence[LogTable], call: CallOptions) -> list[CallRequest]:
    """Return the call of each table; equal calls are one request, so that they share plans."""
    for option, value in (("-b", call.minbytes), ("--counts", call.counts)):
        if value is not None and tables:
            raise ParameterError("The log says the sizes.", f"Leave {option} out.")
    known, made = spec_of(call), dict[CallSpec, CallRequest]()
    requests = []
    for log in tables:
        spec = logged_call(log, known)
        if spec not in made:
            made[spec] = CallRequest(call, spec=spec)
        request, ranks = made[spec], made[spec].topology.size
        if log.command is not None and log.command.ranks not in (None, ranks):
            raise ParameterError(
                f"{log.where}: the command has {log.command.ranks} ranks, "
                f"the options make {ranks}.",
                "Leave --ranks out, or give --servers and --devices that are as many.",
            )
        requests.append(request)
    return requests


@dataclass(frozen=True)
class FitReport:
    """The measured times and the cost model found; `model_us` and `weights` have one value for each
    sample, those held out included.
    """

    groups: Sequence[TimesGroup]
    base: CostModel
    network: str
    fit: Fit
    model_us: tuple[float, ...]
    weights: tuple[float, ...]

    @staticmethod
    def of(
        groups: Sequence[TimesGroup], base: str | None, network: Network, parameters: str | None
    ) -> FitReport:
        """Fit the samples that are not held out, and predict the others."""
        product = groups[0].product
        model = CostModel.of(product) if base is None else find_cost(base, product)
        samples = [sample for group in groups for sample in group.samples]
        calls = [TimedCall(s.plan.program, s.topology, s.time_us) for s in samples]
        held_out = [s.held_out for s in samples]
        asked = None if parameters is None else parse_parameters(parameters)
        if asked is None and any(group.is_list for group in groups):
            learned = [call for call, is_out in zip(calls, held_out, strict=True) if not is_out]
            asked = program_parameters(learned, network)
        found = fit_and_predict(calls, held_out, model, asked, network)
        return FitReport(groups, model, network, found.fit, found.model_us, found.weights)

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

    def _rows(self, group: TimesGroup, places: Sequence[int]) -> Table:
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
        for k in self.fit.held:
            yield f"kept: {k.parameter.name} {_format(k.value)}, for {k.why}"
        for pair in self.fit.alike:
            yield (
                f"hard to tell apart: {pair.one.name} and {pair.other.name}, "
                f"correlation {pair.correlation:+.2f}"
            )

    def _split(self) -> tuple[list[int], list[int]]:
        """Return the numbers of the samples that were fitted and of those that were held out."""
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


def _format(value: float | None, unit: str = "") -> str:
    return "free" if value is None else f"{value:.4g}{unit}"
