"""From a JSON document to a program.

Envelope and resources are pydantic models, tasks are checked as columns; then ends, cells and slots
are laid out as recording lays them out, and every rank becomes a batch of its own. What a verifier
should judge is let through: undeclared streams and notifies, slices beyond their buffers, ranks
that do nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hccl_py.documents.checks import a_text, an_object, at, defect, format_value
from hccl_py.documents.kind import named
from hccl_py.documents.models import checked
from hccl_py.documents.parse import parse_document
from hccl_py.enums import LinkKind, TaskKind
from hccl_py.formats.checks import (
    MAX_CELLS,
    MAX_NAMES,
    MAX_QUEUES,
    MAX_RANKS,
    MAX_SLOTS,
    PROGRAM,
    frozen,
    whole,
)
from hccl_py.formats.json_notes import TaskNotes, notes_from
from hccl_py.formats.json_rows import Rows, rows_from
from hccl_py.formats.json_tasks import Columns, columns_from
from hccl_py.formats.links import HasLinks, LinkColumns, ends_from
from hccl_py.formats.memory import BufferTable, alternating_from, memory_from
from hccl_py.formats.models import FORMAT, FileModel
from hccl_py.formats.op import calls_from, op_from
from hccl_py.formats.requests import Requests, requests_from
from hccl_py.program.instruction import Batch, Instruction
from hccl_py.program.program import Declared, Program
from hccl_py.program.transports import NOTIFY_NAMES, OWN_NOTIFIES, LocalNotifies, Transports
from hccl_py.values import IntArray

_KINDS = tuple(TaskKind)
_PUSHES = {
    TaskKind.WRITE: TaskKind.RDMA_WRITE,
    TaskKind.WRITE_REDUCE: TaskKind.RDMA_WRITE_REDUCE,
}


def from_json(document: str | bytes, name: str = "program") -> Program:
    """Return the program of a document in the format `hccl-py.program/1`.

    Raises ProgramFileError for everything else; its message starts with `name` and the JSON path.
    """
    return named(name, PROGRAM, lambda: _program(parse_document(document, PROGRAM)))


def from_value(document: object, name: str = "program") -> Program:
    """Return the program of a document that is parsed already; raises as `from_json`."""
    return named(name, PROGRAM, lambda: _program(document))


def _program(document: object) -> Program:
    file = _envelope(document)
    op = op_from(file.op, file.ranks)
    memory = memory_from(file.buffers, file.ranks)
    ends = ends_from(file, memory)
    requests = requests_from(file.resources, file.ranks, ends)
    rows = rows_from(file.tasks, file.ranks)
    columns = columns_from(rows, ends, memory, op)
    notes = notes_from(rows, columns)
    layout = layout_of(rows, columns, ends, requests, memory)
    transports = replace(layout.transports, notify_names=_notify_names(file))
    _choose_kinds(rows, columns, layout)
    return Program(
        op=op,
        executor=file.executor,
        ranks=file.ranks,
        buffers=memory.names,
        buffer_sizes=frozen(memory.sizes),
        transports=transports,
        local_notifies=layout.local_notifies,
        declared=layout.declared,
        batches=_batches(file.ranks, rows, _instructions(rows, columns, notes, layout)),
        labels=notes.labels,
        lines=notes.lines,
        rounds=_rounds(file, notes),
        calls=calls_from(file.calls or []),
        protocol=file.protocol,
        counts_posts=file.notifies == "counting",
        alternating=alternating_from(file.alternating or [], memory.names, "alternating"),
    )


def _envelope(document: object) -> FileModel:
    hint = "Its keys: format, op, ranks, link, exported (or links), buffers, resources, tasks."
    found = an_object("", document, hint).get("format")
    if found != FORMAT:
        hint = "Program files of other versions, or other files, cannot be read."
        raise defect(
            "format", f'"{FORMAT}"', "nothing" if found is None else format_value(found), hint
        )
    file = checked(FileModel, document, "")
    whole([file.ranks], lambda _: "ranks", "a number of ranks", 1, MAX_RANKS)
    a_text("executor", file.executor)
    return file


def _notify_names(file: FileModel) -> tuple[str, ...]:
    """Return what the file calls the first notifies of every link; HCCL's names by default."""
    if file.notify_names is None:
        return NOTIFY_NAMES
    if len(file.notify_names) > MAX_NAMES:
        hint = "Notifies that have no name are called by their index."
        raise defect(
            "notify_names", f"at most {MAX_NAMES} names", str(len(file.notify_names)), hint
        )
    return tuple(a_text(at("notify_names", k), name) for k, name in enumerate(file.notify_names))


