"""A program as hcomm's checker would print it, for tools that draw such logs.

A log has HCCL's notifies of a link, READY, FIN and FIN_ACK, and one more (`build.py`), and HCCL's
buffers: what has others is refused, with the task. Labels, source lines and what every rank asked
for are not in a log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from hccl_interop.checker_logs.build import BUFFERS, INDEXED, INDEXED_TAGS, NOTIFIES
from hccl_py.enums import DataType, LinkKind, ReduceOp, TaskKind
from hccl_py.errors import NotSupportedError
from hccl_py.program.describe import format_place
from hccl_py.program.matching import queues_of
from hccl_py.program.program import Program

_NAMES = {
    TaskKind.COPY: "LocalCopy",
    TaskKind.REDUCE: "LocalReduce",
    TaskKind.READ: "Read",
    TaskKind.READ_REDUCE: "ReadReduce",
    TaskKind.WRITE: "Write",
    TaskKind.WRITE_REDUCE: "WriteReduce",
    TaskKind.RDMA_WRITE: "Write",
    TaskKind.RDMA_WRITE_REDUCE: "WriteReduce",
}
_TAGS = (("TXACK", "RXACK"), ("TXDATASIGNAL", "RXDATASIGNAL"), ("POSTFINACK", "WAITFINACK"))
_HINT = "A program file (.json, .npz) keeps all of it."
_MOST_DTYPE = 12


def to_log(program: Program) -> str:
    """Return the log of a test of GoogleTest that prints the tasks of a program.

    Reading it again gives the same tasks. NotSupportedError with the first task that a log cannot
    have.
    """
    if program.counts_posts:
        raise NotSupportedError("Notifies of HCCL's logs do not count posts.", _HINT)
    name = _name(program)
    lines = [f"[ RUN      ] {name}", *_Printer(program).lines(), f"[       OK ] {name} (0 ms)"]
    return "\n".join(lines) + "\n"


def _name(program: Program) -> str:
    """Return the name of the test: its op is that of the program."""
    if not program.has_op:
        return re.sub(r"[^\w./]+", "_", program.executor)[:200] or "program"
    suite = "".join(word.title() for word in program.op.name.split("_"))
    case = re.sub(r"\W+", "_", program.executor, flags=re.ASCII)[:100].strip("_")
    return f"{suite}Test.{program.op.name}" + (f"_{case}" if case else "")


class _Printer:
    """Prints tasks from the columns of a program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        tasks = program.tasks
        self._buffers = {own: name for name, own in BUFFERS.items()}
        columns = ("kind", "cell", "end", "peer", "src_offset", "dst_offset", "size", "dst_size")
        self._columns = {name: getattr(tasks, name).tolist() for name in columns}
        self._instruction = tasks.instruction.tolist()
        self._rank = tasks.rank.tolist()
        self._slots = program.local_notifies.slots
        self._topics = self._kept_topics()
        self._check_links()

    def lines(self) -> Iterator[str]:
        """Yield the lines of all ranks."""
        program = self._program
        queues = queues_of(program)
        first, rows = queues.first.tolist(), queues.rows.tolist()
        for rank in range(program.ranks):
            yield "=" * 55
            yield f"rank id is {rank}"
            for stream in range(program.streams):
                queue = rank * program.streams + stream
                yield "-" * 55
                yield f"stream/queue id is {stream}"
                for index, row in enumerate(rows[first[queue] : first[queue + 1]]):
                    place = f"[rankId:{rank}, queueId:{stream}, index:{index}]"
                    yield f"{place} {self._task(row)}"

    def _kept_topics(self) -> dict[int, int]:
        """Return the indices of the rank's own notifies, where they alone tell notifies apart: what
        was read from a log keeps its topics.
        """
        tasks = self._program.tasks
        rows = np.flatnonzero((tasks.cell >= 0) & (tasks.end < 0))
        first = self._program.transports.cells + tasks.rank[rows] * len(self._slots)
        found = {
            slot: self._slots[slot][1] for slot in np.unique(tasks.cell[rows] - first).tolist()
        }
        return found if len(set(found.values())) == len(found) else {}

    def _check_links(self) -> None:
        """Refuse two links between the same ranks whose notifies a log could not tell apart."""
        tasks, transports = self._program.tasks, self._program.transports
        rows = np.flatnonzero((tasks.cell >= 0) & (tasks.end >= 0))
        known: dict[tuple[int, int, int], int] = {}
        ends, first = np.unique(tasks.end[rows], return_index=True)
        for end, row in zip(ends.tolist(), rows[first].tolist(), strict=True):
            key = tuple(
                int(column[end]) for column in (transports.rank, transports.peer, transports.kind)
            )
            if known.setdefault(key, end) != end:  # type: ignore[arg-type]
                raise self._refusal(row, "uses one of several links between the same ranks")

    def _task(self, row: int) -> str:
        kind = TaskKind(self._columns["kind"][row])
        if kind is TaskKind.COMPUTE:
            raise self._refusal(row, "is a kernel")
        if not kind.moves_data:
            return self._notify(row, is_post=kind is TaskKind.NOTIFY_POST)
        src, dst = self._memory(row, "src"), self._memory(row, "dst")
        parts = []
        is_remote = kind.reads_remote or kind.writes_remote
        parts += [self._link(row)] if is_remote else []
        parts += [self._reduction(row)] if kind.reduces else []
        if not is_remote:
            parts += [f"srcSlice={src}", f"dstSlice={dst}"]
        else:
            here, there = (dst, src) if kind.reads_remote else (src, dst)
            parts += [f"localSlice={here}", f"remoteSlice={there}"]
        return f"{_NAMES[kind]}[{', '.join(parts)}]"

    def _link(self, row: int) -> str:
        kind = LinkKind(int(self._program.transports.kind[self._columns["end"][row]]))
        peer = self._columns["peer"][row]
        return f"remoteRank={peer}, link=link prototyp=LinkProtoStub::{kind.name}"

    def _reduction(self, row: int) -> str:
        table, at = self._program.tasks.table, self._instruction[row]
        dtype, reduce = int(table.dtype[at]), int(table.reduce[at])
        if dtype > _MOST_DTYPE:
            raise self._refusal(row, f"reduces {DataType.from_number(dtype).value}")
        return f"dataType={dtype}, reduceOp={int(ReduceOp(reduce))}"

    def _memory(self, row: int, side: str) -> str:
        table, at = self._program.tasks.table, self._instruction[row]
        number = int((table.src_buffer if side == "src" else table.dst_buffer)[at])
        name = self._program.buffers[number]
        if name not in self._buffers:
            raise self._refusal(row, f"touches {name}, which is no buffer of HCCL")
        size = self._columns["size" if side == "src" else "dst_size"][row]
        offset = self._columns[f"{side}_offset"][row]
        return f"DataSlice[BufferType::{self._buffers[name]}, offset={offset}, size={size}]"

    def _notify(self, row: int, *, is_post: bool) -> str:
        transports, cell = self._program.transports, self._columns["cell"][row]
        end = self._columns["end"][row]
        if end < 0:
            slot = cell - transports.cells - self._rank[row] * len(self._slots)
            word = "LocalPostTo" if is_post else "LocalWaitFrom"
            return f"{word}[topicId={self._topics.get(slot, slot)}]"
        index = cell - int(transports.far[end] if is_post else end) * transports.stride
        if not 0 <= index <= INDEXED:
            raise self._refusal(
                row, f"uses notify {index} of its link, and a log has {INDEXED + 1}"
            )
        word, side = ("Post", 0) if is_post else ("Wait", 1)
        notify = next(iter(NOTIFIES)) if index == INDEXED else list(NOTIFIES)[index]
        tag = INDEXED_TAGS[side] if index == INDEXED else _TAGS[index][side]
        signal = f"notifyType=NotifyTypeStub::{notify}, originated tag={tag}"
        return f"{word}[{self._link(row)}, {signal}]"

    def _refusal(self, row: int, why: str) -> NotSupportedError:
        place = format_place(self._program, row)
        return NotSupportedError(f"The program fits no log of HCCL's: {place} {why}.", _HINT)
