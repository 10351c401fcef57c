"""`hccl-py fit`: α, β and γ of a cost model from what hccl_test measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from hccl_py.call_spec import CallSpec
from hccl_py.cli.call import CallRequest, describe_op, describe_topology, spec_of
from hccl_py.cli.options import CallOptions, Output, grouped
from hccl_py.cli.output import Screen, print_json, table
from hccl_py.communicator import Plan
from hccl_py.cost import CostModel
from hccl_py.errors import ParameterError
from hccl_py.simulator.cost_files import find_cost, write_cost
from hccl_py.simulator.fit import Estimate, Fit, Kept, TimedCall, fit
from hccl_py.simulator.hccl_test_log import LogRow, LogTable, read_log
from hccl_py.simulator.logged_calls import logged_call

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

__all__ = ["command"]

_COUNTS_LESS = 0.5
"""Weight below which a time is said to be far off."""


@dataclass(frozen=True)
class LoggedCall(CallOptions):
    """A call whose op the log may say."""

    op: Annotated[
        str,
        typer.Option("--op", metavar="OP", help="The op, where the log has no command line."),
    ] = ""


@grouped
def command(
    *,
    logs: Annotated[
        list[str],
        typer.Argument(metavar="LOG", show_default=False, help="Files with hccl_test's tables."),
    ],
    call: LoggedCall,
    base: Annotated[
        str | None,
        typer.Option(
            "--cost",
            metavar="MODEL",
            help="The model of what the log says nothing about; the product's by default.",
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="FILE", help="Write the cost model, as .json or .yaml."),
    ] = None,
    output: Output,
) -> None:
    """Fit α, β and γ to measured times.

    Reads the tables that hccl_test printed and finds the cost model whose simulated times come
    nearest. What a log's command line says (op, -d, -o, -r, -p and mpirun's -n) needs no option.
    """
    fitting = _Fitting.of(logs, call, base)
    if out is not None:
        write_cost(out, fitting.fit.cost)
    if output.json:
        print_json(fitting.document())
        return
    screen = Screen()
    for part in fitting.drawing():
        screen.show_whole(part)


@dataclass(frozen=True)
class _Measured:
    """A row that counts: what was called, and what HCCL's rules run for it."""

    table: int
    row: LogRow
    plan: Plan


