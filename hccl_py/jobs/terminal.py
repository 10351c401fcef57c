"""The overlap of a job as a table for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_py.jobs.overlap import Overlap

if TYPE_CHECKING:
    from rich.table import Table


def draw_overlap(report: Overlap, *, calls: bool = False) -> Table:
    """Return a rich table of the ranks with the least and the most exposed communication, or of all
    calls; milliseconds.
    """
    return _calls(report) if calls else _ranks(report)


def _ranks(report: Overlap) -> Table:
    table = _table("rank", "total ms", "compute", "communication", "overlapped", "exposed")
    columns = (
        report.total_us,
        report.compute_us,
        report.communication_us,
        report.overlapped_us,
        report.exposed_us,
    )
    for rank in sorted({int(report.exposed_us.argmin()), report.worst}):
        table.add_row(str(rank), *(_ms(column[rank]) for column in columns))
    return table


def _calls(report: Overlap) -> Table:
    table = _table("call", "stream", "begins ms", "ends", "lasts", "exposed")
    for call in report.calls:
        times = (call.start_us, call.end_us, call.end_us - call.start_us, call.exposed_us)
        table.add_row(call.label, call.stream, *map(_ms, times))
    return table


def _table(*names: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(name, justify="left" if name in ("rank", "call", "stream") else "right")
    return table


def _ms(microseconds: float) -> str:
    return f"{abs(microseconds) / 1e3:.3f}"
