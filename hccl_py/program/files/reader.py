"""From a JSON document to a program.

Envelope and resources are pydantic models, tasks are checked as columns; then ends, cells and slots
are laid out as recording lays them out, and every rank becomes a batch of its own. What a verifier
should judge is let through: undeclared streams and notifies, slices beyond their buffers, ranks
that do nothing.
"""

from __future__ import annotations

import numpy as np

from hccl_py.documents.checks import a_text, an_object, defect, spell
from hccl_py.documents.guard import named
from hccl_py.documents.models import checked
from hccl_py.documents.parse import parse_document
from hccl_py.enums import LinkKind, TaskKind
from hccl_py.program.files.calls import calls_from
from hccl_py.program.files.checks import MAX_RANKS, frozen, whole
from hccl_py.program.files.columns import Columns, columns_from
from hccl_py.program.files.kind import PROGRAM
from hccl_py.program.files.layout import Layout, layout_of
from hccl_py.program.files.links import ends_from
from hccl_py.program.files.memory import memory_from
from hccl_py.program.files.models import FORMAT, FileModel
from hccl_py.program.files.notes import Notes, notes_from
from hccl_py.program.files.op import op_from
from hccl_py.program.files.requests import requests_from
from hccl_py.program.files.rows import Rows, rows_from
from hccl_py.program.instruction import Batch, Instruction
from hccl_py.program.program import Program
from hccl_py.values import IntArray

__all__ = ["from_json"]

_KINDS = tuple(TaskKind)
_PUSHES = {
    TaskKind.WRITE: TaskKind.RDMA_WRITE,
    TaskKind.WRITE_REDUCE: TaskKind.RDMA_WRITE_REDUCE,
}


def from_json(document: str | bytes, name: str = "program") -> Program:
    """Return the program of a document in the format `hccl-py.program/1`.

    Raises ProgramFileError for everything else; its message starts with `name` and the JSON path.
    """
    return named(name, PROGRAM, lambda: _program(document))


def _program(document: str | bytes) -> Program:
    file = _envelope(parse_document(document, PROGRAM))
    op = op_from(file.op, file.ranks)
    memory = memory_from(file.buffers, file.ranks)
    ends = ends_from(file, memory)
    requests = requests_from(file.resources, file.ranks, ends)
    rows = rows_from(file.tasks, file.ranks)
    columns = columns_from(rows, ends, memory, op)
    notes = notes_from(rows, columns)
    layout = layout_of(rows, columns, ends, requests, memory)
    _choose_kinds(rows, columns, layout)
    return Program(
        op=op,
        executor=file.executor,
        ranks=file.ranks,
        buffers=memory.names,
        buffer_sizes=frozen(memory.sizes),
        transports=layout.transports,
        local_notifies=layout.local_notifies,
        declared=layout.declared,
        batches=_batches(file.ranks, rows, _instructions(rows, columns, notes, layout)),
        labels=notes.labels,
        lines=notes.lines,
        rounds=_rounds(file, notes),
        calls=calls_from(file.calls or []),
    )


def _envelope(document: object) -> FileModel:
    hint = "Its keys: format, op, ranks, link, exported (or links), buffers, resources, tasks."
    found = an_object("", document, hint).get("format")
    if found != FORMAT:
        hint = "Program files of other versions, or other files, cannot be read."
        raise defect("format", f'"{FORMAT}"', "nothing" if found is None else spell(found), hint)
    file = checked(FileModel, document, "")
    whole([file.ranks], lambda _: "ranks", "a number of ranks", 1, MAX_RANKS)
    a_text("executor", file.executor)
    return file


def _choose_kinds(rows: Rows, columns: Columns, layout: Layout) -> None:
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


def _instructions(rows: Rows, columns: Columns, notes: Notes, layout: Layout) -> list[Instruction]:
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


def _rounds(file: FileModel, notes: Notes) -> int:
    found = int(notes.round.max(initial=0)) + 1
    if file.rounds is None:
        return found
    return int(whole([file.rounds], lambda _: "rounds", "a number of rounds", found)[0])
