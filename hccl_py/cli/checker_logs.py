"""A log of HCCL's checker where a command takes an op or a program: a test of it, made a program.

`LOG#TEST` is one test, by its number among those that print tasks, or by its name, in which * and ?
stand for any characters.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from hccl_py.cli.options import OF_SELECTION, CallOptions, ProgramOptions, Sizes, given
from hccl_py.cli.output import counted
from hccl_py.cli.placing import placed
from hccl_py.cli.request import Request, communicator
from hccl_py.communicator import Plan
from hccl_py.documents.disk import format_path
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import ParameterError
from hccl_py.op_param import OpParam
from hccl_py.operators import OPERATORS
from hccl_py.platforms import Schedule
from hccl_py.selection import Selection

if TYPE_CHECKING:
    from hccl_py.checker_logs import CheckedTest, CheckerLog, LoggedTest, Stated
    from hccl_py.verifier import Report

__all__ = ["LogRequest", "LogTest", "is_checker_log", "stated_of", "test_named", "tests_named"]

NOUN = "log of HCCL's checker"

_SUFFIXES = (".log", ".txt")
_OTHERS = (".json", ".npz", ".xml")
_NOT_OF_LOGS = ("ranks", *OF_SELECTION, "buffsize", "calls")
"""Options of a call that the log says itself, or that are about recording."""


def is_checker_log(name: str) -> bool:
    """Whether an argument is a log, or a test of one: it ends in .log or .txt, or begins as logs
    do.
    """
    from hccl_py.checker_logs import is_log

    path = _parts(name)[0]
    lower = path.lower()
    if path in OPERATORS or lower.endswith(_OTHERS) or os.path.isdir(path):
        return False
    return lower.endswith(_SUFFIXES) or is_log(path)


def stated_of(
    op: str | None, size: str | None, dtype: str | None, reduce: str | None, root: int | None
) -> Stated:
    """Return what options state of the op."""
    from hccl_py.checker_logs import Stated
    from hccl_py.cli.sizes import parse_size

    return Stated(
        op=op,
        size=None if size is None else parse_size(size, "-b"),
        dtype=None if dtype is None else DataType.parse(dtype),
        reduce=None if reduce is None else ReduceOp.parse(reduce),
        root=root,
    )


@dataclass(frozen=True)
class LogTest:
    """A test that is to be checked; it is read when it is its turn."""

    log: CheckerLog
    test: LoggedTest
    stated: Stated

    @property
    def title(self) -> str:
        """How an argument names it."""
        return f"{self.log.name}#{self.test.number}"

    def line(self, report: Report) -> str:
        """Return a line about it: the verdict beside that of HCCL's checker."""
        from hccl_py.verifier.verdict import format_verdict

        verdict = format_verdict(report)
        if not all(program.has_op for program in report.programs.values()):
            verdict += ", results not judged"
        name = self.test.name or "without a name"
        return f"#{self.test.number} {verdict} | HCCL's checker: {self.test.verdict} | {name}"

    def read(self) -> CheckedTest:
        """Return it as a program."""
        from hccl_py.checker_logs import import_test

        return import_test(self.log, self.test, self.stated)


def tests_named(name: str, stated: Stated) -> list[LogTest]:
    """Return the tests that an argument means; ParameterError where there is none."""
    from hccl_py.checker_logs import read_log

    path, wanted = _parts(name)
    log = read_log(path)
    found = [test for test in log.tests if wanted is None or _is_meant(test, wanted)]
    if not found:
        tests = counted(len(log.tests), "test")
        raise ParameterError(
            f"{log.name}: no test {wanted!r:.200} is among the {tests} that print tasks.",
            f"Give a name, in which * stands for anything, or a number from 1 to {len(log.tests)}.",
        )
    return [LogTest(log, test, stated) for test in found]


def test_named(name: str, stated: Stated) -> CheckedTest:
    """Return the one test that an argument means, as a program."""
    found = tests_named(name, stated)
    if len(found) > 1:
        names = ", ".join(test.test.name for test in found[:3])
        path = format_path(_parts(name)[0])
        raise ParameterError(
            f"{format_path(name)} means {len(found)} tests: {names:.400}.",
            f"Name one: {path}#{found[0].test.number}.",
        )
    return found[0].read()


def _parts(name: str) -> tuple[str, str | None]:
    """Return the file and the test that an argument names."""
    if os.path.exists(name) or "#" not in name:
        return name, None
    path, _, test = name.rpartition("#")
    return path, test


def _is_meant(test: LoggedTest, wanted: str) -> bool:
    if wanted.isdecimal() and len(wanted) < 10:
        return test.number == int(wanted)
    case = test.name.partition(".")[2]
    return any(fnmatchcase(name, wanted) for name in (test.name, case))


class LogRequest(Request):
    """A test of a log: its op as far as it is known, its program. Its ranks are put where the
    options say, by default on as few servers as hold them.
    """

    is_fixed = True

    def __init__(self, options: ProgramOptions, schedule: Schedule | None = None) -> None:
        self.name = format_path(options.op)
        _refuse_options(options)
        dtype = options.dtype if next(given(options, ("dtype",)), None) else None
        stated = stated_of(options.cpp_op, options.minbytes, dtype, options.reduce_op, options.root)
        self.checked = test_named(options.op, stated)
        self.program = self.checked.program
        self.has_op = self.program.has_op
        topology = placed(self.program.ranks, options, NOUN)
        comm = communicator(options, topology, schedule)
        super().__init__(self.program.op.name, comm, options.platform)
        self.minbytes = self.data_size(self.program.op)

    def op(self, size: int) -> OpParam:
        """Return the parameters that were found."""
        return self.program.op

    def select(self, op: OpParam) -> Selection:
        """Return a selection of nothing but the test."""
        return Selection(
            op=op.name,
            executor=self.program.executor or NOUN,
            hccl_executor=None,
            algorithm={},
            tag=self.name,
            reasons=(f"it is in the {NOUN} {self.name}",),
            ruleset="",
        )

    def plan(self, op: OpParam) -> Plan:
        """Return the program."""
        return Plan(op, self.select(op), self.program)

    def check_sizes(self, sizes: Sizes) -> None:
        """Refuse a range of sizes."""
        for option, size in (
            ("-e", sizes.maxbytes),
            ("-f", sizes.stepfactor),
            ("-i", sizes.stepbytes),
        ):
            if size is not None:
                raise _not_of_logs(option)

    def describe(self, op: OpParam) -> str:
        """Return op, size and data type, or that they are not known."""
        if self.program.has_op:
            return super().describe(op)
        return f"{self.program.op_name}, results not judged: {self.checked.found.open}"

    def describe_executor(self, selection: Selection) -> str:
        """Return where the test is, and what HCCL's checker said."""
        return f"{NOUN} {self.name}, {selection.executor:.200}. {self.checked.checker}"


def _refuse_options(options: CallOptions) -> None:
    for option in given(options, _NOT_OF_LOGS):
        raise _not_of_logs(option)


def _not_of_logs(option: str) -> ParameterError:
    return ParameterError(
        f"{option} does not go with a {NOUN}, which says that itself.", f"Leave {option} out."
    )
