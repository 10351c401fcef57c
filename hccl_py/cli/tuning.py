"""`hccl-py tuning`: a tuning table, held against HCCL's rules, or as rules of a tuner plugin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hccl_py.cli.compare import Candidates
from hccl_py.cli.grouping import grouped, only, without
from hccl_py.cli.options import (
    COST,
    NETWORK,
    PLATFORM,
    CallOptions,
    Output,
    Sizes,
    TimeModel,
    flag,
    given,
    option,
)

if TYPE_CHECKING:
    from rich.table import Table

    from hccl_py.tuning.table import Sample, SizeRange, TuningEntry, TuningTable

_OP = option("--op", "OP", "Time every executor of this op, and add the fastest to the table.")


@grouped
def command(
    *,
    file: Annotated[
        str, typer.Argument(metavar="FILE", show_default=False, help="A tuning table.")
    ],
    call: Annotated[
        CallOptions,
        without(
            *PLATFORM,
            *("executor", "select", "counts", "in_place", "strict_hccl"),
            op=_OP,
        ),
    ],
    sizes: Sizes,
    model: Annotated[TimeModel, only(cost=COST, network=NETWORK)],
    candidates: Candidates,
    differing: Annotated[
        bool, flag("--differing", "Only ranges where HCCL's rules choose otherwise.")
    ] = False,
    to: Annotated[
        str | None,
        option(
            "--to",
            "FORM",
            "Rules instead: hccl-tuner (JSON for HCCL's example plugin), hccl-plugin (a plugin in "
            "C++), nccl-csv, rccl-csv.",
        ),
    ] = None,
    out: Annotated[
        str | None, option("-o --out", "PATH", "With --to: the file, or the plugin's folder.")
    ] = None,
    output: Output,
) -> None:
    """Make a tuning table with --op, or show one; and where it differs from HCCL's rules; or write
    it as rules.

    Per range of sizes: the fastest executor, what HCCL's rules choose at the sizes that were timed,
    and the ratio of its time to the fastest by the cost model. With --op, every executor that suits
    is timed at sizes from -b to -e first, as `compare` does. --to writes the ranges as rules of a
    tuner plugin, and says what the rules cannot say.
    """
    from hccl_py.cli.output import print_json
    from hccl_py.tuning.table import TuningTable

    if call.op:
        _make(file, call, sizes, model, candidates)
    else:
        _refuse_without_op(call, sizes, model, candidates)
    table = TuningTable.read(file)
    if to is not None or out is not None:
        _write_rules(table, to, out, output)
        return
    if output.json:
        print_json(_document(table, file), ranges=_rows(table, differing))
    else:
        _show(table, differing)


def _show(table: TuningTable, differing: bool) -> None:
    from hccl_py.cli.output import Screen

    screen = Screen()
    for number, entry in enumerate(table.entries):
        if number:
            screen.show()
        screen.show(_title(entry))
        screen.show(_by_model(entry))
        screen.show(_drawn(entry, differing))
    if not table.entries:
        screen.show("The table has no entries.")


def _make(
    file: str, call: CallOptions, sizes: Sizes, model: TimeModel, candidates: Candidates
) -> None:
    """Time the executors of a call, and add the fastest ones to the table."""
    from hccl_py.cli.compare import Files
    from hccl_py.cli.compare_report import check_files, compared, write_files

    files = Files(table=file)
    check_files(files, model)
    found = compared(call, sizes, model, candidates, None, every=False)
    if found.is_partial:
        raise KeyboardInterrupt
    write_files(files, found)


def _refuse_without_op(*groups: object) -> None:
    """Refuse options about times to take where no op says of what."""
    from hccl_py.errors import ParameterError

    for name in (name for group in groups for name in given(group)):
        raise ParameterError(
            f"--{name.replace('_', '-')} is about a table to make.",
            "Add --op, such as --op all_reduce.",
        )


def _document(table: TuningTable, file: str) -> dict[str, Any]:
    return {
        "schema": "hccl-py.tuning-report/1",
        "file": file,
        "entries": len(table.entries),
        "costs": [cost.name for cost in table.costs],
    }


def _rows(table: TuningTable, differing: bool) -> Iterator[dict[str, Any]]:
    """Yield one row for each range of every entry."""
    for entry in table.entries:
        about = entry.model_dump(mode="json", exclude={"ranges"})
        for found, last in _bounded(entry):
            if differing and not found.differs:
                continue
            yield {
                **about,
                "from_bytes": found.from_bytes,
                "to_bytes": last,
                "executor": found.executor,
                "levels": found.levels,
                "differs": found.differs,
                "samples": [
                    sample.model_dump(mode="json") | {"times_longer": sample.gain}
                    for sample in found.samples
                ],
            }


def _bounded(entry: TuningEntry) -> Iterator[tuple[SizeRange, int | None]]:
    """Yield ranges with the last size of each; None: no end."""
    for found, after in zip(entry.ranges, [*entry.ranges[1:], None], strict=True):
        yield found, None if after is None else after.from_bytes - 1


def _title(entry: TuningEntry) -> str:
    reduce = f" {entry.reduce_op}" if entry.reduce_op else ""
    deterministic = (
        "" if entry.deterministic == "false" else f", deterministic {entry.deterministic}"
    )
    return (
        f"{entry.op}{reduce}, {entry.dtype}, {entry.mode}{deterministic}, "
        f"buffers of {entry.buffsize_mb}M, on {entry.topology}"
    )


def _by_model(entry: TuningEntry) -> str:
    rules = f"; rules of {entry.ruleset}" if entry.ruleset else ""
    return f"timed {entry.network} by the cost model {entry.cost}{rules}"


def _drawn(entry: TuningEntry, differing: bool) -> Table | str:
    """Return a line for each range, and below it one for each size that was timed."""
    from rich.table import Table

    from hccl_py.trace.units import format_size

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("bytes", "timed at", "time us", "HCCL us", "ratio"):
        table.add_column(name, justify="right")
    table.add_column("executor", overflow="fold")
    for found in entry.ranges:
        if differing and not found.differs:
            continue
        name = " ".join([found.executor, *found.levels.values()])
        above = f"over {format_size(found.from_bytes - 1)}" if found.from_bytes else "from 0"
        table.add_row(above, "", "", "", "", name)
        for sample in found.samples:
            table.add_row("", *_cells(found, sample))
    return table if table.row_count else "HCCL's rules choose the same everywhere."


def _cells(found: SizeRange, sample: Sample) -> list[str]:
    from hccl_py.trace.units import format_size, format_time

    rules = " ".join([sample.hccl_executor, *sample.hccl_levels.values()])
    return [
        format_size(sample.bytes),
        format_time(sample.simulated_us),
        "" if sample.hccl_us is None else format_time(sample.hccl_us),
        "" if sample.gain is None else f"{sample.gain:.2f}",
        "as HCCL's rules" if found.is_hccl(sample) else f"not {rules}",
    ]


def _write_rules(table: TuningTable, form: str | None, out: str | None, output: Output) -> None:
    """Write the rules of a form, and say what they cannot say."""
    from hccl_py.cli.output import Screen, counted, print_json
    from hccl_py.documents.disk import write_file
    from hccl_py.errors import ParameterError, did_you_mean
    from hccl_py.scaffold.project import check_target, target_of, write_project
    from hccl_py.tuning.hccl_tuner import tuner_json, tuner_plugin
    from hccl_py.tuning.nccl_tuner import tuner_csv
    from hccl_py.tuning.tuner_rules import RULES

    texts = {"hccl-tuner": tuner_json, "nccl-csv": tuner_csv, "rccl-csv": tuner_csv}
    known = ("hccl-plugin", *texts)
    if form is None:
        raise ParameterError("-o needs a form of rules.", f"--to names one of {', '.join(known)}.")
    if form not in known:
        raise ParameterError(f"--to {form!r} is no form of rules.", did_you_mean(form, known))
    if out is None:
        raise ParameterError("The rules have no place.", "Name the file or folder: -o PATH.")
    if form == "hccl-plugin":
        target = target_of(out, "-o")
        check_target(target, "-o")
        files, count, unsaid = tuner_plugin(table)
        write_project(files, target, "-o")
    else:
        text, count, unsaid = texts[form](table)
        write_file(out, text.encode(), RULES)
    if output.json:
        head = {"schema": "hccl-py.tuner-rules/1", "form": form, "path": out, "rules": count}
        print_json(head, unsaid=({"text": line} for line in unsaid))
        return
    screen = Screen()
    screen.show(f"{out}: {counted(count, 'rule')}")
    for line in unsaid:
        screen.show(f"  {line}")
