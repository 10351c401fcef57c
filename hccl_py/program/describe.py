"""Tasks, notifies and memory in words, for errors and traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hccl_py.enums import TaskKind
from hccl_py.program.transports import OWN_NOTIFIES

if TYPE_CHECKING:
    from hccl_py.program.program import Program

__all__ = [
    "BUFFER_WORDS",
    "NOTIFY_NAMES",
    "spell_cell",
    "spell_memory",
    "spell_place",
    "spell_stream",
    "spell_task",
]

NOTIFY_NAMES = ("Ack", "DataSignal", "DataAck")

BUFFER_WORDS = {
    "IN": "user_in",
    "OUT": "user_out",
    "CCL_IN": "CCL_In",
    "CCL_OUT": "CCL_Out",
    "SCRATCH": "scratch",
}


def spell_stream(stream: int) -> str:
    """Return `main` or `sub k`, subs counted from 0."""
    return "main" if stream == 0 else f"sub {stream - 1}"


def spell_place(program: Program, row: int) -> str:
    """Return `rank r stream, task k/n (file:line)` of a task row."""
    tasks = program.tasks
    rank, stream = int(tasks.rank[row]), int(tasks.stream[row])
    mine = (tasks.rank == rank) & (tasks.stream == stream)
    line = spell_line_of(program, row)
    return (
        f"rank {rank} {spell_stream(stream)} task {int(tasks.index[row]) + 1}/{int(mine.sum())}"
        + (f" ({line})" if line else "")
    )


def spell_line_of(program: Program, row: int) -> str:
    """Return the author's line of a task row, or nothing."""
    number = int(program.tasks.table.line[program.tasks.instruction[row]])
    return program.lines[number] if number >= 0 else ""


def spell_cell(program: Program, row: int) -> str:
    """Return the notify that a post sets or a wait clears."""
    transports, cell = program.transports, int(program.tasks.cell[row])
    is_post = int(program.tasks.kind[row]) == TaskKind.NOTIFY_POST
    if cell >= transports.cells:
        stream, index = program.local_notifies.slots[
            (cell - transports.cells) % len(program.local_notifies.slots)
        ]
        return f"notify {index} of {spell_stream(stream)}"
    end, index = divmod(cell, transports.stride)
    name = NOTIFY_NAMES[index] if index < OWN_NOTIFIES else f"notify {index - OWN_NOTIFIES}"
    owner, peer = int(transports.rank[end]), int(transports.peer[end])
    return f"{name} of rank {owner}" if is_post else f"{name} from rank {peer}"


def spell_memory(program: Program, buffer: int, offset: int, size: int) -> str:
    """Return `buffer[start:stop]` in bytes."""
    name = program.buffers[buffer]
    return f"{BUFFER_WORDS.get(name, name)}[{offset}:{offset + size}]"


def spell_task(program: Program, row: int) -> str:
    """Return one line: where the task is and what it does."""
    tasks = program.tasks
    kind = TaskKind(int(tasks.kind[row]))
    rank, stream = int(tasks.rank[row]), int(tasks.stream[row])
    mine = int(((tasks.rank == rank) & (tasks.stream == stream)).sum())
    place = f"rank {rank} {spell_stream(stream):6} task {int(tasks.index[row]) + 1}/{mine}"
    return f"{place}  {spell_action(program, row, kind)}   {spell_line_of(program, row)}".rstrip()


def spell_action(program: Program, row: int, kind: TaskKind) -> str:
    """Return what a task does, in words."""
    tasks = program.tasks
    if kind is TaskKind.NOTIFY_WAIT:
        return f"waits for {spell_cell(program, row)}"
    if kind is TaskKind.NOTIFY_POST:
        return f"posts {spell_cell(program, row)}"
    if kind is TaskKind.COMPUTE:
        return f"computes {tasks.table.duration_us[tasks.instruction[row]]:g} us"
    table, at, size = tasks.table, int(tasks.instruction[row]), int(tasks.size[row])
    into = int(table.dst_size[at]) if table.has_dst_size[at] else size
    src = spell_memory(program, int(table.src_buffer[at]), int(tasks.src_offset[row]), size)
    dst = spell_memory(program, int(table.dst_buffer[at]), int(tasks.dst_offset[row]), into)
    if kind.reads_remote:
        src = f"rank {int(tasks.peer[row])} {src}"
    if kind.writes_remote:
        dst = f"rank {int(tasks.peer[row])} {dst}"
    return f"{kind.spelling} {src} to {dst}"
