"""`hccl-py check`: find the errors of programs and executors without running them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from hccl_py.cli.errors import WRONG, say_error, say_problems
from hccl_py.cli.grouping import grouped, only
from hccl_py.cli.options import (
    ALGO,
    BUFFSIZE,
    CALLS,
    DEVICES,
    DTYPE,
    IMPLEMENTED_OP,
    MAX_SIZE,
    MINBYTES,
    MODE,
    RANKS,
    REDUCE_OP,
    ROOT,
    SERVERS,
    SUPERPODS,
    TOPOLOGY,
    Output,
    ProgramOptions,
    flag,
    given,
    here,
    one_of,
    option,
)

if TYPE_CHECKING:
    from hccl_py.cli.check_report import JsonReports, TextReports
    from hccl_py.cli.check_targets import Target
    from hccl_py.enums import InPlace, Mode
    from hccl_py.errors import HcclError
    from hccl_py.program.program import Program
    from hccl_py.topology.presets import Product
    from hccl_py.verifier import Options, Report
    from hccl_py.verifier.sweeps.cases import Cases

    VerdictLine = Callable[[Report], str]

T = TypeVar("T")

SEEDS = 8
"""Interleavings of every kind in which --numeric runs a program; a sweep takes fewer per call."""


@dataclass(frozen=True)
class _Demands:
    """The conditions under which programs are verified."""

    repeat: Annotated[int, option("--repeat", "N", "Copies of the op, 1 to 64.", min=1, max=64)] = 2
    in_place: Annotated[
        str | None,
        option(
            "--in-place",
            "[start|slot]",
            "Input and output in the same memory: at the start, in the rank's slot; or all.",
        ),
    ] = None
    deterministic: Annotated[
        bool, flag("--deterministic", "Sums in no fixed order are errors.")
    ] = False
    numeric: Annotated[bool, flag("--numeric", "Also run with data, in many interleavings.")] = (
        False
    )
    product: Annotated[
        str | None, option("--product", "PRESET", "Check this product's limits, too.")
    ] = None

    def options(self) -> Options:
        """Return the verifier's options."""
        from hccl_py.verifier import Options

        in_place, product = _in_place(self.in_place), _product(self.product)
        return Options(self.repeat, in_place, self.deterministic, product)


@dataclass(frozen=True)
class Narrowing:
    """The calls of an executor that are verified; options left out are the sweep's choice."""

    ranks: Annotated[
        str | None, here(RANKS, metavar="N,...", help="Only these numbers of ranks: 4,8.")
    ] = None
    servers: Annotated[int | None, here(SERVERS, help="Only this number of servers.")] = None
    devices: Annotated[int | None, DEVICES] = None
    superpods: Annotated[int | None, here(SUPERPODS, help="Superpods, of S servers each.")] = None
    algo: Annotated[str | None, here(ALGO, help="Only these of the levels that are open.")] = None
    topology: Annotated[
        str | None,
        here(TOPOLOGY, help="Only this product, network such as torus:4x4, or the file of one."),
    ] = None
    count: Annotated[str | None, option("--count", "N,...", "Only these counts of elements.")] = (
        None
    )
    dtype: Annotated[str | None, here(DTYPE, metavar="TYPE,...", help="Only these data types.")] = (
        None
    )
    reduce_op: Annotated[
        str | None, here(REDUCE_OP, metavar="OP,...", help="Only these: sum,max.")
    ] = None
    mode: Annotated[str | None, here(MODE, help="Only op_base, or only graph.")] = None
    root: Annotated[str | None, here(ROOT, metavar="RANK,...", help="Only these roots.")] = None
    buffsize: Annotated[int | None, here(BUFFSIZE, help="Each CCL buffer.")] = None

    def cases(self, *, in_place: bool | InPlace) -> Cases:
        """Return the cases that the options leave; ParameterError where one makes no sense."""
        from hccl_py.call.call_spec import ClusterSpec
        from hccl_py.call.config import Config
        from hccl_py.enums import DataType, ReduceOp
        from hccl_py.operators.base import MAX_COUNT
        from hccl_py.topology.presets import MAX_RANKS
        from hccl_py.verifier.sweeps.cases import Cases

        config = Config.load({}, buffsize_mb=self.buffsize)
        ranks = self.numbers_of_ranks()
        for size in ranks or (None,):  # raises where there is no such topology
            place = size, self.servers, self.devices, self.superpods
            ClusterSpec(self.topology, None, *place).build(config)
        return Cases(
            ranks=ranks,
            servers=self.servers,
            devices=self.devices,
            superpods=self.superpods,
            algo=self.algo or "",
            topology=self.topology,
            counts=_numbers(self.count, "--count", 0, MAX_COUNT),
            dtypes=_listed(self.dtype, DataType.parse),
            reduce_ops=_listed(self.reduce_op, ReduceOp.parse),
            modes=_listed(self.mode, _mode),
            roots=_numbers(self.root, "-r/--root", 0, MAX_RANKS - 1),
            in_place=in_place or None,
            buffsize=self.buffsize,
        )

    def numbers_of_ranks(self) -> tuple[int, ...]:
        """Return the numbers that `--ranks` lists; empty where it is left out."""
        from hccl_py.topology.presets import MAX_RANKS

        return _numbers(self.ranks, "--ranks", 1, MAX_RANKS)

    def first_call(self, options: ProgramOptions) -> ProgramOptions:
        """Return the call for which sources are imported: with the first word of each list."""
        first = {
            name: text.split(",")[0].strip()
            for name in ("dtype", "reduce_op", "root")
            if (text := getattr(self, name)) is not None
        }
        return replace(
            options,
            servers=self.servers,
            devices=self.devices,
            superpods=self.superpods,
            topology=self.topology,
            buffsize=self.buffsize,
            algo=self.algo,
            mode=self.mode,
            dtype=first.get("dtype", options.dtype),
            reduce_op=first.get("reduce_op"),
            root=int(first["root"]) if "root" in first else None,
        )


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
        bool, flag("-v --verbose", "Show every finding and the tasks around it.")
    ] = False,
    of_sources: Annotated[
        ProgramOptions,
        only(
            cpp_op=IMPLEMENTED_OP,
            minbytes=here(
                MINBYTES,
                help="OP: this call alone, by the executor that is chosen; DIR, XML, PLAN: data "
                "size, 1M by default; LOG: else what tasks touch.",
            ),
            calls=here(CALLS, show_default=False),
        ),
    ],
    narrowing: Narrowing,
    output: Output,
) -> None:
    """Verify programs and executors.

    Races, deadlocks, wrong results, resources: every finding with its tasks, its source line and a
    suggested fix. An executor is verified over many calls; --ranks and the options below it
    restrict them; of an op and a size, or of a barrier, the executor that is chosen is verified in
    that call. A folder of C++ is built and recorded for one call, that of --op, -b and --ranks;
    an MSCCL algorithm is imported for that of --op, -b, -d, -o and -r; a log of HCCL's checker has
    a line for each test, and LOG#TEST has a report. Exit status 1 where errors are found.
    """
    from hccl_py.cli.check_report import JsonReports, TextReports

    options, seeds = demands.options(), SEEDS if demands.numeric else 0
    cases = narrowing.cases(in_place=options.in_place)
    found = _targets(targets, max_size, narrowing, of_sources)
    shown = JsonReports() if output.json else TextReports(verbose)
    failed = _show(found, lambda target: _verified(target, cases, options, seeds), shown)
    shown.end(len(failed))
    _raise_last(failed)
    if not shown.ok:
        raise typer.Exit(WRONG)


