"""From the options of a command to what it works on: a call, or a program that is there already."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import astuple, fields
from typing import Any

from hccl_py.authors import author_class
from hccl_py.call_spec import CallSpec, ClusterSpec
from hccl_py.cli.counts import read_counts
from hccl_py.cli.errors import say_problems
from hccl_py.cli.options import CallOptions, ProgramOptions, Sizes
from hccl_py.cli.output import format_levels
from hccl_py.cli.sizes import first_size
from hccl_py.cli.sources import Source, source_of
from hccl_py.communicator import Communicator, Plan
from hccl_py.config import Config
from hccl_py.discovery import find_platform
from hccl_py.documents.disk import format_path
from hccl_py.errors import ParameterError
from hccl_py.op_param import OpParam
from hccl_py.operators import make_operator
from hccl_py.platforms import ProcessPlatform, Schedule
from hccl_py.program.program import Program
from hccl_py.selection import Selection
from hccl_py.topology import Topology
from hccl_py.trace.units import format_size

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


class Request(ABC):
    """What the user asks for: everything but the size, checked."""

    def __init__(self, op: str, comm: Communicator, platform: str) -> None:
        self.operator = make_operator(op)
        self.comm, self.topology, self.platform = comm, comm.topology, platform

    minbytes: int
    """The first data size, in bytes."""

    is_fixed: bool
    """Whether something else than a size says how much is communicated."""

    @abstractmethod
    def op(self, size: int) -> OpParam:
        """Return the parameters of the call that communicates hccl_test's data size in bytes."""

    @abstractmethod
    def select(self, op: OpParam) -> Selection:
        """Return what would run, without recording it."""

    @abstractmethod
    def plan(self, op: OpParam) -> Plan:
        """Select and record."""

    @abstractmethod
    def check_sizes(self, sizes: Sizes) -> None:
        """Refuse a range of sizes where there is only one."""

    def data_size(self, op: OpParam) -> int:
        """Return hccl_test's data size: the larger one of a rank's input and output, in bytes."""
        return self.operator.data_size(op, self.topology.size)

    def describe(self, op: OpParam) -> str:
        """Return op, size, data type and mode in one phrase."""
        size = format_size(self.data_size(op))
        return f"{describe_op(op)} of {size} bytes, {op.dtype.value}, {op.mode.value}"

    def describe_executor(self, selection: Selection) -> str:
        """Return what runs, and by which algorithm on each level."""
        levels = format_levels(selection.algorithm)
        return f"{selection.executor}, {levels}" if levels else selection.executor


def request_of(options: ProgramOptions, schedule: Schedule | None = None) -> Request:
    """Return what the first argument of a command names: an op to call, or a program."""
    source = source_of(options.op)
    if source is None:
        _refuse_of_folders(options)
        return CallRequest(options, schedule)
    if source.read is None:
        from hccl_py.cli.folders import FolderRequest

        return FolderRequest(options, schedule)
    _refuse_of_folders(options)
    return ProgramRequest(options, source, schedule)


class CallRequest(Request):
    """A call to be selected and recorded."""

    def __init__(
        self,
        options: CallOptions,
        schedule: Schedule | None = None,
        *,
        spec: CallSpec | None = None,
    ) -> None:
        self.spec = spec_of(options) if spec is None else spec
        self.is_fixed = self.spec.is_fixed
        if options.minbytes is not None:
            self._refuse_sizes()
        topology = self.spec.topology()
        self.spec.param(topology.size)  # raises for what does not depend on the size
        comm = _communicator(options, topology, schedule)
        super().__init__(self.spec.op, comm, options.platform)
        self.executor = _executor(options.executor)
        self.minbytes = self._fixed_size() if self.is_fixed else first_size(options.minbytes)

    def op(self, size: int) -> OpParam:
        """Return the parameters of the call that communicates hccl_test's data size in bytes."""
        return self.spec.sized(size).param(self.topology.size)

    def select(self, op: OpParam) -> Selection:
        """Return what would run, without recording it."""
        return self.comm.select(op, self.executor)[0]

    def plan(self, op: OpParam) -> Plan:
        """Select and record."""
        return self.comm.plan(op, self.executor)

    def check_sizes(self, sizes: Sizes) -> None:
        """Refuse a range of sizes where there is only one."""
        if astuple(sizes) != (None,) * len(fields(sizes)) and self.is_fixed:
            self._refuse_sizes()

    def _refuse_sizes(self) -> None:
        if self.is_fixed:
            barrier = self.spec.counts is None
            what = "barrier has no data size" if barrier else "--counts says the sizes"
            raise ParameterError(f"{what}.", "Leave -b, -e, -f and -i out.")

    def _fixed_size(self) -> int:
        op = self.op(0)
        self.operator.check(op, self.topology)
        return self.data_size(op)