def _choose_kinds(rows: Rows, columns: Columns, layout: TaskNotifies) -> None:
    """Make writes over RDMA what they are; nothing can be read over it."""
    away = layout.end >= 0
    rdma = np.zeros(len(rows), bool)
    rdma[away] = layout.transports.kind[layout.end[away]] == LinkKind.RDMA
    reads = np.isin(columns.kind, (TaskKind.READ, TaskKind.READ_REDUCE))
    for row in np.flatnonzero(rdma & reads)[:1].tolist():
        hint = "RDMA pushes: let the other side write."
        raise defect(rows.path(row), "no read over an RDMA link", "one", hint)
    for plain, push in _PUSHES.items():
        columns.kind[rdma & (columns.kind == plain)] = push


def _instructions(
    rows: Rows, columns: Columns, notes: TaskNotes, layout: TaskNotifies
) -> list[Instruction]:
    fields: dict[str, IntArray] = {
        "stream": rows.stream,
        "label": notes.label,
        "line": notes.line,
        "round": notes.round,
        "cell": layout.cell,
        "end": layout.end,
        "peer": layout.peer,
        "size": columns.src_size,
        "dst_size": np.where(columns.dst_size == columns.src_size, -1, columns.dst_size),
        "joined": notes.joined,
    }
    own = ("src_buffer", "src_offset", "dst_buffer", "dst_offset", "dtype", "reduce")
    lists = {name: column.tolist() for name, column in fields.items()}
    lists |= {name: getattr(columns, name).tolist() for name in own}
    lists["kind"] = [_KINDS[kind] for kind in columns.kind.tolist()]
    lists["duration_us"] = columns.microseconds.tolist()
    ordered = [lists[name] for name in Instruction._fields]
    return list(map(Instruction._make, zip(*ordered, strict=True)))


def _batches(ranks: int, rows: Rows, instructions: list[Instruction]) -> tuple[Batch, ...]:
    """Return a batch for every rank that has tasks, and one for all those that have none."""
    first = np.searchsorted(rows.rank, np.arange(ranks + 1))
    busy = np.flatnonzero(np.diff(first))
    batches = [
        Batch(frozen(np.array([rank])), tuple(instructions[first[rank] : first[rank + 1]]))
        for rank in busy.tolist()
    ]
    if len(busy) < ranks:
        batches.append(Batch(frozen(np.setdiff1d(np.arange(ranks), busy)), ()))
    return tuple(batches)


def _rounds(file: FileModel, notes: TaskNotes) -> int:
    found = int(notes.round.max(initial=0)) + 1
    if file.rounds is None:
        return found
    return int(whole([file.rounds], lambda _: "rounds", "a number of rounds", found)[0])


@dataclass(frozen=True, eq=False)
class TaskNotifies:
    """The notifies of a program, and the end, peer and cell of every task (-1: none)."""

    transports: Transports
    local_notifies: LocalNotifies
    declared: Declared
    end: IntArray
    peer: IntArray
    cell: IntArray


def layout_of(
    rows: Rows, columns: Columns, ends: HasLinks, requests: Requests, memory: BufferTable
) -> TaskNotifies:
    """Lay out all ends and notifies that are requested or used."""
    away = columns.key >= 0
    link_columns = ends.link_columns(np.concatenate([columns.key[away], requests.channels[1]]))
    end, peer, cell = (np.full(len(rows), -1) for _ in range(3))
    end[away] = link_columns.rows(columns.key[away])
    peer[away] = link_columns.peer[end[away]]
    remote = away & (columns.index >= 0)
    owner = np.where(columns.posts[remote], link_columns.far[end[remote]], end[remote])
    index = columns.index[remote].astype(np.int64)
    transports = _transports(link_columns, owner, index, requests)
    cell[remote] = owner * transports.stride + index
    local = columns.owner >= 0
    stream, index = columns.owner[local].astype(np.int64), columns.index[local].astype(np.int64)
    declared = _declared(rows, (rows.rank[local], stream, index), requests, memory)
    notifies, slots = _local_notifies(declared, stream, index)
    cell[local] = transports.cells + rows.rank[local] * len(notifies.slots) + slots
    return TaskNotifies(transports, notifies, declared, end, peer, cell)


