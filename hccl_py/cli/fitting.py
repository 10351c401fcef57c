"""What `hccl-py fit` does and says: from logs to calls, their programs, and a cost model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hccl_py.cli.call import Request, spell_op, spell_topology
from hccl_py.cli.logged import requests_of
from hccl_py.cli.options import Call
from hccl_py.cli.output import spell_levels
from hccl_py.communicator import Plan
from hccl_py.cost import CostModel
from hccl_py.simulator.cost_files import find_cost
from hccl_py.simulator.fit import Estimate, Fit, Kept, Sample, fit
from hccl_py.simulator.hccl_test_log import LogRow, LogTable, read_log

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["Fitting"]

_HEADER = "data_size(Bytes): | measured(us): | model(us): | deviation:"
_COUNTS_LESS = 0.5
"""Weight below which a time is said to be far off."""


@dataclass(frozen=True)
class _Measured:
    """A row that counts: what was called, and what HCCL's rules run for it."""

    table: int
    row: LogRow
    plan: Plan


@dataclass(frozen=True)
class Fitting:
    """The tables of logs, the calls that they measured, and the cost model found."""

    tables: Sequence[LogTable]
    requests: Sequence[Request]
    measured: Sequence[_Measured]
    base: CostModel
    fit: Fit

    @staticmethod
    def of(logs: Sequence[str], call: Call, base: str | None) -> Fitting:
        """Read the logs, record what they measured, and fit."""
        tables = [table for log in logs for table in read_log(log)]
        requests = requests_of(tables, call)
        product = requests[0].topology.product.name  # of all: there is one --topology
        model = CostModel.of(product) if base is None else find_cost(base, product)
        measured = list(_measured(tables, requests))
        samples = [
            Sample(m.plan.program, requests[m.table].topology, m.row.time_us) for m in measured
        ]
        found = fit(samples, model)
        told = {
            "name": f"fitted-{product}",
            "sources": f"hccl-py fit of {len(measured)} rows of hccl_test, from {model.name}",
            "uncertain": "; ".join(f"{k.parameter.name} was kept: {k.why}" for k in found.kept),
        }
        found = replace(found, cost=found.cost.model_copy(update=told))
        return Fitting(tables, requests, measured, model, found)

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
        table, request = self.tables[number], self.requests[number]
        return {
            "where": table.where,
            "op": request.operator.name,
            "ranks": request.topology.size,
            "topology": request.topology.description,
            "dtype": request.dtype.value,
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
                for row in table.rows
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
        table, request = self.tables[number], self.requests[number]
        mine = [(k, m) for k, m in enumerate(self.measured) if m.table == number]
        op = mine[0][1].plan.op if mine else request.op(request.minbytes)
        yield f"{table.where}: {spell_op(op)} {op.dtype.value}, {op.mode.value}"
        yield spell_topology(request.topology)
        for row in table.rows:
            if row.why_not:
                yield f"line {row.line}, {row.bytes} bytes, is left out: {row.why_not}"
        yield _HEADER
        executor = ""
        for k, m in mine:
            if executor != (executor := _spell_executor(m.plan)):
                yield executor
            yield _spell_row(m.row, self.fit.model_us[k], self.deviations[k], self.fit.weights[k])
        if any(self.fit.weights[k] < _COUNTS_LESS for k, _ in mine):
            yield "* is far off and counts less than half"
        yield ""

    def _parameters(self) -> Iterator[RenderableType]:
        from rich.table import Table

        shown = Table(box=None, pad_edge=False, header_style="")
        shown.add_column("parameter")
        for name in ("value", "standard error", self.base.name):
            shown.add_column(name, justify="right")
        for e in self.fit.estimates:
            unit = " GB/s" if e.parameter.is_rate else " us"
            error = "-" if e.error is None else f"{e.error:.3g}"
            was = _spell(e.parameter.of(self.base))
            shown.add_row(e.parameter.name, _spell(e.value, unit), error, was)
        yield shown
        for k in self.fit.kept:
            yield f"kept: {k.parameter.name} {_spell(k.value)}, for {k.why}"


def _measured(tables: Sequence[LogTable], requests: Sequence[Request]) -> Iterator[_Measured]:
    """Record what every row measured, those left out excepted."""
    for number, (table, request) in enumerate(zip(tables, requests, strict=True)):
        for row in table.rows:
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


def _spell(value: float | None, unit: str = "") -> str:
    return "free" if value is None else f"{value:.4g}{unit}"


def _spell_row(row: LogRow, model_us: float, deviation: float, weight: float) -> str:
    cells = (str(row.bytes), f"{row.time_us:.2f}", f"{model_us:.2f}", f"{deviation:+.1%}")
    widths = [len(column) for column in _HEADER.split(" | ")]
    line = " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f"{line.rstrip()} *" if weight < _COUNTS_LESS else line.rstrip()


def _spell_executor(plan: Plan) -> str:
    levels = spell_levels(plan.selection.algorithm)
    return f"{plan.selection.executor}, {levels}" if levels else plan.selection.executor
