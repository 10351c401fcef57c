"""The call of a command: an op to be selected and recorded, or a source to be imported."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import astuple, fields, replace
from typing import TYPE_CHECKING, Any

from hccl_py.call.call_spec import CallSpec, ClusterSpec
from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.cli.counts import read_counts
from hccl_py.cli.errors import say_problems
from hccl_py.cli.options import CallOptions, ProgramOptions, Sizes, given
from hccl_py.cli.output import format_levels
from hccl_py.cli.sizes import first_size
from hccl_py.clocks.cost import CostModel
from hccl_py.communicator.communicator import Communicator, Plan
from hccl_py.documents.disk import format_path
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import ParameterError, did_you_mean
from hccl_py.importers import Imported, Importer, ImportOptions, Source, SourceError
from hccl_py.importers.contract import with_article
from hccl_py.importers.installed import importer_of, installed_importers
from hccl_py.importers.program_files import program_files_like
from hccl_py.operators import make_operator
from hccl_py.plugins.authors import author_class
from hccl_py.plugins.discovery import find_platform
from hccl_py.plugins.platforms import ProcessPlatform, Schedule
from hccl_py.selection import Selection
from hccl_py.topology import Topology
from hccl_py.trace.units import format_size

if TYPE_CHECKING:
    from hccl_py.importers.contract import Repetition

_PLACE = frozenset({"servers", "devices", "superpods", "topology", "rank_table"})
_ALWAYS = frozenset({"op", "platform", "wire", "device"})
"""Options of a call that every source takes, beside those of the place of its ranks."""

_SPELLINGS = {
    **{"cpp_op": "--op", "minbytes": "-b", "dtype": "-d", "reduce_op": "-o", "root": "-r"},
    **{"maxbytes": "-e", "stepfactor": "-f", "stepbytes": "-i"},
}
"""Options that people write in another way than their fields are named."""


def request_of(options: ProgramOptions, schedule: Schedule | None = None) -> Request:
    """Return the request that the first argument of a command names: an op or a source."""
    importer = importer_of(options.op)
    say_problems(installed_importers().problems)
    if importer is None:
        refuse_options(given(options, _OF_SOURCES), None, options.op)
        return CallRequest(options, schedule)
    return SourceRequest(importer, options, schedule)


class Request(ABC):
    """A call of any size, with its other options checked."""

    def __init__(self, op: str, comm: Communicator, platform: str) -> None:
        self.operator = make_operator(op)
        self.comm, self.topology, self.platform = comm, comm.topology, platform

    minbytes: int
    """The first data size, in bytes."""

    is_fixed: bool
    """True if something else than a size says how much is communicated."""

    cost: CostModel | None = None
    """The cost model of the times that are wanted, where it is known before recording."""

    source: Source | None = None
    """The source, if the request names one."""

    is_recorded: bool = True
    """False if the program is read as it is."""

    @property
    def is_verified(self) -> bool:
        """True if the program has addresses, so that it can be verified."""
        return self.source is None or self.source.has_addresses

    @property
    def not_verified(self) -> str:
        """The reason why a source without addresses is not verified."""
        noun = "program" if self.source is None else self.source.noun
        return f"not verified: a {noun} has sizes and no addresses"

    @property
    def source_name(self) -> str:
        """The name of the source in messages; empty for an op."""
        return "" if self.source is None else self.source.name

    @property
    def has_op(self) -> bool:
        """True if the op is known, so that the program can be run."""
        return self.source is None or self.source.has_op

    @abstractmethod
    def op(self, size: int) -> OpParam:
        """Return the parameters of the call that communicates hccl_test's data size in bytes."""

    @abstractmethod
    def select(self, op: OpParam) -> Selection:
        """Return the executor that would run, without recording it."""

    @abstractmethod
    def plan(self, op: OpParam) -> Plan:
        """Select and record."""

    @abstractmethod
    def check_sizes(self, sizes: Sizes) -> None:
        """Refuse a range of sizes where there is only one."""

    def repetition(self, op: OpParam) -> Repetition | None:
        """Return the repeated passes of a call that is too large to be recorded, or None."""
        return None

    def data_size(self, op: OpParam) -> int:
        """Return hccl_test's data size: the larger one of a rank's input and output, in bytes."""
        return self.operator.data_size(op, self.topology.size)

    def describe(self, op: OpParam) -> str:
        """Return op, size, data type and mode in one phrase."""
        size = format_size(self.data_size(op))
        return f"{describe_op(op)} of {size} bytes, {op.dtype.value}, {op.mode.value}"

    def describe_executor(self, selection: Selection) -> str:
        """Return the executor and its algorithm on each level."""
        levels = format_levels(selection.algorithm)
        return f"{selection.executor}, {levels}" if levels else selection.executor


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
        comm = communicator(options, topology, schedule)
        super().__init__(self.spec.op, comm, options.platform)
        self.executor = _executor(options.executor)
        self.minbytes = self._fixed_size() if self.is_fixed else first_size(options.minbytes)

    def op(self, size: int) -> OpParam:
        """Return the parameters of the call that communicates hccl_test's data size in bytes."""
        return self.spec.sized(size).param(self.topology.size)

    def select(self, op: OpParam) -> Selection:
        """Return the executor that would run, without recording it."""
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
            is_barrier = self.spec.counts is None
            reason = "barrier has no data size" if is_barrier else "--counts says the sizes"
            raise ParameterError(f"{reason}.", "Leave -b, -e, -f and -i out.")

    def _fixed_size(self) -> int:
        op = self.op(0)
        self.operator.check(op, self.topology)
        return self.data_size(op)


