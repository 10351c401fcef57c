"""Sources in the place of an op: program files, and programs of other tools."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.cli.errors import say_problems
from hccl_py.cli.options import CallOptions, ProgramOptions, Sizes, given
from hccl_py.cli.request import CallRequest, Request, cluster_of, communicator
from hccl_py.cli.sizes import first_size
from hccl_py.communicator.planning import Plan
from hccl_py.documents.disk import format_path
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import DeadlockError, ParameterError, did_you_mean
from hccl_py.importers import Imported, Importer, ImportOptions, Source, SourceCall, SourceError
from hccl_py.importers.contract import with_article
from hccl_py.importers.installed import importer_of, installed_importers
from hccl_py.importers.program_files import program_files_like
from hccl_py.plugins.platforms import Schedule
from hccl_py.selection import Selection
from hccl_py.topology import Topology

if TYPE_CHECKING:
    from hccl_py.importers.contract import Repetition

_PLACE = frozenset({"servers", "devices", "superpods", "topology", "rank_table"})
_ALWAYS = frozenset({"op", "platform", "wire", "device"})
"""Options of a call that every source takes, beside those of the place of its ranks."""

_OF_SOURCES = ("cpp_op", "calls", "roofline", "buffered")
"""Options that an op does not take."""

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
        refuse_options([name for name in given(options) if name in _OF_SOURCES], None, options.op)
        return CallRequest(options, schedule)
    return SourceRequest(importer, options, schedule)


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
    taken = _ALWAYS | _PLACE | importer.takes
    refuse_options(sorted({*given(options)} - taken), importer, options.op)
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
        self._importer, self._path = importer, options.op
        self.source = open_source(importer, options)
        self.name = self.source.name
        self.is_fixed = self.source.is_fixed
        self.is_recorded = self.source.needs_comm or not self.source.is_fixed
        self.is_verified, self.has_op = self.source.has_addresses, self.source.has_op
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
            found = self.source.imported(SourceCall(self._sizes[op], self.comm, self.cost))
            self._known[op] = shown(found)
        return self._known[op]

    def hang(self, op: OpParam, error: DeadlockError) -> DeadlockError:
        """Return the error of a program that never ends in the words of the source."""
        return self.imported(op).hang(error)

    def repetition(self, op: OpParam) -> Repetition | None:
        """Return the repeated passes of a call that is too large to be written out."""
        return self.source.repetition(self._sizes[op], self.cost)

    def check_sizes(self, sizes: Sizes) -> None:
        """Refuse a range of sizes where there is only one."""
        if self.is_fixed:
            refuse_options(given(sizes), self._importer, self._path)

    def describe(self, op: OpParam) -> str:
        """Return the call in one phrase, in the words of the source where it has some."""
        return self.source.describe() or super().describe(op)

    def describe_executor(self, selection: Selection) -> str:
        """Return the kind and the place of the source."""
        op = next(iter(self._known), None)
        program = None if op is None else self._known[op].program
        return self.source.describe_executor(program)


def refuse_options(names: Iterable[str], importer: Importer | None, path: str) -> None:
    """Raise ParameterError for the first of the named options, if any: the importer of a path does
    not take it, or an op where there is no importer.
    """
    for name in names:
        option = _SPELLINGS.get(name, "--" + name.replace("_", "-"))
        if importer is not None:
            noun = with_article(importer.noun_of(path))
            raise ParameterError(
                f"{option} does not go with {noun}, which says that itself.",
                f"Leave {option} out for {format_path(path)}.",
            )
        known = installed_importers().known
        *others, last = (with_article(one.noun) for one in known if name in one.takes)
        nouns = f"{', '.join(others)} or {last}" if others else last
        raise ParameterError(
            f"{option} is about {nouns}; {path} is none.",
            f"Leave {option} out, or name a source that takes it first.",
        )


def import_options(options: ProgramOptions, max_bytes: int | None = None) -> ImportOptions:
    """Return the call for which a source is opened."""
    has_dtype = "dtype" in given(options)
    return ImportOptions(
        op=options.cpp_op,
        size=None if options.minbytes is None else first_size(options.minbytes),
        dtype=DataType.parse(options.dtype) if has_dtype else None,
        reduce=None if options.reduce_op is None else ReduceOp.parse(options.reduce_op),
        root=options.root,
        calls=options.calls,
        buffsize=options.buffsize,
        roofline=options.roofline,
        buffered=options.buffered,
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
