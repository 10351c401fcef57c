"""Tasks, notifies and memory in words: one form for errors, findings and traces.

Ranks, streams of a rank and tasks of a stream count from 0 in every output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from hccl_py.enums import TaskKind

if TYPE_CHECKING:
    from hccl_py.program.program import Program

BUFFER_WORDS = {
    "IN": "user_in",
    "OUT": "user_out",
    "CCL_IN": "CCL_In",
    "CCL_OUT": "CCL_Out",
    "SCRATCH": "scratch",
}

_VERBS = {
    TaskKind.COPY: ("copies", "to"),
    TaskKind.READ: ("reads", "to"),
    TaskKind.WRITE: ("writes", "to"),
    TaskKind.RDMA_WRITE: ("writes", "to"),
}


NAMED = 4
"""Ranks that a message names one by one."""


class ByteRange(NamedTuple):
    """Bytes start .. stop of a buffer of a rank; `buffer` is its number in `Program.buffers`."""

    rank: int
    buffer: int
    start: int
    stop: int


def ranges_of(program: Program, row: int) -> tuple[ByteRange, ByteRange]:
    """Return source and destination of a task that moves data."""
    tasks, table, at = program.tasks, program.tasks.table, int(program.tasks.instruction[row])
    kind, rank, peer = TaskKind(int(table.kind[at])), int(tasks.rank[row]), int(tasks.peer[row])
    size = int(tasks.size[row])
    stated = int(table.dst_size[at])
    src, dst = int(tasks.src_offset[row]), int(tasks.dst_offset[row])
    return (
        ByteRange(peer if kind.reads_remote else rank, int(table.src_buffer[at]), src, src + size),
        ByteRange(
            peer if kind.writes_remote else rank,
            int(table.dst_buffer[at]),
            dst,
            dst + (size if stated < 0 else stated),
        ),
    )


def format_stream(stream: int, names: Sequence[str] = ()) -> str:
    """Return the stream's own name, or else `main` or `sub k`, subs counted from 0."""
    if stream < len(names):
        return names[stream]
    return "main" if stream == 0 else f"sub {stream - 1}"


def format_ranks(ranks: Sequence[int]) -> str:
    """Return `rank 3`, `ranks 0, 2 and 5`, `ranks 0 to 7` or `ranks 0, 2, 4, 5 and 9 more`."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if len(ranks) > 2 and ranks[-1] - ranks[0] == len(ranks) - 1:
        return f"ranks {ranks[0]} to {ranks[-1]}"
    if len(ranks) > NAMED:
        return f"ranks {', '.join(map(str, ranks[:NAMED]))} and {len(ranks) - NAMED} more"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"


def format_number(index: int, copy: int = 0) -> str:
    """Return `task k`, counted from 0 in every copy of the op, and which copy that is."""
    return f"task {index} of op {copy + 1}" if copy else f"task {index}"


def format_place(program: Program, row: int, copy: int = 0) -> str:
    """Return `rank r main task k` of a task row, with the copy of the op if it is not the first."""
    tasks = program.tasks
    stream = _stream_of(program, row)
    return f"rank {int(tasks.rank[row])} {stream} {format_number(int(tasks.index[row]), copy)}"


def _stream_of(program: Program, row: int) -> str:
    stream = int(program.tasks.table.stream[program.tasks.instruction[row]])
    return format_stream(stream, program.stream_names)


def format_line_of(program: Program, row: int) -> str:
    """Return the author's line of a task row, or nothing."""
    number = int(program.tasks.table.line[program.tasks.instruction[row]])
    return program.lines[number] if number >= 0 else ""


def format_task(program: Program, row: int) -> str:
    """Return one line: where the task is, what it does, and the author's line."""
    tasks = program.tasks
    stream = _stream_of(program, row)
    place = f"rank {int(tasks.rank[row])} {stream:6} {format_number(int(tasks.index[row]))}"
    return f"{place}  {format_action(program, row)}   {format_line_of(program, row)}".rstrip()


def notify_name(program: Program, cell: int) -> str:
    """Return the name of a notify: `Ack` and the like, what a file calls it, or `notify k` where it
    has no name; `notify k of sub j` for a local one.
    """
    transports = program.transports
    if cell >= transports.cells:
        slots = program.local_notifies.slots
        stream, index = slots[(cell - transports.cells) % len(slots)]
        return f"notify {index} of {format_stream(stream, program.stream_names)}"
    return transports.name_of(cell % transports.stride)


def format_notify(program: Program, row: int) -> str:
    """Return the notify that a post sets or a wait clears: `Ack of rank 1`, `Ack from rank 1`."""
    transports, tasks, cell = program.transports, program.tasks, int(program.tasks.cell[row])
    name = notify_name(program, cell)
    if cell >= transports.cells:
        return name
    end = cell // transports.stride
    if tasks.table.kind[tasks.instruction[row]] == TaskKind.NOTIFY_POST:
        return f"{name} of rank {int(transports.rank[end])}"
    return f"{name} from rank {int(transports.peer[end])}"


def format_action(program: Program, row: int, *, in_sentence: bool = False) -> str:
    """Return the action of a task: `posts Ack of rank 1`, `read rank 1 CCL_In[0:64] to
    user_out[0:64]`; in a sentence, `reads rank 1's CCL_In[0:64] to rank 0's user_out[0:64]`.
    """
    tasks = program.tasks
    at = int(tasks.instruction[row])
    kind = TaskKind(int(tasks.table.kind[at]))
    if kind is TaskKind.NOTIFY_WAIT:
        return f"waits for {format_notify(program, row)}"
    if kind is TaskKind.NOTIFY_POST:
        return f"posts {format_notify(program, row)}"
    if kind is TaskKind.COMPUTE:
        return f"computes {tasks.table.duration_us[at]:g} us"
    src, dst = ranges_of(program, row)
    if in_sentence:
        verb, to = _VERBS.get(kind, ("reduces", "into"))
        whose = (f"rank {memory.rank}'s " for memory in (src, dst))
    else:
        verb, to, rank = kind.spelling, "to", int(tasks.rank[row])
        whose = ("" if m.rank == rank else f"rank {m.rank} " for m in (src, dst))
    return f"{verb} {next(whose)}{_memory(program, src)} {to} {next(whose)}{_memory(program, dst)}"


def _memory(program: Program, memory: ByteRange) -> str:
    name = program.buffers[memory.buffer]
    return f"{BUFFER_WORDS.get(name, name)}[{memory.start}:{memory.stop}]"
