"""From the options of a command to what it works on: a call, or a program that is there already."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from hccl_py.cli.algorithms import AlgorithmRequest
from hccl_py.cli.checker_logs import LogRequest
from hccl_py.cli.folders import FolderRequest
from hccl_py.cli.options import OF_SELECTION, ProgramOptions, Sizes, given
from hccl_py.cli.placing import placed
from hccl_py.cli.request import (
    CallRequest,
    Request,
    communicator,
    describe_op,
    spec_of,
)
from hccl_py.cli.sources import ALGORITHMS, CHECKER_LOG, TRACE, Source, source_of
from hccl_py.cli.traces import TraceRequest
from hccl_py.communicator import Plan
from hccl_py.documents.disk import format_path
from hccl_py.errors import ParameterError
from hccl_py.op_param import OpParam
from hccl_py.platforms import Schedule
from hccl_py.program.program import Program
from hccl_py.selection import Selection
from hccl_py.topology import Topology

__all__ = [
    "CallRequest",
    "ProgramRequest",
    "Request",
    "check_memory",
    "check_tasks",
    "describe_op",
    "describe_topology",
    "document_of_call",
    "document_of_plan",
    "request_of",
    "spec_of",
]

BYTES_PER_TASK = 160
"""What expanding, linking and timing one task takes at its height."""


def request_of(options: ProgramOptions, schedule: Schedule | None = None) -> Request:
    """Return what the first argument of a command names: an op to call, or a program."""
    source = source_of(options.op)
    if source is TRACE:
        return TraceRequest(options, schedule)
    _refuse_of_traces(options)
    if source is None:
        _refuse_of_folders(options)
        return CallRequest(options, schedule)
    if source in ALGORITHMS:
        return AlgorithmRequest(options, schedule)
    if source is CHECKER_LOG:
        return LogRequest(options, schedule)
    if source.read is None:
        return FolderRequest(options, schedule)
    _refuse_of_folders(options)
    return ProgramRequest(options, source, schedule)


class ProgramRequest(Request):
    """A program from a file or another source: op, data and executor are what it says.

    Its ranks are put where the options say, by default on as few servers as hold them.
    """

    is_fixed = True

    def __init__(
        self, options: ProgramOptions, source: Source, schedule: Schedule | None = None
    ) -> None:
        assert source.read is not None
        self.program = source.read(options.op, None)  # a file that is missing is said first
        _refuse_options(options, source)
        self.name = format_path(options.op)
        topology = placed(self.program.ranks, options, source.noun)
        comm = communicator(options, topology, schedule)
        super().__init__(self.program.op.name, comm, options.platform)
        self._source = source
        self.minbytes = self.data_size(self.program.op)

    def op(self, size: int) -> OpParam:
        """Return the parameters that the program was made for."""
        return self.program.op

    def select(self, op: OpParam) -> Selection:
        """Return a selection of nothing but the program."""
        return Selection(
            op=op.name,
            executor=self.program.executor,
            hccl_executor=None,
            algorithm={},
            tag=self.name,
            reasons=(f"it is the {self._source.noun} {self.name}",),
            ruleset="",
        )

    def plan(self, op: OpParam) -> Plan:
        """Return the program."""
        return Plan(op, self.select(op), self.program)

    def check_sizes(self, sizes: Sizes) -> None:
        """Refuse sizes: the program has its own."""
        for field in fields(sizes):
            if getattr(sizes, field.name) is not None:
                _refuse(f"--{field.name}", self._source)

    def describe_executor(self, selection: Selection) -> str:
        """Return where the program is from, and what recorded it, as far as it says."""
        by = f", recorded by {selection.executor:.200}" if selection.executor else ""
        return f"{self._source.noun} {self.name}{by}"


_OF_A_CALL = ("ranks", *OF_SELECTION, "buffsize", "dtype", "reduce_op", "root", "minbytes")
"""Options that say what is recorded; the others say where it is timed or run."""


def _refuse_options(options: ProgramOptions, source: Source) -> None:
    for option in given(options, _OF_A_CALL):
        _refuse(option, source)


def _refuse_of_folders(options: ProgramOptions) -> None:
    """Refuse options that say what is recorded from C++."""
    for option, is_given in (("--op", options.cpp_op is not None), ("--calls", options.calls > 1)):
        if is_given:
            others = ", an algorithm of another tool or a log" if option == "--op" else ""
            raise ParameterError(
                f"{option} is about a folder with a custom op in C++{others}.",
                f"Leave {option} out, or name the folder or file first.",
            )


def _refuse_of_traces(options: ProgramOptions) -> None:
    """Refuse options that say how a Chakra trace is read."""
    for option in given(options, ("roofline", "buffered")):
        raise ParameterError(
            f"{option} is about a Chakra trace.",
            "Leave it out, or name a folder of .et files first.",
        )


def _refuse(option: str, source: Source) -> None:
    raise ParameterError(
        f"{option} does not go with a {source.noun}, which says that itself.",
        f"Leave {option} out, or name an op.",
    )


def document_of_call(request: Request, op: OpParam) -> dict[str, Any]:
    """Return the keys by which every JSON document says what was called."""
    return {
        "op": op.name if request.has_op else None,
        "ranks": request.topology.size,
        "topology": request.topology.description,
        "dtype": op.dtype.value,
        "reduce_op": None if op.reduce is None else op.reduce.spelling,
        "mode": op.mode.value,
    }


def document_of_plan(
    request: Request, plan: Plan, *, without: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the keys by which JSON documents say what was called, and what runs for it."""
    found = {
        **document_of_call(request, plan.op),
        "bytes": request.data_size(plan.op),
        "count": plan.op.count,
        "executor": plan.selection.executor or None,
        "algorithm": dict(plan.selection.algorithm),
        "rounds": plan.program.rounds,
        "tasks": plan.program.task_count,
    }
    return {name: value for name, value in found.items() if name not in without}


def describe_topology(topology: Topology) -> str:
    """Return `4 ranks: product, servers`."""
    ranks = f"{topology.size} rank{'s' if topology.size > 1 else ''}"
    return f"{ranks}: {topology.description}"


def check_memory(size: int, what: str) -> None:
    """Refuse what the machine's memory cannot hold, rather than be killed for it."""
    available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if size > available:
        raise ParameterError(
            f"{what} would take {size >> 20} MB, this machine has {available >> 20} MB.",
            "Give fewer ranks or a smaller size.",
        )


def check_tasks(program: Program) -> None:
    """Refuse a program whose tasks one by one this machine cannot hold."""
    count = program.task_count
    check_memory(count * BYTES_PER_TASK, f"The program's {count:,} tasks".replace(",", " "))