class ProgramRequest(Request):
    """A program from a file or another source: op, data and executor are what it says.

    Its ranks are put where the options say, by default on as few servers as hold them.
    """

    is_fixed = True

    def __init__(
        self, options: ProgramOptions, source: Source, schedule: Schedule | None = None
    ) -> None:
        assert source.read is not None
        _refuse_options(options, source)
        self.program = source.read(options.op, None)
        self.name = format_path(options.op)
        topology = _topology_for(self.program, options, source)
        comm = _communicator(options, topology, schedule)
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


_OF_A_CALL = (
    "ranks",
    "executor",
    "select",
    "algo",
    "mode",
    "deterministic",
    "strict_hccl",
    "in_place",
    "buffsize",
    "dtype",
    "reduce_op",
    "root",
    "counts",
    "minbytes",
)
"""Options that say what is recorded; the others say where it is timed or run."""


def _refuse_options(options: ProgramOptions, source: Source) -> None:
    defaults = {field.name: field.default for field in fields(options)}
    for name in _OF_A_CALL:
        if getattr(options, name) != defaults[name]:
            _refuse("--" + name.replace("_", "-"), source)


def _refuse_of_folders(options: ProgramOptions) -> None:
    """Refuse options that say what is recorded from C++."""
    for option, is_given in (("--op", options.cpp_op is not None), ("--calls", options.calls > 1)):
        if is_given:
            raise ParameterError(
                f"{option} is about a folder with a custom op in C++.",
                f"Leave {option} out, or name the folder first.",
            )


def _refuse(option: str, source: Source) -> None:
    raise ParameterError(
        f"{option} does not go with a {source.noun}, which says that itself.",
        f"Leave {option} out, or name an op.",
    )


def _topology_for(program: Program, options: ProgramOptions, source: Source) -> Topology:
    """Return where the program's ranks are; ParameterError where the options say other ranks."""
    cluster = cluster_of(options)
    is_sized = any((cluster.servers, cluster.superpods, cluster.rank_table))
    if not is_sized and not _has_size(cluster.topology):
        cluster = cluster_of(options, ranks=program.ranks)
    topology = cluster.build(Config.load())
    if topology.size != program.ranks:
        raise ParameterError(
            f"The {source.noun} has {program.ranks} ranks, the options make {topology.size}.",
            "Give a topology of as many ranks as the program has.",
        )
    return topology


def _has_size(topology: str | None) -> bool:
    """Whether a topology says itself how many ranks there are: networks and files do."""
    from hccl_py.topology import PRESETS

    return topology is not None and topology not in PRESETS


def spec_of(options: CallOptions) -> CallSpec:
    """Return the call that options describe, at the default size."""
    return CallSpec(
        op=options.op,
        dtype=options.dtype,
        reduce_op=options.reduce_op,
        root=options.root,
        in_place=options.in_place,
        counts=None if options.counts is None else read_counts(options.counts, options.op),
        cluster=cluster_of(options),
        config=Config.load(
            mode=options.mode,
            buffsize_mb=options.buffsize,
            algo=options.algo,
            deterministic=options.deterministic,
            strict=options.strict_hccl or None,
        ),
    )


def cluster_of(options: CallOptions, ranks: int | None = None) -> ClusterSpec:
    """Return where the options put the ranks."""
    return ClusterSpec(
        options.topology,
        options.rank_table,
        options.ranks if ranks is None else ranks,
        options.servers,
        options.devices,
        options.superpods,
    )


def _communicator(
    options: CallOptions, topology: Topology, schedule: Schedule | None
) -> Communicator:
    """Return a communicator with the settings of the options; broken plugins are warned about."""
    if options.wire is not None and not isinstance(
        find_platform(options.platform), ProcessPlatform
    ):
        raise ParameterError(
            f"--wire is about messages between processes, and platform {options.platform} has one.",
            "Add --platform distributed, or leave --wire out.",
        )
    if options.device is not None and options.platform != "device":
        raise ParameterError(
            f"--device is about --platform device, and this is platform {options.platform}.",
            "Add --platform device, or leave --device out.",
        )
    comm = Communicator(
        topology=topology,
        platform=options.platform,
        mode=options.mode,
        buffsize_mb=options.buffsize,
        algo=options.algo,
        deterministic=options.deterministic,
        strict=options.strict_hccl or None,
        schedule=schedule,
        selection=options.select,
        wire=options.wire,
        device=options.device,
    )
    say_problems(comm.registry.problems)
    return comm


def document_of_call(request: Request, op: OpParam) -> dict[str, Any]:
    """Return the keys by which every JSON document says what was called."""
    return {
        "op": op.name,
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


def describe_op(op: OpParam) -> str:
    """Return `all_reduce sum`."""
    return op.name if op.reduce is None else f"{op.name} {op.reduce.spelling}"


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


def _executor(name: str | None) -> Any:
    """Return what `Communicator.plan` takes: a name, or an author's class."""
    if name is None or ":" not in name:
        return name
    return author_class(name, "--executor")