def _transports(
    link_columns: LinkColumns, owner: IntArray, index: IntArray, requests: Requests
) -> Transports:
    """Return the ends; `owner` and `index` are the notifies that tasks use."""
    used = np.zeros(len(link_columns.keys), np.int64)
    np.maximum.at(used, owner, index + 1)
    notifies = _requested(link_columns, used, requests).astype(np.int16)
    slots = int(used.max(initial=0))
    stride = max(slots, int(notifies.max(initial=0)))
    if stride * len(used) > MAX_CELLS:
        hint = f"{len(used)} ends of transports have {stride} notifies each."
        raise defect("tasks", f"at most {MAX_CELLS} notifies", str(stride * len(used)), hint)
    return Transports(
        planes=link_columns.planes,
        rank=link_columns.rank,
        peer=link_columns.peer,
        plane=link_columns.plane,
        kind=link_columns.kind,
        far=link_columns.far,
        exports=link_columns.exports,
        notifies=notifies,
        slots=slots if slots > int(notifies.max(initial=0)) else 0,
    )


def _requested(link_columns: LinkColumns, used: IntArray, requests: Requests) -> IntArray:
    """Return the notifies of every end: as its rank states them (0 for an end that it leaves out),
    else as the link does, else as many as the other side states or both use.
    """
    stated = link_columns.notifies.copy()
    stated[requests.states_channels[link_columns.rank]] = 0
    _, keys, count = requests.channels
    stated[link_columns.rows(keys)] = count
    theirs, both = stated[link_columns.far], np.maximum(used, used[link_columns.far])
    silent = np.where(theirs > 0, np.maximum(theirs, used), np.maximum(OWN_NOTIFIES, both))
    return np.where(stated < 0, silent, stated)


def _declared(
    rows: Rows,
    used: tuple[IntArray, IntArray, IntArray],
    requests: Requests,
    memory: BufferTable,
) -> Declared:
    """Return the requests of all ranks; `used` has rank, stream and index of local notifies."""
    rank, stream, index = used
    ranks, (stating, streams, counts) = len(memory.sizes), requests.local
    numbers = (rows.queue_stream, requests.streams - 1, stream, streams)
    top = max(int(column.max(initial=0)) for column in numbers)
    if ranks * (top + 1) > MAX_QUEUES:
        hint = f"There are {ranks} ranks, and streams up to {top}."
        raise defect("tasks", f"at most {MAX_QUEUES} streams", str(ranks * (top + 1)), hint)
    notifies = np.zeros((ranks, top + 1), np.int64)
    notifies[stating, streams] = counts
    silent = ~requests.states_local[rank]
    np.maximum.at(notifies, (rank[silent], stream[silent]), index[silent] + 1)
    last = np.zeros(ranks, np.int64)
    np.maximum.at(last, rows.queue_rank, rows.queue_stream * (np.diff(rows.first) > 0))
    subs = np.where(requests.streams < 0, last, requests.streams - 1)
    return Declared(
        sub_streams=subs,
        notifies=notifies.sum(axis=1),
        scratch_bytes=_scratch(memory),
        local_notifies=frozen(notifies),
        stated=requests.stated,
    )


def _scratch(memory: BufferTable) -> IntArray:
    number = memory.numbers.get("SCRATCH")
    return np.zeros(len(memory.sizes), np.int64) if number is None else memory.sizes[:, number]


def _local_notifies(
    declared: Declared, stream: IntArray, index: IntArray
) -> tuple[LocalNotifies, IntArray]:
    """Return the slots of all ranks in the order of LocalNotifies.of, and the slot of every used
    notify.
    """
    subs = int(declared.sub_streams.max())
    most = declared.local_notifies.max(axis=0)
    np.maximum.at(most, stream, index + 1)
    most = LocalNotifies.least(most, subs)
    count = int(most.sum())
    if count > MAX_SLOTS or count * len(declared.notifies) > MAX_CELLS:
        hint = "Every rank has as many as the streams that have most."
        raise defect("tasks", f"at most {MAX_SLOTS} notifies of a rank", str(count), hint)
    notifies, slot = LocalNotifies.ordered(most, subs)
    return notifies, slot[(np.cumsum(most) - most)[stream] + index]
