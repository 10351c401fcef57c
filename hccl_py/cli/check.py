"""`hccl-py check`: find everything that is wrong with programs and executors, without running
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Annotated

import typer

from hccl_py.cli.declared import MAX_SIZE
from hccl_py.cli.errors import WRONG, say_error, say_problems
from hccl_py.cli.folder_options import (
    Folders,
    algorithm_calls,
    check_folders,
    folder_calls,
    stated_ops,
)
from hccl_py.cli.grouping import grouped
from hccl_py.cli.narrowing import Narrowing, cases_of
from hccl_py.cli.options import Output

if TYPE_CHECKING:
    from hccl_py.cli.targets import Target
    from hccl_py.enums import InPlace
    from hccl_py.errors import HcclError
    from hccl_py.program.program import Program
    from hccl_py.topology.presets import Product
    from hccl_py.verifier import Options, Report
    from hccl_py.verifier.sweeps.cases import Cases

__all__ = ["command"]

_AT_ONCE = 1 << 16
"""Bytes of a report that are held in memory."""

SEEDS = 8
"""Interleavings of every kind in which --numeric runs a program; a sweep takes fewer per call."""


@dataclass(frozen=True)
class _Demands:
    """What programs have to stand."""

    repeat: Annotated[
        int,
        typer.Option("--repeat", metavar="N", min=1, max=64, help="Copies of the op, 1 to 64."),
    ] = 2
    in_place: Annotated[
        str | None,
        typer.Option(
            "--in-place",
            metavar="[start|slot]",
            help="Input and output in the same memory: at the start, in the rank's slot; or all.",
        ),
    ] = None
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="Sums in no fixed order are errors.")
    ] = False
    numeric: Annotated[
        bool,
        typer.Option("--numeric", help="Also run with data, in many interleavings."),
    ] = False
    product: Annotated[
        str | None,
        typer.Option("--product", metavar="PRESET", help="Check this product's limits, too."),
    ] = None

    def options(self) -> Options:
        """Return what the verifier is told."""
        from hccl_py.verifier import Options

        in_place, product = _in_place(self.in_place), _product(self.product)
        return Options(self.repeat, in_place, self.deterministic, product)


@grouped
def command(
    *,
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="TARGET",
            show_default=False,
            help="Program files, MSCCL XML files, plans of mscclpp, logs of HCCL's checker, ops, "
            "executors, module:Class from the current folder, or folders of custom ops in C++.",
        ),
    ],
    demands: _Demands,
    max_size: Annotated[str | None, MAX_SIZE] = None,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Show every finding and the tasks around it.")
    ] = False,
    folders: Folders,
    narrowing: Narrowing,
    output: Output,
) -> None:
    """Verify programs and executors.

    Races, deadlocks, wrong results, resources: every finding with its tasks, its source line and
    what would mend it. Of an executor many calls are verified; options from --ranks on narrow
    that. A folder of C++ is built and recorded for one call, that of --op, -b and --ranks; an MSCCL
    algorithm is imported for that of --op, -b, -d, -o and -r; of a log of HCCL's checker every test
    has a line, and one alone, LOG#TEST, a report. Exit status 1 where errors are found.
    """
    options, seeds = demands.options(), SEEDS if demands.numeric else 0
    cases = cases_of(narrowing, in_place=options.in_place)
    found = _targets(targets, max_size, narrowing, folders)
    shown = _Document() if output.json else _Text(verbose)
    failed = _show(found, lambda target: _verified(target, cases, options, seeds), shown)
    shown.end(len(failed))
    _raise_last(failed)
    if not shown.ok:
        raise typer.Exit(WRONG)


def _show(
    targets: Iterable[Target], verify: Callable[[Target], Report], shown: _Text | _Document
) -> list[HcclError]:
    """Show the reports on all targets; return why some of them could not be verified."""
    from hccl_py.errors import HcclError

    failed = []
    for target in targets:
        try:
            report = verify(target)
            if target.stands_for_op and not report.cases:
                shown.skip(target.name)
            elif target.is_one_of_many:
                shown.add_line(target, report)
            else:
                shown.add(report)
        except HcclError as error:  # the other targets are still verified
            failed.append(error)
    return failed


class _Text:
    """Every report as soon as it is there, and how many are fine."""

    def __init__(self, verbose: bool) -> None:
        from hccl_py.cli.output import Screen
        from hccl_py.verifier.terminal import Pen

        self._screen = Screen()
        self._pen = Pen(self._screen.console.width, self._screen.unicode, verbose)
        self._verdicts: list[bool] = []
        self._skipped = 0

    @property
    def ok(self) -> bool:
        """Whether no report has errors; one of nothing at all has."""
        return all(self._verdicts) and bool(self._verdicts)

    def skip(self, name: str) -> None:
        """Name an executor that suits none of the calls."""
        self._gap()
        self._skipped += 1
        self._screen.show(f"{name}: suits no such call")

    def add(self, report: Report) -> None:
        """Print a report."""
        from hccl_py.formats import format_path
        from hccl_py.verifier.terminal import draw_report

        self._gap()
        self._verdicts.append(report.ok)
        for line in draw_report(report.renamed(format_path(report.target)), self._pen):
            self._screen.show(line.text, style=line.style)

    def add_line(self, target: Target, report: Report) -> None:
        """Print a line about one of many; all of it where everything is wanted."""
        from hccl_py.cli.checker_logs import LogTest

        if self._pen.verbose:
            self.add(report)
            return
        assert isinstance(target.subject, LogTest)
        self._verdicts.append(report.ok)
        self._screen.show(target.subject.line(report), style="green" if report.ok else "bold red")

    def _gap(self) -> None:
        if self._verdicts or self._skipped:
            self._screen.show()

    def end(self, failed: int) -> None:
        """Print how the targets did, where there are several."""
        total = len(self._verdicts) + self._skipped + failed
        if total < 2:
            return
        wrong = self._verdicts.count(False)
        parts = [f"{self._verdicts.count(True)} ok"]
        parts += [f"{wrong} with errors"] if wrong else []
        parts += [f"{self._skipped} suit no such call"] if self._skipped else []
        parts += [f"{failed} not verified"] if failed else []
        self._screen.show()
        self._screen.show(f"{total} targets: {', '.join(parts)}")


class _Document:
    """One JSON document at the end. Reports with all their findings wait in a file: they can be
    larger than memory, and what comes first in the document is known last.
    """

    def __init__(self) -> None:
        self._reports = SpooledTemporaryFile(max_size=1 << 24)  # noqa: SIM115 - closed at the end
        self._ends = [0]
        self._verdicts: list[bool] = []
        self._skipped: list[str] = []

    @property
    def ok(self) -> bool:
        """Whether no report has errors; one of nothing at all has."""
        return all(self._verdicts) and bool(self._verdicts)

    def skip(self, name: str) -> None:
        """Keep the name of an executor that suits none of the calls."""
        self._skipped.append(name)

    def add(self, report: Report) -> None:
        """Keep a report."""
        self._verdicts.append(report.ok)
        self._reports.writelines(part.encode("ascii") for part in report.json())
        self._ends.append(self._reports.tell())

    def add_line(self, target: Target, report: Report) -> None:
        """Keep a report."""
        self.add(report)

    def end(self, failed: int) -> None:
        """Print the document."""
        from hccl_py.cli.output import print_json

        ok = self.ok and not failed
        head = {"schema": "hccl-py.check/1", "ok": ok, "unsuited": self._skipped}
        with self._reports:
            self._reports.seek(0)
            print_json(head, reports=map(self._text, pairwise(self._ends)))

    def _text(self, ends: tuple[int, int]) -> Iterator[str]:
        """Yield the text of the next report."""
        for begin in range(*ends, _AT_ONCE):
            yield self._reports.read(min(_AT_ONCE, ends[1] - begin)).decode("ascii")


def _in_place(word: str | None) -> bool | InPlace:
    """Return what `--in-place` says; alone it means all ways."""
    from hccl_py.enums import InPlace
    from hccl_py.errors import ParameterError

    ways: dict[str | None, bool | InPlace] = {None: False, "all": True}
    ways |= {way.value: way for way in InPlace}
    if word not in ways:
        raise ParameterError(
            f"--in-place {word!r} is unknown.", "Give start or slot; alone it means all ways."
        )
    return ways[word]


def _product(name: str | None) -> Product | None:
    from hccl_py.errors import ParameterError, did_you_mean
    from hccl_py.topology import PRESETS

    if name is not None and name not in PRESETS:
        raise ParameterError(f"--product {name!r} is unknown.", did_you_mean(name, PRESETS))
    return PRESETS[name] if name is not None else None


def _targets(
    names: list[str], max_size: str | None, narrowing: Narrowing, folders: Folders
) -> list[Target]:
    """Return what is to be verified; every name and file is looked at before anything runs."""
    from hccl_py.cli.sizes import parse_size
    from hccl_py.cli.targets import find_targets
    from hccl_py.discovery import installed_executors
    from hccl_py.errors import ParameterError
    from hccl_py.formats import format_path

    limit = None if max_size is None else parse_size(max_size, "--max-size")
    say_problems(installed_executors().problems)
    found, problems = find_targets(
        names,
        limit,
        folder_calls(folders, narrowing),
        algorithm_calls(folders, narrowing),
        stated_ops(folders, narrowing),
    )
    _raise_last(problems)
    check_folders(folders, names)
    left = narrowing
    if any(target.is_imported for target in found):  # these are of its call
        left = replace(narrowing, dtype=None, reduce_op=None, root=None)
    if left.is_given and all(target.is_program or target.is_imported for target in found):
        raise ParameterError(
            f"There is no sweep to narrow: {format_path(found[0].name)} is one program.",
            "Leave the options from --ranks on out, or name an executor.",
        )
    return found


def _verified(target: Target, cases: Cases, options: Options, seeds: int) -> Report:
    from hccl_py.checker_logs import CheckedTest
    from hccl_py.cli.checker_logs import LogTest
    from hccl_py.cli.progress import Bar
    from hccl_py.cpp import Recording
    from hccl_py.msccl import Imported
    from hccl_py.mscclpp import ImportedPlan
    from hccl_py.program.program import Program
    from hccl_py.verifier import verify_program
    from hccl_py.verifier.sweeps.sweep import verify_executor

    subject = target.subject.read() if isinstance(target.subject, LogTest) else target.subject
    if isinstance(subject, Recording | Imported | ImportedPlan | CheckedTest):
        report = subject.report(options).renamed(target.name)
        program = subject.program
        return _run_with_data(program, report, options, seeds) if seeds and program else report
    if isinstance(subject, Program):
        report = verify_program(subject, options, target.name)
        return _run_with_data(subject, report, options, seeds) if seeds else report
    with Bar(target.name) as bar:
        report = verify_executor(subject, cases, options, progress=bar.advance_to, seeds=seeds)
    return report.renamed(target.name)


def _run_with_data(program: Program, report: Report, options: Options, seeds: int) -> Report:
    """Return the report with the second opinion, or with the reason why there is none."""
    from hccl_py.errors import NotSupportedError
    from hccl_py.verifier.numeric import run_numeric

    try:
        numeric = run_numeric(program, seeds=seeds, in_place=options.in_place)
    except NotSupportedError as error:
        return replace(report, notes=(*report.notes, f"not run with data: {error.message}"))
    return replace(report, numeric=numeric)


def _raise_last(problems: list[HcclError]) -> None:
    """Say every problem once; the last one as any command says its only one."""
    once = list({(problem.message, problem.hint): problem for problem in problems}.values())
    for problem in once[:-1]:
        say_error(problem.message, problem.hint)
    if once:
        raise once[-1]
