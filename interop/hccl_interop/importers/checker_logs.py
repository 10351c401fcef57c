"""Logs of HCCL's checker as sources of commands.

`LOG#TEST` is one test, by its number among those that print tasks, or by its name, in which * and ?
stand for any characters.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING

from hccl_py.documents.disk import check_place, format_path, write_file
from hccl_py.errors import ParameterError
from hccl_py.importers import (
    Imported,
    Importer,
    ImportOptions,
    Source,
    SourceCall,
    SourceEntry,
    WriterOptions,
)
from hccl_py.operators import make_operator

if TYPE_CHECKING:
    from hccl_interop.checker_logs.log import CheckerLog, LoggedTest
    from hccl_py.call.op_param import OpParam
    from hccl_py.communicator.communicator import Communicator
    from hccl_py.program.program import Program

_SUFFIXES = (".log", ".txt")
_OTHERS = (".json", ".npz", ".xml")


@dataclass(kw_only=True)
class LogSource(Source):
    """A test of a log, with its op as far as that is known."""

    found: Imported
    verdict: str

    @property
    def program(self) -> Program:
        """The program of the test."""
        return self.found.require()

    def op(self, size: int, comm: Communicator) -> OpParam:
        """Return the parameters that the log tells."""
        return self.program.op

    def imported(self, call: SourceCall) -> Imported:
        """Return the test."""
        return self.found

    def describe(self) -> str | None:
        """Return the reason why results are not judged, where they are not."""
        if self.has_op:
            return None
        return f"{self.program.op_name}, results not judged: {self.found.unknown}"

    def describe_executor(self, program: Program | None) -> str:
        """Return the place of the test and the verdict of HCCL's checker."""
        return f"{self.noun} {self.name}, {self.executor:.200}. {self.verdict}"


class LogImporter(Importer):
    """Claims .log and .txt, and files that begin as logs do, each with or without #TEST."""

    noun = "log of HCCL's checker"
    takes = frozenset({"cpp_op", "minbytes", "dtype", "reduce_op", "root"})
    order = 60

    def claims(self, path: str) -> bool:
        """Return True for the suffixes of logs, and for a file that begins as a log does."""
        file = _parts(path)[0]
        lower = file.lower()
        if lower.endswith(_OTHERS) or os.path.isdir(file):
            return False
        if lower.endswith(_SUFFIXES):
            return True
        if not os.path.exists(file):
            return False
        from hccl_interop.checker_logs.log import is_log

        return is_log(file)

    def entries(self, path: str, options: ImportOptions) -> list[SourceEntry]:
        """Return the tests that a path names; ParameterError where there is none."""
        from hccl_interop.checker_logs.log import read_log

        file, wanted = _parts(path)
        log = read_log(file)
        tests = [test for test in log.tests if wanted is None or _is_meant(test, wanted)]
        if not tests:
            count = f"{len(log.tests)} test{'s' if len(log.tests) > 1 else ''}"
            raise ParameterError(
                f"{log.name}: no test {wanted!r:.200} is among the {count} that print tasks.",
                "Give a name, in which * stands for anything, or a number from 1 to "
                f"{len(log.tests)}.",
            )
        return [
            SourceEntry(
                f"{log.name}#{test.number}",
                partial(self._opened, path, log, test, options),
                test.name,
            )
            for test in tests
        ]

    def _opened(
        self, path: str, log: CheckerLog, test: LoggedTest, options: ImportOptions
    ) -> Source:
        from hccl_interop.checker_logs.imported import checker_verdict, import_test

        found = import_test(log, test, options)
        program = found.require()
        operator = make_operator(program.op.name)
        return LogSource(
            noun=self.noun,
            name=format_path(path),
            title=f"{log.name}#{test.number}",
            ranks=program.ranks,
            op_name=program.op.name,
            usual_size=operator.data_size(program.op, program.ranks),
            executor=program.executor or self.noun,
            has_op=program.has_op,
            found=found,
            verdict=checker_verdict(test),
        )

    def writes(self, path: str) -> bool:
        """Return True for `.log`."""
        return path.lower().endswith(".log")

    def check_target(self, path: str) -> None:
        """Refuse a path in whose place another kind of file stands."""
        from hccl_interop.checker_logs.log import LOG

        check_place(path, LOG)

    def write(self, program: Program, path: str, options: WriterOptions) -> None:
        """Write a log as HCCL's checker prints it."""
        from hccl_interop.checker_logs import LOG, to_log

        write_file(path, to_log(program).encode("ascii"), LOG)


def _parts(path: str) -> tuple[str, str | None]:
    """Return the file and the test that a path names."""
    if os.path.exists(path) or "#" not in path:
        return path, None
    file, _, test = path.rpartition("#")
    return file, test


def _is_meant(test: LoggedTest, wanted: str) -> bool:
    if wanted.isdecimal() and len(wanted) < 10:
        return test.number == int(wanted)
    case = test.name.partition(".")[2]
    return any(fnmatchcase(name, wanted) for name in (test.name, case))
