"""From a program to a JSON document: one task per line, the same program gives the same bytes.

The short form (`link`, `exported`) is taken where all transports are alike and no two of them
connect the same ranks, else the general form (`links`). Lines of tasks are made kind by kind from
columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_py.enums import DataType, LinkKind, ReduceOp, TaskKind
from hccl_py.errors import ProgramFileError
from hccl_py.formats.models import FORMAT
from hccl_py.formats.op import calls_document, op_object
from hccl_py.program.describe import format_place
from hccl_py.program.instruction import ONE_SUM
from hccl_py.program.matching import Queues, queues_of
from hccl_py.program.program import Program
from hccl_py.program.transports import NOTIFY_NAMES, Transports
from hccl_py.values import IntArray


def to_json(program: Program) -> str:
    """Return the document of a program, in the format `hccl-py.program/1`.

    Two programs with the same task view, labels, source lines and requests give the same text,
    however their ranks were batched. Tasks are listed stream by stream. Raises ProgramFileError for
    a program that posts cells of no transport of its own.
    """
    transports = program.transports
    is_short = _is_short(transports)
    links = _links(transports)
    head: dict[str, Any] = {"format": FORMAT}
    if program.executor:
        head["executor"] = program.executor
    head |= {"op": op_object(program.op), "ranks": program.ranks}
    if program.rounds != int(program.tasks.table.round.max(initial=0)) + 1:
        head["rounds"] = program.rounds
    if program.calls:
        head["calls"] = calls_document(program.calls)
    if program.protocol:
        head["protocol"] = program.protocol
    if program.engine:
        head["engine"] = program.engine
    if program.counts_posts:
        head["notifies"] = "counting"
    if program.alternating:
        head["alternating"] = list(program.alternating)
    if transports.notify_names != NOTIFY_NAMES:
        head["notify_names"] = list(transports.notify_names)
    if program.stream_names:
        head["stream_names"] = list(program.stream_names)
    if is_short:
        head |= _short_form(program)
    parts = [f'"{key}": {_compact(value)}' for key, value in head.items()]
    if not is_short:
        parts.append(f'"links": {_block_list(_general_form(program, links))}')
    parts.append(f'"buffers": {_block(_buffers(program))}')
    parts.append(f'"resources": {_block(_resources(program, links, is_short))}')
    names = _peers(transports, links)
    parts.append(f'"tasks": {_tasks(program, queues_of(program), task_lines(program, names))}')
    return "{\n  " + ",\n  ".join(parts) + "\n}\n"


_compact = json.JSONEncoder(ensure_ascii=False).encode


def _block(members: Mapping[str, object]) -> str:
    lines = [f"    {_compact(key)}: {_compact(value)}" for key, value in members.items()]
    return "{\n" + ",\n".join(lines) + "\n  }" if lines else "{}"


def _block_list(items: Iterable[object]) -> str:
    return "[\n" + ",\n".join(f"    {_compact(item)}" for item in items) + "\n  ]"


def _links(transports: Transports) -> IntArray:
    """Number the links by their first end; both ends have the same number."""
    rows = np.arange(len(transports))
    first = np.minimum(rows, transports.far)
    return np.searchsorted(np.unique(first), first)


def _is_short(transports: Transports) -> bool:
    if not len(transports):
        return True
    pairs = np.stack([transports.rank, transports.peer], axis=1)
    alike = np.column_stack([transports.kind, transports.plane, transports.exports])
    return len(np.unique(pairs, axis=0)) == len(pairs) and bool((alike == alike[0]).all())


def _short_form(program: Program) -> dict[str, Any]:
    transports = program.transports
    if not len(transports):
        return {"link": "sdma", "exported": []}
    plane = transports.planes[transports.plane[0]]
    form: dict[str, Any] = {"link": _kind(transports, 0)}
    if plane != "flat":
        form["plane"] = plane
    return form | {"exported": _exports(program, 0)}


def _general_form(program: Program, links: IntArray) -> list[dict[str, Any]]:
    transports = program.transports
    _, first = np.unique(links, return_index=True)
    found = []
    for number, end in enumerate(first.tolist()):
        far = int(transports.far[end])
        sides = {str(int(transports.rank[e])): _exports(program, e) for e in (end, far)}
        link = {"id": number, "ranks": [int(transports.rank[e]) for e in (end, far)]}
        notifies = max(int(transports.notifies[e]) for e in (end, far))
        link |= {"kind": _kind(transports, end), "exports": sides, "notifies": notifies}
        plane = transports.planes[transports.plane[end]]
        found.append(link | ({"plane": plane} if plane != "flat" else {}))
    return found


def _kind(transports: Transports, end: int) -> str:
    return LinkKind(int(transports.kind[end])).name.lower()


def _exports(program: Program, end: int) -> list[str]:
    """Return the names of an end's memories, each once."""
    numbers = program.transports.exports[end].tolist()
    return list(dict.fromkeys(program.buffers[number] for number in numbers if number >= 0))


