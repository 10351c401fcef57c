"""What `hccl-py run` says: a table in hccl_test's columns, or one JSON document."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol

from hccl_py.cli.call import describe_topology, document_of_call
from hccl_py.cli.errors import WrongResultError
from hccl_py.cli.output import format_levels, print_json
from hccl_py.cli.request import describe_op
from hccl_py.cli.streams import results, say

if TYPE_CHECKING:
    from hccl_py.cli.options import Output
    from hccl_py.cli.runs import Runs
    from hccl_py.communicator.measurement import SizeResult

SHOW_FIRST_WRONG = 2
"""The value of -c that shows it."""

HEADER = "data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:"
"""hccl_test's own words: logs of one can be read like logs of the other."""

WIDTHS = [len(column) for column in HEADER.split(" | ")]


def report(runs: Runs, output: Output) -> None:
    """Run everything, and say what was measured: in one process, where there are several."""
    with runs.request.comm as comm:
        local = comm.local_ranks  # opens the session: the platform looks at the schedule
        if runs.measuring.timeline is not None:
            runs.write_timeline(runs.measuring.timeline)
        said: _Report = _JsonReport(runs) if output.json else _TextReport(runs)
        if local.start > 0:
            said = _NoReport()
        said.begin()
        for row in runs.rows():
            said.row(row)
        said.end()
        results().flush()


class _Report(Protocol):
    """What is said of the rows, while they are measured and at the end."""

    def begin(self) -> None:
        """Say what is measured."""

    def row(self, row: SizeResult) -> None:
        """Take a row in."""

    def end(self) -> None:
        """Say what was found; WrongResultError where a row is wrong."""


class _NoReport:
    """What other processes say: rank 0 speaks for all of them."""

    def begin(self) -> None:
        """Say nothing."""

    def row(self, row: SizeResult) -> None:
        """Say nothing."""

    def end(self) -> None:
        """Say nothing: rank 0 knows of every rank's wrong elements."""


class _TextReport:
    """A title, one line per row as soon as it is measured, and what was shown by it."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._executor = ""
        self._rows: list[SizeResult] = []

    def begin(self) -> None:
        """Print what is measured, and the head of the table."""
        runs = self._runs
        request, op = runs.request, runs.request.op(runs.sizes[0])
        say(f"{describe_op(op)} {op.dtype.value}, {op.mode.value}")
        say(describe_topology(request.topology))
        selection = request.select(op)
        self._executor = selection.executor
        say(request.describe_executor(selection))
        say(f"platform {request.platform}{_format_interleaving(runs)}: {_clock(runs)}")
        say(
            f"the minbytes is {request.minbytes}, maxbytes is {runs.maxbytes}, "
            f"iters is {runs.measuring.iters}, warmup_iters is {runs.measuring.warmup}"
        )
        say(HEADER, flush=True)

    def row(self, row: SizeResult) -> None:
        """Print a row, before it the executor where it changes."""
        if row.executor != self._executor:
            self._executor = row.executor
            levels = format_levels(row.algorithm)
            say(f"from here on {row.executor}, {levels}")
        self._rows.append(row)
        cells = (str(row.bytes), f"{row.time_us:.2f}", f"{row.algbw_gbps:.5g}", row.check)
        line = " | ".join(f"{cell:<{width}}" for cell, width in zip(cells, WIDTHS, strict=True))
        say(line.rstrip(), flush=True)
        if row.first_wrong and self._runs.measuring.check == SHOW_FIRST_WRONG:
            say(f"  {row.first_wrong}")

    def end(self) -> None:
        """Say what was shown, or raise."""
        _raise_if_wrong(self._runs, self._rows)
        if self._runs.measuring.check:
            say("checked: every element at every rank is right, to the last bit")


class _JsonReport:
    """One document at the end."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._rows: list[SizeResult] = []

    def begin(self) -> None:
        """Print nothing yet."""

    def row(self, row: SizeResult) -> None:
        """Keep a row."""
        self._rows.append(row)

    def end(self) -> None:
        """Print the document; raise where a row is wrong."""
        runs = self._runs
        op = runs.request.op(runs.sizes[0])
        print_json(
            {
                "schema": "hccl-py.run/1",
                **document_of_call(runs.request, op),
                "platform": runs.request.platform,
                "schedule": _schedule_document(runs),
                "clock": runs.request.comm.clock,
                "iters": runs.measuring.iters,
                "warmup_iters": runs.measuring.warmup,
                "rows": [_document(row) for row in self._rows],
            }
        )
        _raise_if_wrong(runs, self._rows)


def _document(row: SizeResult) -> dict[str, Any]:
    document: dict[str, Any] = {
        "bytes": row.bytes,
        "count": row.count,
        "executor": row.executor,
        "algorithm": dict(row.algorithm),
        "time_us": row.time_us,
        "algbw_gbps": row.algbw_gbps,
        "busbw_gbps": row.busbw_gbps,
        "check": row.check,
    }
    if row.first_wrong:
        document["first_wrong"] = asdict(row.first_wrong)
    return document


def _raise_if_wrong(runs: Runs, rows: list[SizeResult]) -> None:
    wrong = [row for row in rows if row.check == "failed"]
    if not wrong:
        return
    shown = runs.measuring.check == SHOW_FIRST_WRONG
    raise WrongResultError(
        f"The result is wrong for {len(wrong)} of {len(rows)} sizes.",
        "The first wrong element is shown above; `hccl-py trace` shows the tasks."
        if shown
        else "-c 2 shows the first wrong element.",
    )


def _clock(runs: Runs) -> str:
    if runs.request.comm.clock != "wall":
        return "times are those of its model"
    if runs.request.platform == "emulated":
        return "times are wall time of the emulation on this machine, not of NPUs"
    return "times are wall time"


def _format_interleaving(runs: Runs) -> str:
    schedule = runs.schedule
    if schedule is None:
        return ""
    slow = f" with {', '.join(schedule.slow.options())}" if schedule.slow else ""
    return f", {schedule.adversary.value} interleaving {schedule.seed}{slow}"


def _schedule_document(runs: Runs) -> dict[str, Any] | None:
    schedule = runs.schedule
    if schedule is None:
        return None
    return {
        "seed": schedule.seed,
        "adversary": schedule.adversary.value,
        "slow": schedule.slow.options(),
    }