def importer_for(path: str, command: str) -> Importer:
    """Return the importer of a path; ParameterError where a path is no source."""
    importer = importer_of(path)
    say_problems(installed_importers().problems)
    if importer is None:
        near = program_files_like(path)
        nouns = ", ".join(one.noun for one in installed_importers().known)
        raise ParameterError(
            f"{command} takes a source, and there is no file or folder {format_path(path)!r:.200}.",
            did_you_mean(path, near) if near else f"One of these: {nouns}.",
        )
    return importer


def open_source(
    importer: Importer, options: ProgramOptions, max_bytes: int | None = None
) -> Source:
    """Open the source that the options name; ParameterError for options that it does not take."""
    source = opened(importer.open, options.op, import_options(options, max_bytes))
    names = {field.name for field in fields(options)} - _ALWAYS - _PLACE - importer.takes
    refuse_options(given(options, sorted(names)), importer, options.op)
    return source


class SourceRequest(Request):
    """A source, imported at every size that is asked for.

    Its ranks are put where the options say, by default on as few servers as hold them.
    """

    source: Source

    def __init__(
        self,
        importer: Importer,
        options: ProgramOptions,
        schedule: Schedule | None = None,
    ) -> None:
        self.source = open_source(importer, options)
        self.name = self.source.name
        self.is_fixed = self.source.is_fixed
        self.is_recorded = self.source.needs_comm or not self.source.is_fixed
        self.minbytes = self.source.usual_size
        self._sizes: dict[OpParam, int] = {}
        self._known: dict[OpParam, Imported] = {}
        topology = placed(self.source, options)
        super().__init__(
            self.source.op_name, communicator(options, topology, schedule), options.platform
        )

    def op(self, size: int) -> OpParam:
        """Return the parameters of the call, whose data has `size` bytes or some more."""
        op = self.source.op(size, self.comm)
        self._sizes.setdefault(op, size)
        return op

    def select(self, op: OpParam) -> Selection:
        """Return a selection of the source."""
        return Selection(
            op=op.name,
            executor=self.source.executor,
            hccl_executor=None,
            algorithm={},
            tag=self.name,
            reasons=(f"it is the {self.source.noun} {self.name}",),
            ruleset="",
        )

    def plan(self, op: OpParam) -> Plan:
        """Import; ParameterError where the source leaves no program to be made."""
        return Plan(op, self.select(op), self.imported(op).require())

    def imported(self, op: OpParam) -> Imported:
        """Import, once for every call."""
        if op not in self._known:
            found = self.source.imported(self._sizes[op], self.comm, self.cost)
            self._known[op] = shown(found)
        return self._known[op]

    def repetition(self, op: OpParam) -> Repetition | None:
        """Return the repeated passes of a call that is too large to be written out."""
        return self.source.repetition(self._sizes[op], self.cost)

    def check_sizes(self, sizes: Sizes) -> None:
        """Refuse a range of sizes where there is only one."""
        if self.is_fixed:
            for field in fields(sizes):
                if getattr(sizes, field.name) is not None:
                    raise _not_taken(field.name, self.source.noun, self.name)

    def describe(self, op: OpParam) -> str:
        """Return the call in one phrase, in the words of the source where it has some."""
        return self.source.describe() or super().describe(op)

    def describe_executor(self, selection: Selection) -> str:
        """Return the kind and the place of the source."""
        op = next(iter(self._known), None)
        program = None if op is None else self._known[op].program
        return self.source.describe_executor(program)


_OF_SOURCES = ("cpp_op", "calls", "roofline", "buffered")
"""Options that an op does not take."""