def _buffers(program: Program) -> dict[str, dict[str, int]]:
    return {
        str(rank): dict(zip(program.buffers, sizes, strict=True))
        for rank, sizes in enumerate(program.buffer_sizes.tolist())
    }


def _resources(program: Program, links: IntArray, is_short: bool) -> dict[str, dict[str, Any]]:
    """Return the requests that ranks state; those that they leave out are again as their tasks use
    them.
    """
    declared, transports = program.declared, program.transports
    streams = (declared.sub_streams + 1).tolist()
    counts = declared.local_notifies.tolist()
    has_streams, has_local, has_channels = declared.stated.T.tolist()
    found: dict[str, dict[str, Any]] = {str(rank): {} for rank in range(program.ranks)}
    for rank, part in enumerate(found.values()):
        if has_streams[rank]:
            part["streams"] = streams[rank]
        if has_local[rank]:
            notifies = {str(stream): count for stream, count in enumerate(counts[rank]) if count}
            part["local_notifies"] = notifies
    if is_short or (transports.notifies != transports.notifies[transports.far]).any():
        for rank, part in enumerate(found.values()):
            if has_channels[rank]:
                part["channel_notifies"] = {}
        for end in np.flatnonzero(transports.notifies).tolist():
            rank = int(transports.rank[end])
            if has_channels[rank]:
                peer = str(int(transports.peer[end])) if is_short else f"link:{links[end]}"
                notified = found[str(rank)]["channel_notifies"]
                notified[peer] = int(transports.notifies[end])
    return {rank: part for rank, part in found.items() if part}


def _peers(transports: Transports, links: IntArray) -> list[str]:
    """Return the name that tasks give the peer of every end: its rank where no second link leads
    there.
    """
    pairs = np.stack([transports.rank, transports.peer], axis=1)
    _, inverse, count = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    single = (count[inverse.ravel()] == 1).tolist()
    return [
        str(peer) if alone else f'"link:{link}"'
        for peer, alone, link in zip(transports.peer.tolist(), single, links.tolist(), strict=True)
    ]


def _tasks(program: Program, queues: Queues, lines: list[str]) -> str:
    first, rows = queues.first.tolist(), queues.rows.tolist()
    ranks = []
    for rank in range(program.ranks):
        streams = []
        for stream in range(program.streams):
            queue = rank * program.streams + stream
            mine = rows[first[queue] : first[queue + 1]]
            if mine:
                tasks = ",\n        ".join(lines[row] for row in mine)
                streams.append(f'      "{stream}": [\n        {tasks}\n      ]')
        body = "{\n" + ",\n".join(streams) + "\n    }" if streams else "{}"
        ranks.append(f'    "{rank}": {body}')
    return "{\n" + ",\n".join(ranks) + "\n  }"


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
            place = format_place(self._program, row)
            raise ProgramFileError(
                f"{place}: the task's notify is none of {what}, which no file can say.",
                "Record posts and waits through links and notifies of the rank.",
            )


def _notes(program: Program) -> list[str]:
    """Return the object at the end of each instruction's tasks; without members there is none."""
    table = program.tasks.table
    dtype = np.where(table.dtype == program.op.dtype.number, -1, table.dtype)
    columns = (table.round, table.label, table.line, dtype, table.joined)
    keys = list(zip(*(column.tolist() for column in columns), strict=True))
    notes = {key: _note(program, *key) for key in set(keys)}
    return [notes[key] for key in keys]


def _note(program: Program, number: int, label: int, line: int, dtype: int, joined: int) -> str:
    note: dict[str, object] = {"round": number} if number else {}
    if label >= 0:
        note["label"] = program.labels[label]
    if line >= 0:
        note["source"] = program.lines[line]
    if dtype >= 0:
        note["dtype"] = DataType.from_number(dtype).value
    if joined:
        note["joined"] = "sum" if joined == ONE_SUM else True
    return json.dumps(note, ensure_ascii=False)[1:-1]
