"""What `hccl-py fit` is given: groups of measured times, each a table of a log or a list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hccl_py.call.call_spec import CallSpec
from hccl_py.cli.call import describe_topology
from hccl_py.cli.options import CallOptions, ProgramOptions
from hccl_py.cli.request import CallRequest, Request, describe_op, request_of, spec_of
from hccl_py.cli.time_lists import TimedRow, is_list, read_list
from hccl_py.communicator.communicator import Plan
from hccl_py.documents.disk import format_path
from hccl_py.errors import ParameterError
from hccl_py.fit.logs.hccl_test import LogTable
from hccl_py.fit.logs.logged_calls import logged_call
from hccl_py.fit.logs.measured import read_log
from hccl_py.topology import Topology


@dataclass(frozen=True)
class TimedPlan:
    """A measured time that counts: what ran, and where; `name` is what a list calls it."""

    line: int
    bytes: int
    time_us: float
    plan: Plan
    topology: Topology
    name: str = ""
    held_out: bool = False


@dataclass(frozen=True)
class TimesGroup:
    """Times that stand together: `where`, their heads for people and for documents, and rows that
    do not count, with the reason.
    """

    where: str
    heads: tuple[str, ...]
    facts: dict[str, Any]
    samples: tuple[TimedPlan, ...]
    left_out: tuple[tuple[int, int, str], ...]
    product: str
    is_list: bool


def read_groups(files: Sequence[str], call: CallOptions) -> list[TimesGroup]:
    """Read all files, and record what was measured."""
    groups: list[TimesGroup] = []
    logs = [name for name in files if not is_list(name)]
    groups += _of_tables([table for log in logs for table in read_log(log)], call)
    groups += [_of_list(name, read_list(name, call)) for name in files if is_list(name)]
    return groups


def _of_list(name: str, rows: Sequence[TimedRow]) -> TimesGroup:
    """Record what the rows of a list say; equal calls are recorded once."""
    requests: dict[ProgramOptions, Request] = {}
    plans: dict[tuple[ProgramOptions, str | None], Plan] = {}
    samples = []
    for row in rows:
        of_any_size = replace(row.options, minbytes=None)
        if of_any_size not in requests:
            requests[of_any_size] = request_of(row.options)
        request = requests[of_any_size]
        key = of_any_size, row.options.minbytes
        if key not in plans:
            request = request_of(row.options)
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
    """Record what every row measured, those left out excepted."""
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
    """Return what each table measured; equal calls are one request, so that they share plans."""
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
