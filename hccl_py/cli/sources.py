"""Where programs come from: what a command takes in the place of an op, turned into a program.

Another kind of source is one more entry of SOURCES.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hccl_py.documents.disk import check_place, format_path
from hccl_py.errors import ParameterError, did_you_mean
from hccl_py.formats import load, save
from hccl_py.formats.checks import PROGRAM
from hccl_py.operators import OPERATORS
from hccl_py.program.program import Program

__all__ = [
    "ALGORITHM",
    "ALGORITHMS",
    "CHECKER_LOG",
    "FOLDER",
    "SOURCES",
    "SUFFIXES",
    "TRACE",
    "Source",
    "check_save",
    "is_algorithm",
    "is_folder",
    "program_files_like",
    "refuse_source",
    "save_program",
    "source_of",
]

SUFFIXES = (".json", ".npz")


@dataclass(frozen=True)
class Source:
    """A kind of source: its name for sentences, whether an argument is one, and its program.

    `read` is given the argument and the most bytes that it may take, None for the usual. It is None
    where a program is made for a call that the options describe (`folders.py`, `algorithms.py`,
    `traces.py`, `checker_logs.py`).
    """

    noun: str
    is_one: Callable[[str], bool]
    read: Callable[[str, int | None], Program] | None = None


def source_of(name: str) -> Source | None:
    """Return the kind of source that an argument is; None where it is none."""
    return next((source for source in SOURCES if source.is_one(name)), None)


def refuse_source(name: str, command: str, hint: str) -> None:
    """Raise ParameterError where a command that needs an op is given a program."""
    source = source_of(name)
    if source is not None:
        is_plain = os.path.isdir(name) and source is not TRACE
        noun = "directory" if is_plain else source.noun
        kind = f"{'an' if source in ALGORITHMS else 'a'} {noun}"
        raise ParameterError(f"{command} takes an op, and {format_path(name)} is {kind}.", hint)


def check_save(path: str, option: str = "--save") -> None:
    """Refuse, before anything is recorded, a file that no program could be written to.

    What is there already stays, unless it is a program.
    """
    if Path(path).suffix.lower() not in SUFFIXES:
        raise ParameterError(
            f"{option} {path!r} is no name of a program file.", "Let it end in .json or .npz."
        )
    check_place(path, PROGRAM)


def save_program(program: Program, path: str | None) -> None:
    """Keep a program in a file, if one is named."""
    if path is not None:
        save(program, path)


def _is_program_file(name: str) -> bool:
    if name.lower().endswith(SUFFIXES):
        return True
    return name not in OPERATORS and os.path.exists(name)


def program_files_like(name: str) -> list[str]:
    """Return the names of program files beside a name, as it is written, that are nearest to it."""
    folder = os.path.dirname(name)
    try:
        files = [path.name for path in Path(folder or ".").iterdir() if path.suffix in SUFFIXES]
    except (OSError, ValueError):
        return []
    beside = sorted(os.path.join(folder, file) for file in files)
    near = difflib.get_close_matches(name, beside, n=4, cutoff=0.5)
    return [format_path(path) for path in near if path != name][:3]


def _read_program_file(name: str, max_bytes: int | None) -> Program:
    if not os.path.lexists(name):
        near = program_files_like(name)
        hint = did_you_mean(name, near) if near else "Name a .json or .npz file, or an op."
        raise ParameterError(f"There is no file {name!r}.", hint)
    return load(name, max_bytes=max_bytes)


def is_folder(name: str) -> bool:
    """Whether an argument is a folder: neither an op nor what ends like a program file."""
    is_file = name.lower().endswith(SUFFIXES)
    return os.path.isdir(name) and not is_file and name not in OPERATORS


def is_algorithm(name: str) -> bool:
    """Whether an argument is an algorithm of another tool, to be imported for a call."""
    return _is_xml(name) or _is_plan(name)


def _is_xml(name: str) -> bool:
    """Whether an argument is an MSCCL XML file, or one of several algorithms in it: FILE.xml#2."""
    return re.search(r"\.xml(#[0-9]+)?$", name, re.IGNORECASE) is not None


def _is_plan(name: str) -> bool:
    """Whether an argument is a JSON file with an execution plan."""
    if not (name.lower().endswith(".json") and os.path.isfile(name)):
        return False
    from hccl_py.mscclpp import is_plan_file

    return is_plan_file(name)


def _is_trace(name: str) -> bool:
    """Whether an argument is a folder of .et files, or the prefix of such."""
    if name in OPERATORS or not (os.path.isdir(name) or os.path.exists(f"{name}.0.et")):
        return False
    from hccl_py.chakra import is_trace

    return is_trace(name)


def _is_checker_log(name: str) -> bool:
    """Whether an argument is a log of HCCL's checker, or a test of one: LOG#TEST."""
    from hccl_py.cli.checker_logs import is_checker_log

    return is_checker_log(name)


FOLDER = Source("folder of a custom op", is_folder)
ALGORITHM = Source("MSCCL algorithm", _is_xml)
PLAN = Source("execution plan of mscclpp", _is_plan)
TRACE = Source("Chakra trace", _is_trace)
CHECKER_LOG = Source("log of HCCL's checker", _is_checker_log)
PROGRAM_FILE = Source("program file", _is_program_file, _read_program_file)

ALGORITHMS = (ALGORITHM, PLAN)
"""What is imported for the call that options describe (`notations.py`)."""

SOURCES = (*ALGORITHMS, TRACE, FOLDER, CHECKER_LOG, PROGRAM_FILE)
"""Every kind, looked through in this order."""
