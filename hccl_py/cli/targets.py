"""What `hccl-py check` is to check: program files, ops, executors, authors' classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hccl_py.authors import author_class
from hccl_py.checker_logs import Stated
from hccl_py.cli.algorithms import AlgorithmCalls
from hccl_py.cli.call import check_tasks
from hccl_py.cli.checker_logs import LogTest, tests_named
from hccl_py.cli.folders import FolderCalls
from hccl_py.cli.options import CallOptions
from hccl_py.cli.sources import ALGORITHMS, CHECKER_LOG, TRACE, program_files_like, source_of
from hccl_py.cli.traces import refuse_trace
from hccl_py.cpp import Recording
from hccl_py.discovery import Registry, installed_executors
from hccl_py.errors import HcclError, ParameterError, did_you_mean
from hccl_py.executor import Executor
from hccl_py.msccl import Imported
from hccl_py.mscclpp import ImportedPlan
from hccl_py.operators import OPERATORS, make_operator
from hccl_py.program.program import Program

__all__ = ["Target", "find_targets"]


@dataclass(frozen=True)
class Target:
    """A program, a recording of a folder of C++, an algorithm of another tool that was imported, a
    test of a log, or an executor whose calls are verified.
    """

    name: str
    subject: Program | Recording | Imported | ImportedPlan | LogTest | Executor
    stands_for_op: bool = False
    """Whether it is one of an op's executors, of which narrower calls need not concern all."""

    is_one_of_many: bool = False
    """Whether it is one of a log's tests, of which people are shown a line each."""

    @property
    def is_program(self) -> bool:
        """Whether there is one program only."""
        return isinstance(self.subject, Program)

    @property
    def is_imported(self) -> bool:
        """Whether it was imported for a call that options describe."""
        return isinstance(self.subject, Imported | ImportedPlan | LogTest)


def find_targets(
    names: Iterable[str],
    max_bytes: int | None = None,
    folders: FolderCalls | None = None,
    algorithms: AlgorithmCalls | None = None,
    stated: Stated | None = None,
) -> tuple[list[Target], list[HcclError]]:
    """Return the targets, one for each name or more, and what is wrong with names and files.

    A name is a file if it ends like one; else an op, an executor or module:Class; else any file or
    folder. Folders are recorded for the calls that `folders` has, algorithms are imported for the
    one that `algorithms` describes, tests of logs with the op that is `stated`.
    """
    folders = folders or FolderCalls(CallOptions(""))
    algorithms = algorithms or AlgorithmCalls()
    found: list[Target] = []
    problems = []
    for name in names:
        try:
            found += _find(name, max_bytes, folders, algorithms, stated or Stated())
        except HcclError as error:
            problems.append(error)
    return found, problems


def _find(
    name: str,
    max_bytes: int | None,
    folders: FolderCalls,
    algorithms: AlgorithmCalls,
    stated: Stated,
) -> Iterator[Target]:
    registry = installed_executors()
    source = None if name in registry.executors else source_of(name)
    if source is TRACE:
        refuse_trace(name, "check")
    if source in ALGORITHMS:
        for title, imported in algorithms.imported(name, max_bytes):
            yield Target(title, imported)
    elif source is CHECKER_LOG:
        tests = tests_named(name, stated)
        yield from (Target(t.title, t, is_one_of_many=len(tests) > 1) for t in tests)
    elif source is not None and source.read is None:
        for title, recording in folders.recordings(name):
            if recording.program is not None:
                check_tasks(recording.program)
            yield Target(title, recording)
    elif source is not None and source.read is not None:
        program = source.read(name, max_bytes)
        check_tasks(program)
        yield Target(name, program)
    elif name in OPERATORS:
        yield from _executors_of(name, registry)
    elif name in registry.executors:
        yield Target(name, registry.executors[name].executor)
    elif ":" in name:
        candidate = author_class(name, "target")
        yield Target(name, Registry().add(candidate, name.partition(":")[0]).executor)
    else:
        known = [*OPERATORS, *registry.executors, *program_files_like(name)]
        hint = did_you_mean(name, known, listed_by="`hccl-py list`")
        raise ParameterError(f"Target {name!r} is unknown.", hint)


def _executors_of(op: str, registry: Registry) -> Iterator[Target]:
    registered = registry.for_op(make_operator(op).runs_as)
    if not registered:
        raise ParameterError(
            f"No executor of {op} is installed.", "`hccl-py list` shows what is installed."
        )
    yield from (Target(found.name, found.executor, True) for found in registered)
