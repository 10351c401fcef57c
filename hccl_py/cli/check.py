"""`hccl-py check`: find the errors of programs and executors without running them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass, fields, replace
from itertools import pairwise
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Annotated

import typer

from hccl_py.cli.declared import CALLS, IMPLEMENTED_OP, MAX_SIZE, MINBYTES, here
from hccl_py.cli.errors import WRONG, say_error, say_problems
from hccl_py.cli.grouping import grouped
from hccl_py.cli.narrowing import Narrowing, cases_of
from hccl_py.cli.options import Output

if TYPE_CHECKING:
    from hccl_py.cli.targets import SourceCalls, Target
    from hccl_py.enums import InPlace
    from hccl_py.errors import HcclError
    from hccl_py.program.program import Program
    from hccl_py.topology.presets import Product
    from hccl_py.verifier import Options, Report
    from hccl_py.verifier.sweeps.cases import Cases

    VerdictLine = Callable[[Report], str]

_AT_ONCE = 1 << 16
"""Bytes of a report that are held in memory."""

SEEDS = 8
"""Interleavings of every kind in which --numeric runs a program; a sweep takes fewer per call."""


@dataclass(frozen=True)
class _Demands:
    """The conditions under which programs are verified."""

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
        """Return the verifier's options."""
        from hccl_py.verifier import Options

        in_place, product = _in_place(self.in_place), _product(self.product)
        return Options(self.repeat, in_place, self.deterministic, product)


@dataclass(frozen=True)
class _OfSources:
    """The call for which sources are imported, beside the options that narrow a sweep."""

    cpp_op: Annotated[str | None, IMPLEMENTED_OP] = None
    minbytes: Annotated[
        str | None,
        here(
            MINBYTES, help="DIR, XML, PLAN: data size, 1M by default; LOG: else what tasks touch."
        ),
    ] = None
    calls: Annotated[int | None, CALLS] = None


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
    of_sources: _OfSources,
    narrowing: Narrowing,
    output: Output,
) -> None:
    """Verify programs and executors.

    Races, deadlocks, wrong results, resources: every finding with its tasks, its source line and a
    suggested fix. An executor is verified over many calls; --ranks and the options below it
    restrict them. A folder of C++ is built and recorded for one call, that of --op, -b and --ranks;
    an MSCCL algorithm is imported for that of --op, -b, -d, -o and -r; a log of HCCL's checker has
    a line for each test, and LOG#TEST has a report. Exit status 1 where errors are found.
    """
    options, seeds = demands.options(), SEEDS if demands.numeric else 0
    cases = cases_of(narrowing, in_place=options.in_place)
    found = _targets(targets, max_size, narrowing, of_sources)
    shown = _Document() if output.json else _Text(verbose)
    failed = _show(found, lambda target: _verified(target, cases, options, seeds), shown)
    shown.end(len(failed))
    _raise_last(failed)
    if not shown.ok:
        raise typer.Exit(WRONG)


def _show(
    targets: Iterable[Target],
    verify: Callable[[Target], tuple[Report, VerdictLine | None]],
    shown: _Text | _Document,
) -> list[HcclError]:
    """Show the reports on all targets; return the errors of those that could not be verified."""
    from hccl_py.errors import HcclError

    failed = []
    for target in targets:
        try:
            report, line = verify(target)
            if target.stands_for_op and not report.cases:
                shown.skip(target.name)
            elif target.is_one_of_many and line is not None:
                shown.add_line(line(report), report)
            else:
                shown.add(report)
        except HcclError as error:  # the other targets are still verified
            failed.append(error)
    return failed


class _Text:
    """Reports as soon as they are made, and the number of targets without errors."""

    def __init__(self, verbose: bool) -> None:
        from hccl_py.cli.output import Screen
        from hccl_py.verifier.terminal import Pen

        self._screen = Screen()
        self._pen = Pen(self._screen.console.width, self._screen.unicode, verbose)
        self._verdicts: list[bool] = []
        self._skipped = 0

    @property
    def ok(self) -> bool:
        """True if there are reports and none has errors."""
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

    def add_line(self, line: str, report: Report) -> None:
        """Print the line about one of many sources; with --verbose its report."""
        if self._pen.verbose:
            self.add(report)
            return
        self._verdicts.append(report.ok)
        self._screen.show(line, style="green" if report.ok else "bold red")

    def _gap(self) -> None:
        if self._verdicts or self._skipped:
            self._screen.show()

    def end(self, failed: int) -> None:
        """Print the number of targets with each verdict, where there are several."""
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
    """One JSON document at the end. Reports wait in a file: they can be larger than memory, and the
    first key of the document, the verdict, is known last.
    """

    def __init__(self) -> None:
        self._reports = SpooledTemporaryFile(max_size=1 << 24)  # noqa: SIM115 - closed at the end
        self._ends = [0]
        self._verdicts: list[bool] = []
        self._skipped: list[str] = []

    @property
    def ok(self) -> bool:
        """True if there are reports and none has errors."""
        return all(self._verdicts) and bool(self._verdicts)

    def skip(self, name: str) -> None:
        """Keep the name of an executor that suits none of the calls."""
        self._skipped.append(name)

    def add(self, report: Report) -> None:
        """Keep a report."""
        self._verdicts.append(report.ok)
        self._reports.writelines(part.encode("ascii") for part in report.json())
        self._ends.append(self._reports.tell())

    def add_line(self, line: str, report: Report) -> None:
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
    """Return the layouts in memory that `--in-place` names; alone it means all of them."""
    from hccl_py.enums import InPlace
    from hccl_py.errors import ParameterError

    layouts: dict[str | None, bool | InPlace] = {None: False, "all": True}
    layouts |= {layout.value: layout for layout in InPlace}
    if word not in layouts:
        raise ParameterError(
            f"--in-place {word!r} is unknown.", "Give start or slot; alone it means both."
        )
    return layouts[word]