def _show(
    targets: Iterable[Target],
    verify: Callable[[Target], tuple[Report, VerdictLine | None]],
    shown: TextReports | JsonReports,
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


def _listed(text: str | None, parse: Callable[[str], T]) -> tuple[T, ...]:
    return tuple(parse(part.strip()) for part in text.split(",")) if text is not None else ()


def _numbers(text: str | None, option: str, low: int, high: int) -> tuple[int, ...]:
    from hccl_py.errors import ParameterError

    def number(part: str) -> int:
        if not re.fullmatch("[0-9]{1,19}", part) or not low <= int(part) <= high:
            raise ParameterError(
                f"{option} {text!r} is not a list of numbers from {low} to {high}.",
                f"For example {option.rpartition('/')[2]} 1,4.",
            )
        return int(part)

    return _listed(text, number)


def _mode(name: str) -> Mode:
    from hccl_py.enums import Mode

    return one_of("--mode", name, {mode.value: mode for mode in Mode})


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
    from hccl_py.topology import PRESETS

    return None if name is None else one_of("--product", name, PRESETS)


def _targets(
    names: list[str], max_size: str | None, narrowing: Narrowing, of_sources: ProgramOptions
) -> list[Target]:
    """Return the targets; every name and file is looked at before anything is verified."""
    from hccl_py.cli.check_targets import SourceCalls, find_targets
    from hccl_py.cli.sizes import parse_size
    from hccl_py.importers import installed_importers
    from hccl_py.plugins.discovery import installed_executors

    limit = None if max_size is None else parse_size(max_size, "--max-size")
    say_problems([*installed_executors().problems, *installed_importers().problems])
    calls = SourceCalls(narrowing.first_call(of_sources), narrowing.numbers_of_ranks(), limit)
    found, problems = find_targets(names, calls)
    _raise_last(problems)
    _refuse_untaken(found, [*given(narrowing)], [*given(of_sources)])
    return found


def _refuse_untaken(targets: list[Target], of_sweeps: list[str], of_sources: list[str]) -> None:
    """Refuse an option that no target takes."""
    from hccl_py.cli.sources import refuse_options
    from hccl_py.errors import ParameterError

    first = targets[0]
    for name in (*of_sweeps, *of_sources):
        if any(target.takes(name, of_sweeps) for target in targets):
            continue
        if first.importer is None and name in of_sweeps:
            raise ParameterError(
                f"--{name} narrows the calls of executors, and {first.name} is one call.",
                f"Leave --{name} out, or name executors.",
            )
        refuse_options([name], first.importer, first.name)


def _verified(
    target: Target, cases: Cases, options: Options, seeds: int
) -> tuple[Report, VerdictLine | None]:
    """Verify a target; return the report, and the function that makes one line of it."""
    from hccl_py.cli.output import Bar
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
