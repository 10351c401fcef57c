"""The targets of `hccl-py check`: sources, ops, executors, authors' classes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from hccl_py.call.ops import OPS
from hccl_py.cli.call import check_tasks
from hccl_py.cli.options import ProgramOptions
from hccl_py.cli.request import CallRequest, communicator
from hccl_py.cli.sources import import_options, opened, placed, refuse_without_addresses, shown
from hccl_py.errors import HcclError, ParameterError
from hccl_py.importers import Imported, Importer, SourceCall, SourceEntry, importer_of
from hccl_py.importers.program_files import program_files_like
from hccl_py.operators import OPERATORS
from hccl_py.plugins.authors import author_class
from hccl_py.plugins.discovery import Registry, installed_executors
from hccl_py.plugins.executor import Executor


@dataclass(frozen=True)
class SourceCalls:
    """The calls for which `check` imports sources: one, or one for each of `ranks` where topologies
    say how many ranks there are. A file may have `max_bytes`.
    """

    call: ProgramOptions
    ranks: tuple[int, ...] = ()
    max_bytes: int | None = None


@dataclass(frozen=True)
class Target:
    """An executor whose calls are verified, or a call of a source, imported when it is verified."""

    name: str
    executor: Executor | None = None
    imported: Callable[[], Imported] | None = None
    importer: Importer | None = None
    stands_for_op: bool = False
    """True for an executor of an op that was named: narrower calls need not concern all of them."""

    is_one_of_many: bool = False
    """True for a source among several of its path."""

    def takes(self, option: str, of_sweeps: Collection[str]) -> bool:
        """True for an option that concerns the target: sources take those of their importer,
        executors those of sweeps, and one call of an op has a size in place of counts.
        """
        if self.importer is not None:
            return option in self.importer.takes
        if self.imported is not None and option in ("minbytes", "count"):
            return option == "minbytes"
        return option in of_sweeps


def find_targets(names: Iterable[str], calls: SourceCalls) -> tuple[list[Target], list[HcclError]]:
    """Return the targets, one for each name or more, and the errors about names and files.

    A name is a path if an importer claims it; else an op, an executor or module:Class.
    """
    found: list[Target] = []
    problems = []
    for name in names:
        try:
            found += _find(name, calls)
        except HcclError as error:
            problems.append(error)
    return found, problems


def _find(name: str, calls: SourceCalls) -> Iterator[Target]:
    registry = installed_executors()
    importer = None if name in registry.executors else importer_of(name)
    if importer is not None:
        yield from _sources(name, importer, calls)
    elif name in OPERATORS and (calls.call.minbytes is not None or OPS[name].meets):
        yield from _calls_of(name, calls)
    elif name in OPERATORS:
        yield from _executors_of(name, registry)
    elif name in registry.executors:
        yield Target(name, registry.executors[name].executor)
    elif ":" in name:
        candidate = author_class(name, "target")
        yield Target(name, Registry().add(candidate, name.partition(":")[0]).executor)
    else:
        known = [*OPERATORS, *registry.executors, *program_files_like(name)]
        raise registry.unknown("Target", name, known)


def _sources(name: str, importer: Importer, calls: SourceCalls) -> Iterator[Target]:
    """Yield the sources of a path: a single one is imported at once, so that its errors come before
    anything is verified; several are read one by one.
    """
    entries = importer.entries(name, import_options(calls.call, calls.max_bytes))
    is_many = len(entries) > 1
    numbers = calls.ranks if "ranks" in importer.takes else ()
    for entry in entries:
        for ranks in numbers or (None,):
            is_alone = len(numbers) < 2
            title = entry.title if is_alone else f"{entry.title} ({ranks} ranks)"
            imported: Callable[[], Imported] = partial(_imported, entry, calls.call, ranks)
            if not is_many:
                imported = partial(_same, imported())
            yield Target(title, imported=imported, importer=importer, is_one_of_many=is_many)


def _same(imported: Imported) -> Imported:
    return imported


def _imported(entry: SourceEntry, call: ProgramOptions, ranks: int | None) -> Imported:
    source = opened(entry.open)
    refuse_without_addresses(source, "check")
    comm = None
    if source.needs_comm:
        options = replace(call, ranks=ranks)
        comm = communicator(options, placed(source, options), None)
    found = shown(source.imported(SourceCall(source.usual_size, comm, repeats=True)))
    if found.program is not None:
        check_tasks(found.program)
    return found


def _calls_of(op: str, calls: SourceCalls) -> Iterator[Target]:
    """Yield the call of an op at a size, or of a barrier, by the executor that is chosen for it;
    one for each number of ranks.
    """
    for ranks in calls.ranks or (None,):
        request = CallRequest(replace(calls.call, op=op, ranks=ranks))
        param = request.op(request.minbytes)
        plan = request.plan(param)
        check_tasks(plan.program)
        title = f"{request.describe(param)}, {plan.selection.executor}"
        imported = Imported(title, plan.program, product=request.topology.product)
        yield Target(title, imported=partial(_same, imported))


def _executors_of(op: str, registry: Registry) -> Iterator[Target]:
    registered = registry.for_op(op)
    if not registered:
        raise ParameterError(
            f"No executor of {op} is installed.", "`hccl-py list` shows what is installed."
        )
    yield from (Target(found.name, found.executor, stands_for_op=True) for found in registered)
