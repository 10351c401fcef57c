"""What `hccl-py check` is to check: program files, ops, executors, authors' classes."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hccl_py.cli.authors import author_class
from hccl_py.cli.call import check_tasks
from hccl_py.discovery import Registry, installed_executors
from hccl_py.errors import HcclError, ParameterError, did_you_mean
from hccl_py.executor import Executor
from hccl_py.formats import load, spell_path
from hccl_py.operators import OPERATORS, make_operator
from hccl_py.program.program import Program

__all__ = ["Target", "find_targets"]

_SUFFIXES = (".json", ".npz")


@dataclass(frozen=True)
class Target:
    """A program, or an executor of which many calls are verified."""

    name: str
    subject: Program | Executor
    stands_for_op: bool = False
    """Whether it is one of an op's executors, of which narrower calls need not concern all."""

    @property
    def is_program(self) -> bool:
        """Whether there is one program only."""
        return isinstance(self.subject, Program)


def find_targets(
    names: Iterable[str], max_bytes: int | None = None
) -> tuple[list[Target], list[HcclError]]:
    """Return the targets, one for each name or more, and what is wrong with names and files.

    A name is a file if it ends like one; else an op, an executor or module:Class; else any file.
    """
    found: list[Target] = []
    problems = []
    for name in names:
        try:
            found += _find(name, max_bytes)
        except HcclError as error:
            problems.append(error)
    return found, problems


def _find(name: str, max_bytes: int | None) -> Iterator[Target]:
    if name.lower().endswith(_SUFFIXES):
        yield _file(name, max_bytes)
        return
    registry = installed_executors()
    if name in OPERATORS:
        yield from _executors_of(name, registry)
    elif name in registry.executors:
        yield Target(name, registry.executors[name].executor)
    elif os.path.exists(name):
        yield _file(name, max_bytes)
    elif ":" in name:
        candidate = author_class(name, "target")
        yield Target(name, Registry().add(candidate, name.partition(":")[0]).executor)
    else:
        raise ParameterError(f"Target {name!r} is unknown.", _near(name, registry))


def _executors_of(op: str, registry: Registry) -> Iterator[Target]:
    registered = registry.for_op(make_operator(op).runs_as)
    if not registered:
        raise ParameterError(
            f"No executor of {op} is installed.", "`hccl-py list` shows what is installed."
        )
    yield from (Target(found.name, found.executor, True) for found in registered)


def _file(name: str, max_bytes: int | None) -> Target:
    if not os.path.exists(name):
        raise ParameterError(f"There is no file {name!r}.", _near(name, installed_executors()))
    program = load(name, max_bytes=max_bytes)
    check_tasks(program)
    return Target(name, program)


def _near(name: str, registry: Registry) -> str:
    """Return a hint with the nearest ops, executors and program files."""
    near = map(spell_path, difflib.get_close_matches(name, _files_beside(name), n=3, cutoff=0.5))
    return did_you_mean(name, [*OPERATORS, *registry.executors, *near])


def _files_beside(name: str) -> list[str]:
    """Return the program files of the folder that a name is in, written as the name is."""
    folder = os.path.dirname(name)
    try:
        files = [path.name for path in Path(folder or ".").iterdir() if path.suffix in _SUFFIXES]
    except (OSError, ValueError):
        return []
    return sorted(os.path.join(folder, file) for file in files)
