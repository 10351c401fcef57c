"""The tasks of a program as lines of JSON, made kind by kind from columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import repeat

import numpy as np
import numpy.typing as npt

from hccl_py.enums import DataType, ReduceOp, TaskKind
from hccl_py.errors import ProgramFileError
from hccl_py.program.describe import spell_place
from hccl_py.program.program import Program
from hccl_py.values import IntArray

__all__ = ["task_lines"]

_NAMES = {
    TaskKind.RDMA_WRITE: "write",
    TaskKind.RDMA_WRITE_REDUCE: "write_reduce",
}


def task_lines(program: Program, peers: Sequence[str]) -> list[str]:
    """Return one line per row of the task view; `peers` says how to name the peer of each end."""
    maker = _Maker(program, peers)
    lines = [""] * len(program.tasks)
    kinds = program.tasks.kind
    for kind in np.unique(kinds).tolist():
        rows = np.flatnonzero(kinds == kind)
        for row, line in zip(rows.tolist(), maker.lines(TaskKind(kind), rows), strict=True):
            lines[row] = line
    return lines


class _Maker:
    """Makes the lines of all tasks of a kind."""

    def __init__(self, program: Program, peers: Sequence[str]) -> None:
        self._program = program
        self._peers = peers
        self._buffers = [json.dumps(name, ensure_ascii=False) for name in program.buffers]
        self._notes = _notes(program)
        self._ops = [f'"{op.spelling}"' for op in ReduceOp]

    def lines(self, kind: TaskKind, rows: IntArray) -> list[str]:
        """Return the lines of some tasks of one kind."""
        if kind.moves_data:
            heads = self._moves(kind, rows)
        elif kind is TaskKind.COMPUTE:
            table, tasks = self._program.tasks.table, self._program.tasks
            times = table.duration_us[tasks.instruction[rows]].tolist()
            heads = [f'["compute", {json.dumps(time)}' for time in times]
        else:
            return self._notifies(kind, rows)
        return self._closed(heads, rows)

    def _closed(
        self, heads: Sequence[str], rows: IntArray, owners: Sequence[str] = ()
    ) -> list[str]:
        notes = [self._notes[at] for at in self._program.tasks.instruction[rows].tolist()]
        if any(owners):
            both = zip(owners, notes, strict=True)
            notes = [", ".join(filter(None, pair)) for pair in both]
        return [
            f"{head}, {{{note}}}]" if note else f"{head}]"
            for head, note in zip(heads, notes, strict=True)
        ]

    def _moves(self, kind: TaskKind, rows: IntArray) -> list[str]:
        tasks, table = self._program.tasks, self._program.tasks.table
        at = tasks.instruction[rows]
        name = _NAMES.get(kind, kind.spelling)
        peers: Iterator[str] = repeat("")
        if kind.reads_remote or kind.writes_remote:
            peers = iter([f"{self._peers[end]}, " for end in tasks.end[rows].tolist()])
        ops: Iterator[str] = repeat("")
        if kind.reduces:
            ops = iter([f"{self._ops[op]}, " for op in table.reduce[at].tolist()])
        src = [self._buffers[b] for b in table.src_buffer[at].tolist()]
        dst = [self._buffers[b] for b in table.dst_buffer[at].tolist()]
        sizes, dst_sizes = tasks.size[rows].tolist(), tasks.dst_size[rows].tolist()
        into, out_of = tasks.dst_offset[rows].tolist(), tasks.src_offset[rows].tolist()
        return [
            f'["{name}", {peer}{op}[{s}, {x}, {size}], [{d}, {y}, {dst_size}]'
            for peer, op, s, x, d, y, size, dst_size in zip(
                peers, ops, src, out_of, dst, into, sizes, dst_sizes, strict=False
            )
        ]

    def _notifies(self, kind: TaskKind, rows: IntArray) -> list[str]:
        is_local = self._program.tasks.end[rows] < 0
        lines = np.empty(len(rows), object)
        lines[is_local] = self._local(kind, rows[is_local])
        lines[~is_local] = self._remote(kind, rows[~is_local])
        found: list[str] = lines.tolist()
        return found

    def _remote(self, kind: TaskKind, rows: IntArray) -> list[str]:
        tasks, transports = self._program.tasks, self._program.transports
        ends = tasks.end[rows]
        is_post = kind is TaskKind.NOTIFY_POST
        owner = transports.far[ends] if is_post else ends
        index = tasks.cell[rows] - owner * transports.stride
        self._check(rows, (index < 0) | (index >= transports.stride), "its transport")
        name = "post" if is_post else "wait"
        pairs = zip(ends.tolist(), index.tolist(), strict=True)
        return self._closed([f'["{name}", {self._peers[end]}, {k}' for end, k in pairs], rows)

    def _local(self, kind: TaskKind, rows: IntArray) -> list[str]:
        program, tasks = self._program, self._program.tasks
        slots = program.local_notifies.slots
        slot = tasks.cell[rows] - program.transports.cells - tasks.rank[rows] * len(slots)
        self._check(rows, (slot < 0) | (slot >= len(slots)), "its rank")
        cells = [slots[number] for number in slot.tolist()]
        if kind is TaskKind.NOTIFY_POST:
            return self._closed([f'["local_post", {owner}, {k}' for owner, k in cells], rows)
        streams = tasks.table.stream[tasks.instruction[rows]].tolist()
        owners = [
            "" if owner == stream else f'"owner": {owner}'
            for (owner, _), stream in zip(cells, streams, strict=True)
        ]
        return self._closed([f'["local_wait", {k}' for _, k in cells], rows, owners)

    def _check(self, rows: IntArray, wrong: npt.NDArray[np.bool_], what: str) -> None:
        for row in rows[wrong][:1].tolist():
            place = spell_place(self._program, row)
            raise ProgramFileError(
                f"{place}: the task's notify is none of {what}, which no file can say.",
                "Record posts and waits through links and notifies of the rank.",
            )


def _notes(program: Program) -> list[str]:
    """Return what the object at the end of each instruction's tasks holds; nothing: no object."""
    table = program.tasks.table
    dtype = np.where(table.dtype == program.op.dtype.number, -1, table.dtype)
    columns = (table.round, table.label, table.line, dtype)
    keys = list(zip(*(column.tolist() for column in columns), strict=True))
    notes = {key: _note(program, *key) for key in set(keys)}
    return [notes[key] for key in keys]


def _note(program: Program, number: int, label: int, line: int, dtype: int) -> str:
    note: dict[str, object] = {"round": number} if number else {}
    if label >= 0:
        note["label"] = program.labels[label]
    if line >= 0:
        note["source"] = program.lines[line]
    if dtype >= 0:
        note["dtype"] = DataType.from_number(dtype).value
    return json.dumps(note, ensure_ascii=False)[1:-1]