def refuse_options(names: Iterable[str], importer: Importer | None, path: str) -> None:
    """Raise ParameterError for the first of the named options, which an importer does not take, or
    an op where it is None.
    """
    for name in names:
        if importer is not None:
            raise _not_taken(name, importer.noun_of(path), format_path(path))
        option = _SPELLINGS.get(name, "--" + name.replace("_", "-"))
        known = installed_importers().known
        *others, last = (with_article(one.noun) for one in known if name in one.takes)
        nouns = f"{', '.join(others)} or {last}" if others else last
        raise ParameterError(
            f"{option} is about {nouns}; {path} is none.",
            f"Leave {option} out, or name a source that takes it first.",
        )


def _not_taken(name: str, noun: str, path: str) -> ParameterError:
    option = _SPELLINGS.get(name, "--" + name.replace("_", "-"))
    return ParameterError(
        f"{option} does not go with {with_article(noun)}, which says that itself.",
        f"Leave {option} out for {path}.",
    )


def import_options(options: CallOptions, max_bytes: int | None = None) -> ImportOptions:
    """Return the call for which a source is opened."""
    of_source = options if isinstance(options, ProgramOptions) else None
    dtype = next(given(options, ("dtype",)), None)
    return ImportOptions(
        op=None if of_source is None else of_source.cpp_op,
        size=None if options.minbytes is None else first_size(options.minbytes),
        dtype=None if dtype is None else DataType.parse(options.dtype),
        reduce=None if options.reduce_op is None else ReduceOp.parse(options.reduce_op),
        root=options.root,
        calls=1 if of_source is None else of_source.calls,
        buffsize=options.buffsize,
        roofline=None if of_source is None else of_source.roofline,
        buffered=of_source is not None and of_source.buffered,
        max_bytes=max_bytes,
    )


def refuse_without_addresses(source: Source, command: str) -> None:
    """Raise ParameterError where a command that looks at memory is given sizes only."""
    if not source.has_addresses:
        noun = source.noun
        effect = {"check": "nothing can be verified", "run": "there is nothing to run"}[command]
        raise ParameterError(
            f"{source.name} is a {noun}. A {noun} has sizes and no addresses, so {effect}.",
            "`hccl-py simulate` times it, `hccl-py trace` and `view` draw it.",
        )


def opened(open_source: Callable[..., Source], *arguments: Any) -> Source:
    """Open a source; the output of a tool that refuses it goes to stderr as it is."""
    try:
        return open_source(*arguments)
    except SourceError as error:
        sys.stderr.write(error.output)
        raise


def shown(imported: Imported) -> Imported:
    """Show on stderr the output of the source's own code, and return what was imported."""
    if imported.printed:
        sys.stderr.write(imported.printed.rstrip("\n") + "\n")
    return imported


def placed(source: Source, options: CallOptions) -> Topology:
    """Return the place of a source's ranks, by default as few servers as hold them; ParameterError
    where the options say other ranks.
    """
    cluster = cluster_of(options)
    if source.ranks is None:
        is_placed = options.topology is not None or options.rank_table is not None
        return (cluster if is_placed else replace(cluster, topology=source.topology)).build(
            Config.load()
        )
    is_sized = any((cluster.servers, cluster.superpods, cluster.rank_table))
    if not is_sized and not _has_size(cluster.topology):
        cluster = replace(cluster, ranks=source.ranks)
    topology = cluster.build(Config.load())
    if topology.size != source.ranks:
        raise ParameterError(
            f"The {source.noun} has {source.ranks} ranks, the options make {topology.size}.",
            "Give a topology of as many ranks as the program has.",
        )
    return topology


def _has_size(topology: str | None) -> bool:
    """Return True if a topology says itself how many ranks there are, as networks and files do."""
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
            ruleset=options.ruleset,
            zero_copy=options.zero_copy,
        ),
    )


def cluster_of(options: CallOptions) -> ClusterSpec:
    """Return the place of the ranks by the options."""
    return ClusterSpec(
        options.topology,
        options.rank_table,
        options.ranks,
        options.servers,
        options.devices,
        options.superpods,
    )


def communicator(
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
        ruleset=options.ruleset,
        zero_copy=options.zero_copy,
        schedule=schedule,
        selection=options.select,
        wire=options.wire,
        device=options.device,
    )
    say_problems(comm.registry.problems)
    return comm


def describe_op(op: OpParam) -> str:
    """Return `all_reduce sum`."""
    return op.name if op.reduce is None else f"{op.name} {op.reduce.spelling}"


def _executor(name: str | None) -> Any:
    """Return an executor for `Communicator.plan`: a name, or an author's class."""
    if name is None or ":" not in name:
        return name
    return author_class(name, "--executor")
