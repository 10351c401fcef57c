"""A test of a log as a program, beside the verdict of HCCL's checker.

log = read_log("st.log")
imported = import_test(log, log.tests[0])
imported.report()
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from hccl_interop.checker_logs.build import Queues, all_tasks, build, check_tasks, extents
from hccl_interop.checker_logs.log import LOG, CheckerLog, LoggedTest
from hccl_interop.checker_logs.operation import FoundOp, TouchedBytes, found_op
from hccl_py.documents.kind import named
from hccl_py.importers import Imported, ImportOptions

if TYPE_CHECKING:  # timing a program does without the verifier
    from hccl_py.verifier import Report

_STATE = "--op, -d, -o and -r state it; --op FILE.json has amounts by rank"


def import_test(
    log: CheckerLog, test: LoggedTest, options: ImportOptions | None = None
) -> Imported:
    """Return a test as a program; the op that options state goes before the one that the log tells.

    ProgramFileError for a line that is broken or says what no program could, ParameterError for
    options that do not suit the op.
    """
    queues = log.tasks(test)
    return named(log.name, LOG, lambda: _imported(log, test, options or ImportOptions(), queues))


def _imported(
    log: CheckerLog, test: LoggedTest, options: ImportOptions, queues: Queues
) -> Imported:
    check_tasks(queues)
    sizes = extents(queues)
    touched = TouchedBytes(*(max(of_rank[name] for of_rank in sizes) for name in ("IN", "OUT")))
    found = found_op(test.name, len(queues), all_tasks(queues), touched, options)
    return Imported(
        f"{log.name}#{test.name or test.number}",
        build(test.name, log.name, queues, sizes, found),
        notes=tuple(_notes(test, found)),
        unknown=found.open,
        verdict_line=partial(_verdict_line, test),
    )


def _notes(test: LoggedTest, found: FoundOp) -> Iterator[str]:
    yield checker_verdict(test)
    if found.open:
        yield f"The op is open: {found.open}; {_STATE}."
    if not test.result and test.name:
        yield "The log ends in this test: if it was cut, tasks are missing."


def checker_verdict(test: LoggedTest) -> str:
    """Return the verdict of HCCL's checker on a test, in a sentence."""
    if test.errors:
        if not test.said:
            return "HCCL's checker failed it."
        text, line = test.said[0].text, test.said[0].line
        more = f", and {test.errors - 1} more" if test.errors > 1 else ""
        return f'HCCL\'s checker failed it: "{text}" (line {line}{more}).'
    if test.verdict == "passed":
        return "HCCL's checker passed it."
    return "The log does not show the verdict of HCCL's checker."


def _verdict_line(test: LoggedTest, report: Report) -> str:
    """Return the verdict of the verifier beside that of HCCL's checker."""
    from hccl_py.verifier.verdict import format_verdict

    verdict = format_verdict(report)
    if not all(program.has_op for program in report.programs.values()):
        verdict += ", results not judged"
    name = test.name or "without a name"
    return f"#{test.number} {verdict} | HCCL's checker: {test.verdict} | {name}"