@dataclass(frozen=True)
class _Fitting:
    """The tables of logs, the calls that they measured, and the cost model found."""

    tables: Sequence[LogTable]
    requests: Sequence[CallRequest]
    measured: Sequence[_Measured]
    base: CostModel
    fit: Fit

    @staticmethod
    def of(logs: Sequence[str], call: CallOptions, base: str | None) -> _Fitting:
        """Read the logs, record what they measured, and fit."""
        tables = [table for log in logs for table in read_log(log)]
        requests = _requests(tables, call)
        product = requests[0].topology.product.name  # of all: there is one --topology
        model = CostModel.of(product) if base is None else find_cost(base, product)
        measured = list(_measured(tables, requests))
        samples = [
            TimedCall(m.plan.program, requests[m.table].topology, m.row.time_us) for m in measured
        ]
        found = fit(samples, model)
        about = {
            "name": f"fitted-{product}",
            "sources": f"hccl-py fit of {len(measured)} rows of hccl_test, from {model.name}",
            "uncertain": "; ".join(f"{k.parameter.name} was kept: {k.why}" for k in found.kept),
        }
        found = replace(found, cost=found.cost.model_copy(update=about))
        return _Fitting(tables, requests, measured, model, found)

    @property
    def deviations(self) -> Sequence[float]:
        """What measured times are more than the model's, as a share of the model's."""
        pairs = zip(self.measured, self.fit.model_us.tolist(), strict=True)
        return [m.row.time_us / us - 1 if us else 0.0 for m, us in pairs]

    def document(self) -> dict[str, Any]:
        """Return the JSON document."""
        return {
            "schema": "hccl-py.fit/1",
            "base": self.base.name,
            "tables": [self._table(number) for number in range(len(self.tables))],
            "parameters": [_estimate(e, self.base) for e in self.fit.estimates],
            "kept": [_kept(k) for k in self.fit.kept],
            "rms_deviation": _rms(self.deviations),
            "cost": self.fit.cost.model_dump(),
        }

    def _table(self, number: int) -> dict[str, Any]:
        log, request = self.tables[number], self.requests[number]
        return {
            "where": log.where,
            "op": request.operator.name,
            "ranks": request.topology.size,
            "topology": request.topology.description,
            "dtype": request.spec.dtype,
            "rows": [
                {
                    "line": m.row.line,
                    "bytes": m.row.bytes,
                    "executor": m.plan.selection.executor,
                    "algorithm": dict(m.plan.selection.algorithm),
                    "measured_us": m.row.time_us,
                    "model_us": self.fit.model_us[k],
                    "deviation": self.deviations[k],
                    "weight": self.fit.weights[k],
                }
                for k, m in enumerate(self.measured)
                if m.table == number
            ],
            "left_out": [
                {"line": row.line, "bytes": row.bytes, "why": row.why_not}
                for row in log.rows
                if row.why_not
            ],
        }

    def drawing(self) -> Iterator[RenderableType]:
        """Return what people see, part by part."""
        for number in range(len(self.tables)):
            yield from self._rows(number)
        yield from self._parameters()
        worst = max(range(len(self.measured)), key=lambda k: abs(self.deviations[k]))
        yield (
            f"deviations: {_rms(self.deviations):.1%} root mean square, at most "
            f"{self.deviations[worst]:+.1%} at {self.measured[worst].row.bytes} bytes"
        )

    def _rows(self, number: int) -> Iterator[RenderableType]:
        log, request = self.tables[number], self.requests[number]
        mine = [(k, m) for k, m in enumerate(self.measured) if m.table == number]
        op = mine[0][1].plan.op if mine else request.op(request.minbytes)
        yield f"{log.where}: {describe_op(op)} {op.dtype.value}, {op.mode.value}"
        yield describe_topology(request.topology)
        for row in log.rows:
            if row.why_not:
                yield f"line {row.line}, {row.bytes} bytes, is left out: {row.why_not}"
        yield self._row_table(mine)
        if any(self.fit.weights[k] < _COUNTS_LESS for k, _ in mine):
            yield "* is far off and counts less than half"
        yield ""

    def _row_table(self, rows: Sequence[tuple[int, _Measured]]) -> Table:
        """Return a line for each row, and one before them where the executor changes."""
        shown = table("bytes", "measured us", "model us", "deviation", left=("executor",))
        for k, m in rows:
            selection = m.plan.selection
            executor = " ".join([selection.executor, *selection.algorithm.values()])
            far = " *" if self.fit.weights[k] < _COUNTS_LESS else ""
            shown.add_row(
                str(m.row.bytes),
                f"{m.row.time_us:.2f}",
                f"{self.fit.model_us[k]:.2f}",
                f"{self.deviations[k]:+.1%}{far}",
                executor,
            )
        return shown

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


def _requests(tables: Sequence[LogTable], call: CallOptions) -> list[CallRequest]:
    """Return what each table measured; equal calls are one request, so that they share plans."""
    for option, value in (("-b", call.minbytes), ("--counts", call.counts)):
        if value is not None:
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


def _measured(tables: Sequence[LogTable], requests: Sequence[CallRequest]) -> Iterator[_Measured]:
    """Record what every row measured, those left out excepted."""
    for number, (log, request) in enumerate(zip(tables, requests, strict=True)):
        for row in log.rows:
            if not row.why_not:
                yield _Measured(number, row, request.plan(request.op(row.bytes)))


def _estimate(estimate: Estimate, base: CostModel) -> dict[str, Any]:
    return {
        "name": estimate.parameter.name,
        "value": estimate.value,
        "standard_error": estimate.error,
        "base": estimate.parameter.of(base),
    }


def _kept(kept: Kept) -> dict[str, Any]:
    return {"name": kept.parameter.name, "value": kept.value, "why": kept.why}


def _rms(deviations: Sequence[float]) -> float:
    return float(np.sqrt(np.mean(np.square(deviations))))


def _format(value: float | None, unit: str = "") -> str:
    return "free" if value is None else f"{value:.4g}{unit}"
