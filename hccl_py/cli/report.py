"""What `hccl-py run` prints: hccl_test's table for people, or one JSON document."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hccl_py.cli.call import spell_op, spell_topology
from hccl_py.cli.errors import WrongResultError
from hccl_py.cli.measure import Measurement, Row
from hccl_py.cli.output import print_json, spell_levels
from hccl_py.cli.streams import say

__all__ = ["JsonReport", "TextReport"]

SHOW_FIRST_WRONG = 2
"""The value of -c that shows it."""

HEADER = "data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:"
WIDTHS = [len(column) for column in HEADER.split(" | ")]


class TextReport:
    """A title, one line per row as soon as it is measured, and what was shown by it."""

    def __init__(self, measurement: Measurement) -> None:
        self._measurement = measurement
        self._executor = ""
        self._rows: list[Row] = []

    def begin(self) -> None:
        """Print what is measured, and the head of the table."""
        m = self._measurement
        request, op = m.request, m.request.op(m.sizes[0])
        say(f"{spell_op(op)} {op.dtype.value}, {op.mode.value}")
        say(spell_topology(request.topology))
        selection = request.select(op)
        self._executor = selection.executor
        say(f"{selection.executor}, {spell_levels(selection.algorithm)}")
        say(f"platform {request.platform}{_interleaving(m)}: {_clock(m)}")
        say(
            f"the minbytes is {request.minbytes}, maxbytes is {m.maxbytes}, "
            f"iters is {m.iters}, warmup_iters is {m.warmup}"
        )
        say(HEADER, flush=True)

    def row(self, row: Row) -> None:
        """Print a row, before it the executor where it changes."""
        if row.executor != self._executor:
            self._executor = row.executor
            say(f"from here on {row.executor}, {spell_levels(row.algorithm)}")
        self._rows.append(row)
        cells = (str(row.bytes), f"{row.time_us:.2f}", f"{row.algbw_gbps:.5g}", row.check)
        line = " | ".join(f"{cell:<{width}}" for cell, width in zip(cells, WIDTHS, strict=True))
        say(line.rstrip(), flush=True)
        if row.first_wrong and self._measurement.check == SHOW_FIRST_WRONG:
            say(f"  {row.first_wrong}")

    def end(self) -> None:
        """Say what was shown, or raise."""
        _raise_if_wrong(self._measurement, self._rows)
        if self._measurement.check:
            say("checked: every element at every rank is right, to the last bit")


class JsonReport:
    """One document at the end."""

    def __init__(self, measurement: Measurement) -> None:
        self._measurement = measurement
        self._rows: list[Row] = []

    def begin(self) -> None:
        """Print nothing yet."""

    def row(self, row: Row) -> None:
        """Keep a row."""
        self._rows.append(row)

    def end(self) -> None:
        """Print the document; raise where a row is wrong."""
        m = self._measurement
        op = m.request.op(m.sizes[0])
        print_json(
            {
                "schema": "hccl-py.run/1",
                "op": op.name,
                "ranks": m.request.topology.size,
                "topology": m.request.topology.description,
                "dtype": op.dtype.value,
                "reduce_op": None if op.reduce is None else op.reduce.spelling,
                "mode": op.mode.value,
                "platform": m.request.platform,
                "schedule": _schedule(m),
                "clock": m.request.comm.clock,
                "iters": m.iters,
                "warmup_iters": m.warmup,
                "rows": [_document(row) for row in self._rows],
            }
        )
        _raise_if_wrong(m, self._rows)


def _document(row: Row) -> dict[str, Any]:
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


def _raise_if_wrong(measurement: Measurement, rows: list[Row]) -> None:
    wrong = [row for row in rows if row.check == "failed"]
    if not wrong:
        return
    shown = measurement.check == SHOW_FIRST_WRONG
    raise WrongResultError(
        f"The result is wrong for {len(wrong)} of {len(rows)} sizes.",
        "The first wrong element is shown above; `hccl-py trace` shows the tasks."
        if shown
        else "-c 2 shows the first wrong element.",
    )


def _clock(measurement: Measurement) -> str:
    if measurement.request.comm.clock != "wall":
        return "times are those of its model"
    if measurement.request.platform == "emulated":
        return "times are wall time of the emulation on this machine, not of NPUs"
    return "times are wall time"


def _interleaving(measurement: Measurement) -> str:
    schedule = measurement.schedule
    if schedule is None:
        return ""
    slow = f" with {', '.join(schedule.slow.spelled())}" if schedule.slow else ""
    return f", {schedule.adversary.value} interleaving {schedule.seed}{slow}"


def _schedule(measurement: Measurement) -> dict[str, Any] | None:
    schedule = measurement.schedule
    if schedule is None:
        return None
    return {
        "seed": schedule.seed,
        "adversary": schedule.adversary.value,
        "slow": schedule.slow.spelled(),
    }
