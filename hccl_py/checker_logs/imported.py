"""A test of a log as a program, beside what HCCL's checker said about it.

log = read_log("st.log")
checked = import_test(log, log.tests[0])
checked.report()
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hccl_py.checker_logs.build import Queues, all_tasks, build, check_tasks, extents
from hccl_py.checker_logs.log import LOG, CheckerLog, LoggedTest
from hccl_py.checker_logs.operation import FoundOp, Stated, TouchedBytes, found_op
from hccl_py.documents.kind import named
from hccl_py.errors import ParameterError
from hccl_py.program.program import Program

if TYPE_CHECKING:  # who only times a program does without the verifier
    from hccl_py.verifier import Options, Report

__all__ = ["CheckedTest", "import_test"]

_STATE = "--op, -d, -o and -r state it; --op FILE.json has amounts by rank"


@dataclass(frozen=True)
class CheckedTest:
    """A test, the op that was found for it, and its program."""

    log: CheckerLog
    test: LoggedTest
    found: FoundOp
    program: Program

    @property
    def title(self) -> str:
        """The test, as an argument names it."""
        return f"{self.log.name}#{self.test.name or self.test.number}"

    def require_op(self) -> Program:
        """Return the program; ParameterError where its op is not known."""
        if self.found.open:
            raise ParameterError(
                f"{self.title}: what is computed is not known: {self.found.open}.",
                f"{_STATE}.",
            )
        return self.program

    @property
    def checker(self) -> str:
        """What HCCL's checker said, in a sentence."""
        test = self.test
        if test.errors:
            if not test.said:
                return "HCCL's checker failed it."
            text, line = test.said[0].text, test.said[0].line
            more = f", and {test.errors - 1} more" if test.errors > 1 else ""
            return f'HCCL\'s checker failed it: "{text}" (line {line}{more}).'
        if test.verdict == "passed":
            return "HCCL's checker passed it."
        return "The log does not show what HCCL's checker said."

    def report(self, options: Options | None = None, target: str = "") -> Report:
        """Verify; notes say what HCCL's checker said, and what the log leaves open."""
        from hccl_py.verifier import verify_program

        report = verify_program(self.program, options, target or self.title)
        return replace(report, notes=(*self._notes(), *report.notes))

    def _notes(self) -> Iterator[str]:
        yield self.checker
        if self.found.open:
            yield f"The op is open: {self.found.open}; {_STATE}."
        if not self.test.result and self.test.name:
            yield "The log ends in this test: if it was cut, tasks are missing."


def import_test(log: CheckerLog, test: LoggedTest, stated: Stated | None = None) -> CheckedTest:
    """Return a test as a program; what is `stated` of its op goes before what the log says.

    ProgramFileError for a line that is broken or says what no program could, ParameterError for
    what is stated and does not suit the op.
    """
    queues = log.tasks(test)
    return named(log.name, LOG, lambda: _imported(log, test, stated or Stated(), queues))


def _imported(log: CheckerLog, test: LoggedTest, stated: Stated, queues: Queues) -> CheckedTest:
    check_tasks(queues)
    sizes = extents(queues)
    touched = TouchedBytes(*(max(of_rank[name] for of_rank in sizes) for name in ("IN", "OUT")))
    found = found_op(test.name, len(queues), all_tasks(queues), touched, stated)
    return CheckedTest(log, test, found, build(test.name, log.name, queues, sizes, found))