def _product(name: str | None) -> Product | None:
    from hccl_py.errors import ParameterError, did_you_mean
    from hccl_py.topology import PRESETS

    if name is not None and name not in PRESETS:
        raise ParameterError(f"--product {name!r} is unknown.", did_you_mean(name, PRESETS))
    return PRESETS[name] if name is not None else None


def _targets(
    names: list[str], max_size: str | None, narrowing: Narrowing, of_sources: _OfSources
) -> list[Target]:
    """Return the targets; every name and file is looked at before anything is verified."""
    from hccl_py.cli.sizes import parse_size
    from hccl_py.cli.targets import find_targets
    from hccl_py.importers import installed_importers
    from hccl_py.plugins.discovery import installed_executors

    limit = None if max_size is None else parse_size(max_size, "--max-size")
    say_problems([*installed_executors().problems, *installed_importers().problems])
    found, problems = find_targets(names, _calls(limit, narrowing, of_sources))
    _raise_last(problems)
    _refuse_untaken(found, narrowing, of_sources)
    return found


def _calls(limit: int | None, narrowing: Narrowing, of_sources: _OfSources) -> SourceCalls:
    """Return the calls for which sources are imported: the first of lists, but all of `--ranks`."""
    from hccl_py.cli.narrowing import numbers_of_ranks
    from hccl_py.cli.options import CallOptions
    from hccl_py.cli.request import import_options
    from hccl_py.cli.targets import SourceCalls

    first = {
        name: None if text is None else text.split(",")[0].strip()
        for name in ("dtype", "reduce_op", "root")
        for text in (getattr(narrowing, name),)
    }
    options = CallOptions(
        op="",
        servers=narrowing.servers,
        devices=narrowing.devices,
        superpods=narrowing.superpods,
        topology=narrowing.topology,
        buffsize=narrowing.buffsize,
        dtype=first["dtype"] or "fp32",
        reduce_op=first["reduce_op"],
        root=None if first["root"] is None else int(first["root"]),
        minbytes=of_sources.minbytes,
    )
    call = replace(
        import_options(options, limit), op=of_sources.cpp_op, calls=of_sources.calls or 1
    )
    return SourceCalls(call, options, numbers_of_ranks(narrowing) or (None,))


def _refuse_untaken(targets: list[Target], narrowing: Narrowing, of_sources: _OfSources) -> None:
    """Refuse an option that no target takes: executors take those that narrow a sweep, sources
    those of their importer.
    """
    from hccl_py.cli.request import refuse_options

    groups = narrowing, of_sources
    given = {
        field.name: group
        for group in groups
        for field, value in zip(fields(group), astuple(group), strict=True)
        if value is not None
    }
    for name, group in given.items():
        if not any(
            group is narrowing if target.importer is None else name in target.importer.takes
            for target in targets
        ):
            refuse_options([name], targets[0].importer, targets[0].name)


def _verified(
    target: Target, cases: Cases, options: Options, seeds: int
) -> tuple[Report, VerdictLine | None]:
    """Verify a target; return the report, and the function that makes one line of it."""
    from hccl_py.cli.progress import Bar
    from hccl_py.verifier.sweeps.sweep import verify_executor

    if target.imported is not None:
        imported = target.imported()
        report = imported.report(options).renamed(target.name)
        if seeds and imported.program is not None:
            report = _run_with_data(imported.program, report, options, seeds)
        return report, imported.verdict_line
    assert target.executor is not None
    with Bar(target.name) as bar:
        report = verify_executor(
            target.executor, cases, options, progress=bar.advance_to, seeds=seeds
        )
    return report.renamed(target.name), None


def _run_with_data(program: Program, report: Report, options: Options, seeds: int) -> Report:
    """Return the report with the results of runs with data, or with a note on their absence."""
    from hccl_py.errors import NotSupportedError
    from hccl_py.verifier.numeric import run_numeric

    try:
        numeric = run_numeric(program, seeds=seeds, in_place=options.in_place)
    except NotSupportedError as error:
        return replace(report, notes=(*report.notes, f"not run with data: {error.message}"))
    return replace(report, numeric=numeric)


def _raise_last(problems: list[HcclError]) -> None:
    """Print every problem once; raise the last one."""
    once = list({(problem.message, problem.hint): problem for problem in problems}.values())
    for problem in once[:-1]:
        say_error(problem.message, problem.hint)
    if once:
        raise once[-1]
