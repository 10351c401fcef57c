"""The measured times that `hccl-py fit` reads: logs and lists, and the programs of their calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, get_type_hints

from hccl_py.call.call_spec import CallSpec
from hccl_py.cli.call import describe_topology
from hccl_py.cli.options import CallOptions, ProgramOptions
from hccl_py.cli.request import CallRequest, Request, describe_op, spec_of
from hccl_py.cli.sizes import parse_size
from hccl_py.cli.sources import request_of
from hccl_py.communicator.planning import Plan
from hccl_py.documents.disk import format_path
from hccl_py.errors import ParameterError
from hccl_py.fit.logs.hccl_test import LogTable
from hccl_py.fit.logs.logged_calls import logged_call
from hccl_py.fit.logs.measured import read_log
from hccl_py.fit.logs.time_lists import RowReader, TimedRow, is_list, read_list
from hccl_py.fit.measured_transfers import Transfer, transfer_program
from hccl_py.program.program import Program
from hccl_py.topology import Topology
from hccl_py.topology.presets import DEFAULT_PRESET

_NOT_IN_LISTS = ("op", "minbytes", "platform", "wire", "device")
"""Options of a call that a list of times has by another name, or not at all."""


@dataclass(frozen=True)
class MeasuredCall:
    """A measured time that counts, the program and topology that it is of, and its name and group
    in a list; the op of a transfer between two devices is `read` or `write`.
    """

    line: int
    bytes: int
    time_us: float
    op: str
    program: Program
    topology: Topology
    executor: str
    algorithm: Mapping[str, str]
    name: str = ""
    group: str = ""
    held_out: bool = False

    @property
    def algorithm_text(self) -> str:
        """The executor and the algorithm of each level."""
        return " ".join([self.executor, *self.algorithm.values()])

    @property
    def label(self) -> str:
        """Its name, else its size."""
        return self.name or f"{self.bytes} bytes"

    @property
    def title(self) -> str:
        """The name in reports, else the call."""
        if self.name:
            return self.name
        return f"{describe_op(self.program.op)} {self.algorithm_text}".strip()


@dataclass(frozen=True)
class TimesGroup:
    """The times of a table or a list, in `where`: heads for people, facts for documents, and rows
    that do not count, by line, bytes and reason.
    """

    where: str
    heads: tuple[str, ...]
    facts: dict[str, Any]
    samples: tuple[MeasuredCall, ...]
    left_out: tuple[tuple[int, int, str], ...]
    product: str
    is_list: bool


def read_groups(files: Sequence[str], call: CallOptions) -> list[TimesGroup]:
    """Read all files, and record the calls that were measured."""
    groups: list[TimesGroup] = []
    logs = [name for name in files if not is_list(name)]
    groups += _of_tables([table for log in logs for table in read_log(log)], call)
    lists = [name for name in files if is_list(name)]
    reader = RowReader(_kinds(), call.op, lambda text: parse_size(text, "bytes"))
    groups += [_of_list(name, read_list(name, reader), call) for name in lists]
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
    """Record the calls of a list; what a row leaves out is as `call` says."""
    recorder = _ListRecorder(call)
    samples = tuple(recorder.sample(row) for row in rows)
    if not samples:
        raise ParameterError(
            f"{format_path(name)} has no measured time.", "Write a row for each program."
        )
    where, count = format_path(name), f"{len(samples)} measured times"
    product = samples[0].topology.product.name
    return TimesGroup(where, (f"{where}: {count}",), {}, samples, (), product, True)


class _ListRecorder:
    """Records the calls of a list's rows, equal ones once."""

    def __init__(self, call: CallOptions) -> None:
        self._known = {field.name: getattr(call, field.name) for field in fields(CallOptions)}
        self._requests: dict[ProgramOptions, Request] = {}
        self._plans: dict[tuple[ProgramOptions, str | None], tuple[Plan, int]] = {}

    def sample(self, row: TimedRow) -> MeasuredCall:
        """Return the measured call of a row."""
        known = {"name": row.name, "group": row.group, "held_out": row.held_out}
        if row.transfer is not None:
            return self._transferred(row, row.transfer, known)
        options = ProgramOptions(**{**self._known, **row.options})
        of_any_size = replace(options, minbytes=None)
        if of_any_size not in self._requests:
            self._requests[of_any_size] = request_of(options)
        topology = self._requests[of_any_size].topology
        key = of_any_size, options.minbytes
        if key not in self._plans:
            request = request_of(options)
            plan = request.plan(request.op(request.minbytes))
            self._plans[key] = plan, request.data_size(plan.op)
        plan, size = self._plans[key]
        return _sample(row.line, size, row.time_us, plan, topology, **known)

    def _transferred(
        self, row: TimedRow, transfer: Transfer, known: dict[str, Any]
    ) -> MeasuredCall:
        preset = str(row.options.get("topology") or self._known["topology"] or DEFAULT_PRESET)
        program, topology = transfer_program(transfer, preset)
        far = " between servers" if transfer.far else ""
        what = f"{transfer.kind} over {transfer.link}{far}"
        known["name"] = row.name or what
        return MeasuredCall(
            row.line,
            transfer.size,
            row.time_us,
            transfer.kind,
            program,
            topology,
            what,
            {},
            **known,
        )


def _sample(
    line: int, size: int, time_us: float, plan: Plan, topology: Topology, **known: Any
) -> MeasuredCall:
    executor, algorithm = plan.selection.executor, plan.selection.algorithm
    facts = line, size, time_us, plan.op.name, plan.program, topology, executor, algorithm
    return MeasuredCall(*facts, **known)


def _of_tables(tables: Sequence[LogTable], call: CallOptions) -> Iterator[TimesGroup]:
    """Record the calls of the rows that count, each once."""
    plans: dict[tuple[int, int], Plan] = {}

    def plan_of(request: CallRequest, size: int) -> Plan:
        key = id(request), size
        if key not in plans:
            plans[key] = request.plan(request.op(size))
        return plans[key]

    for log, request in zip(tables, _requests(tables, call), strict=True):
        samples = tuple(
            _sample(row.line, row.bytes, row.time_us, plan_of(request, row.bytes), request.topology)
            for row in log.rows
            if not row.why_not
        )
        op = samples[0].program.op if samples else request.op(request.minbytes)
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
