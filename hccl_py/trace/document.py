"""A trace as a JSON document, `hccl-py.trace/1`: resources of every rank, and every task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_py.enums import READS, WRITES, TaskKind, moves_data
from hccl_py.program.program import Program
from hccl_py.simulator import Timeline
from hccl_py.trace.scene.bars import notifies_of

Column = list[Any]

CHUNK = 1 << 16
"""Tasks whose columns are taken out of numpy at once."""


def resources(program: Program) -> list[dict[str, int]]:
    """Return the resources of every rank: sub streams, notifies, transports, scratch bytes."""
    declared = program.declared
    columns = {
        "rank": np.arange(program.ranks),
        "sub_streams": declared.sub_streams,
        "notifies": declared.notifies,
        "transports": program.transports.counts(program.ranks),
        "scratch_bytes": declared.scratch_bytes,
    }
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def task_documents(timeline: Timeline) -> Iterator[dict[str, Any]]:
    """Yield every task: by rank, then in the order in which it was recorded."""
    program = timeline.program
    names, notify = notifies_of(program, program.tasks)
    partner = program.linked.post_of
    for start in range(0, len(program.tasks), CHUNK):
        rows = np.arange(start, min(start + CHUNK, len(program.tasks)))
        columns = _columns(timeline, rows, names, notify[rows], partner[rows])
        for values in zip(*columns.values(), strict=True):
            yield dict(zip(columns, values, strict=True))


def _columns(
    timeline: Timeline,
    rows: npt.NDArray[np.int64],
    names: tuple[str, ...],
    notify: npt.NDArray[np.int64],
    waits_for: npt.NDArray[np.int32],
) -> dict[str, Column]:
    """Return the documents' fields, one column each."""
    program, tasks = timeline.program, timeline.program.tasks
    table, at = tasks.table, tasks.instruction[rows]
    kind = table.kind[at]
    is_data = moves_data(kind)
    return {
        "rank": tasks.rank[rows].tolist(),
        "stream": table.stream[at].tolist(),
        "index": tasks.index[rows].tolist(),
        "kind": _texts([k.spelling for k in TaskKind], kind),
        "bytes": tasks.size[rows].tolist(),
        "peer": _or_none(tasks.peer[rows]),
        "start_us": timeline.start_us[rows].tolist(),
        "end_us": timeline.end_us[rows].tolist(),
        "effect_us": timeline.effect_us[rows].tolist(),
        "round": table.round[at].tolist(),
        "label": _texts(program.labels, table.label[at]),
        "source": _texts(program.lines, table.line[at]),
        "src": _ranges(program, rows, "src", is_data, np.isin(kind, READS)),
        "dst": _ranges(program, rows, "dst", is_data, np.isin(kind, WRITES)),
        "notify": _texts(names, notify),
        "waits_for": _places(program, waits_for),
    }


def _texts(texts: list[str] | tuple[str, ...], numbers: npt.NDArray[Any]) -> Column:
    return [texts[n] if n >= 0 else None for n in numbers.tolist()]


def _or_none(numbers: npt.NDArray[Any]) -> Column:
    return [n if n >= 0 else None for n in numbers.tolist()]


def _ranges(
    program: Program,
    rows: npt.NDArray[np.int64],
    side: str,
    is_data: npt.NDArray[np.bool_],
    away: npt.NDArray[np.bool_],
) -> Column:
    """Return the rank, buffer and offset of tasks' memory; None for tasks that move nothing."""
    tasks, buffers = program.tasks, program.buffers
    rank = np.where(away, tasks.peer[rows], tasks.rank[rows]).tolist()
    number = getattr(tasks.table, f"{side}_buffer")[tasks.instruction[rows]].tolist()
    offset = getattr(tasks, f"{side}_offset")[rows].tolist()
    return [
        {"rank": r, "buffer": buffers[b], "offset": o} if moves else None
        for r, b, o, moves in zip(rank, number, offset, is_data.tolist(), strict=True)
    ]


def _places(program: Program, rows: npt.NDArray[Any]) -> Column:
    """Return [rank, stream, index] of tasks; None where there is no row."""
    tasks = program.tasks
    stream = tasks.table.stream[tasks.instruction[rows]]
    places = np.column_stack([tasks.rank[rows], stream, tasks.index[rows]]).tolist()
    return [place if row >= 0 else None for place, row in zip(places, rows.tolist(), strict=True)]
