"""From any program to the steps of threadblocks.

One walk over the program in a topological order. A stream becomes a threadblock where every piece
of it fits:

    write to a peer             s, on the connection to the stream that waits for its post
    wait for such a post        r into the memory that was written; rrc where the write reduces
    wait, then copies and reductions out of the FIFO that was written, writes on
                                r, rrc, rcs, rrs, rrcs, as imported programs have them
    copy, reduce                cpy, re
    local post, local wait      depid, deps
    other posts to a peer       nothing: that a receiver is ready is what a FIFO's credits say

What does not fit is refused with the task: reads of peers' memory, two peers in one direction, data
that no post announces.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from hccl_interop.msccl.layout import FIFO
from hccl_py.enums import TaskKind
from hccl_py.errors import NotSupportedError
from hccl_py.program.describe import ByteRange, format_action, format_place, ranges_of
from hccl_py.program.program import Program

_HINT = "docs/msccl.md says which programs fit."
_WRITES = (TaskKind.WRITE, TaskKind.RDMA_WRITE)
_REDUCING = (TaskKind.WRITE_REDUCE, TaskKind.RDMA_WRITE_REDUCE)
_READS = (TaskKind.READ, TaskKind.READ_REDUCE)

Stream = tuple[int, int]
"""Rank and stream."""


class LocalRange(NamedTuple):
    """Bytes of a rank's own buffer."""

    buffer: int
    start: int
    size: int

    @staticmethod
    def of(found: ByteRange) -> LocalRange:
        """Return a range without its rank."""
        return LocalRange(found.buffer, found.start, found.stop - found.start)


@dataclass
class ExportStep:
    """A step of a threadblock. Its type follows from the tasks that were seen so far.

    `row` is the task that it comes from; `depends` are steps of other streams of its rank.
    """

    type: str
    row: int
    src: LocalRange | None
    dst: LocalRange | None
    depends: list[tuple[Stream, int]]
    size: int


class MadeConnection(NamedTuple):
    """A connection to make: the sending and the receiving stream, and the plane of the messages."""

    sender: Stream
    receiver: Stream
    plane: int


@dataclass
class MadeBlock:
    """A threadblock: its steps, and where it sends to and receives from."""

    steps: list[ExportStep] = field(default_factory=list)
    send: MadeConnection | None = None
    recv: MadeConnection | None = None


@dataclass
class _Message:
    """Data on its way: what is written where, by which task, and on which plane."""

    row: int
    sender: Stream
    landing: LocalRange
    reduces: bool
    plane: int
    number: int


@dataclass
class _Open:
    """A receive whose data lies in the FIFO: which step it has become so far."""

    step: ExportStep
    landing: LocalRange
    is_moving: bool = False


def refusal(program: Program, row: int, why: str) -> NotSupportedError:
    """Return the error of a task that does not fit."""
    return NotSupportedError(
        f"The program is no MSCCL algorithm: {format_place(program, row)} "
        f"{format_action(program, row, in_sentence=True)}, and {why}.",
        _HINT,
    )


def blocks_of(
    program: Program, passes: int = -1
) -> tuple[dict[Stream, MadeBlock], dict[int, list[ExportStep]]]:
    """Return the threadblocks by rank and stream, and the copies that an imported program begins
    with, by rank; of the first so many passes (rounds), or of all.

    Raises NotSupportedError with the first task that does not fit, and what `linked.check` raises
    for a program that does not run to its end.
    """
    program.linked.check(program)
    walk = _Walk(program)
    order = program.linked.order
    if passes >= 0:
        rounds = program.tasks.table.round[program.tasks.instruction[order]]
        order = order[rounds < passes]
    for row in order.tolist():
        walk.take(row)
    return walk.finished()


class _Walk:
    """Task by task; every stream has a threadblock, dependencies that its next step gets, and
    perhaps a receive that is still open.
    """

    def __init__(self, program: Program) -> None:
        self._program, self._tasks = program, program.tasks
        self._kinds = program.tasks.kind.tolist()
        self._streams = program.tasks.stream.tolist()
        self._fifo = program.buffers.index(FIFO) if FIFO in program.buffers else -1
        self._is_imported = program.executor.startswith("MSCCL ")
        self._blocks: dict[Stream, MadeBlock] = defaultdict(MadeBlock)
        self._pending: dict[Stream, list[tuple[Stream, int]]] = defaultdict(list)
        self._open: dict[Stream, _Open] = {}
        self._unannounced: dict[tuple[Stream, int], list[_Message]] = defaultdict(list)
        self._carried: dict[int, list[_Message]] = {}
        self._tokens: dict[int, list[tuple[Stream, int]]] = {}
        self._written: dict[Stream, int] = defaultdict(int)
        self._received: dict[MadeConnection, int] = defaultdict(int)
        self._first: dict[int, list[ExportStep]] = defaultdict(list)

    def take(self, row: int) -> None:
        """Take one task."""
        kind = TaskKind(self._kinds[row])
        stream = int(self._tasks.rank[row]), int(self._streams[row])
        if kind is TaskKind.NOTIFY_POST:
            self._post(row, stream)
        elif kind is TaskKind.NOTIFY_WAIT:
            self._wait(row, stream)
        elif kind in _READS:
            raise refusal(self._program, row, "threadblocks do not read the memory of peers")
        elif kind is TaskKind.COMPUTE:
            raise refusal(self._program, row, "threadblocks have no kernels")
        elif kind in _WRITES or kind in _REDUCING:
            self._write(row, stream, kind)
        else:
            self._local(row, stream, kind)

    def finished(self) -> tuple[dict[Stream, MadeBlock], dict[int, list[ExportStep]]]:
        """Return the threadblocks; a stream without steps is one, too, unless it is main."""
        for stream in [*self._open]:
            self._close(stream)
        for messages in self._unannounced.values():
            for message in messages:
                raise refusal(self._program, message.row, "no post says that the data is there")
        for stream in sorted({*zip(self._tasks.rank.tolist(), self._streams, strict=True)}):
            if stream[1]:
                _ = self._blocks[stream]
        used = {s: block for s, block in sorted(self._blocks.items()) if s[1] or block.steps}
        return used, self._first

    def _post(self, row: int, stream: Stream) -> None:
        end = int(self._tasks.end[row])
        if end < 0:
            self._close(stream)
            block = self._blocks[stream]
            own = [(stream, len(block.steps) - 1)] if block.steps else []
            self._tokens[row] = [*self._pending[stream], *own]
        elif self._unannounced[stream, end]:
            self._carried[row] = self._unannounced.pop((stream, end))
        elif stream in self._open and self._open[stream].is_moving:
            self._close(stream)

    def _wait(self, row: int, stream: Stream) -> None:
        post = int(self._program.linked.post_of[row])
        if stream in self._open and self._open[stream].is_moving:
            self._close(stream)
        if int(self._tasks.end[row]) < 0:
            self._close(stream)
            own = [token for token in self._tokens[post] if token[0] != stream]
            self._pending[stream] += own
        for message in self._carried.get(post, ()):
            self._receive(row, stream, message)

    def _receive(self, row: int, stream: Stream, message: _Message) -> None:
        self._close(stream)
        link = MadeConnection(message.sender, stream, message.plane)
        for block, is_sender in (
            (self._blocks[message.sender], True),
            (self._blocks[stream], False),
        ):
            known = block.send if is_sender else block.recv
            if known is not None and known != link:
                there = message.row if is_sender else row
                verb = "sends to" if is_sender else "receives from"
                raise refusal(self._program, there, f"its threadblock already {verb} another one")
            if is_sender:
                block.send = link
            else:
                block.recv = link
        if message.number != self._received[link]:
            raise refusal(self._program, row, "messages arrive in another order than they are sent")
        self._received[link] += 1
        landing = message.landing
        if landing.buffer == self._fifo:
            step = self._step(stream, "r", row, None, None, landing.size)
            self._open[stream] = _Open(step, landing)
        elif message.reduces:
            self._step(stream, "rrc", row, landing, landing, landing.size)
        else:
            self._step(stream, "r", row, None, landing, landing.size)

    def _write(self, row: int, stream: Stream, kind: TaskKind) -> None:
        src, dst = (LocalRange.of(found) for found in ranges_of(self._program, row))
        reduces = kind in _REDUCING
        if reduces and dst.buffer == self._fifo:
            raise refusal(self._program, row, "a message replaces what was in its slot")
        end = int(self._tasks.end[row])
        found = self._open.get(stream)
        if found is not None and self._passes_on(found, src):
            step = found.step
            if step.type == "r":
                if step.dst is None:
                    raise refusal(self._program, row, "what is sent on must be kept, too (rcs)")
                step.type = "rcs"
            else:
                step.type = "rrs" if step.dst is None else "rrcs"
            del self._open[stream]
        elif src.buffer == self._fifo:
            raise refusal(self._program, row, "it sends what was not just received")
        else:
            self._close(stream)
            self._step(stream, "s", row, src, None, src.size)
        self._written[stream] += 1
        plane = int(self._program.transports.plane[end])
        self._unannounced[stream, end].append(
            _Message(row, stream, dst, reduces, plane, self._written[stream] - 1)
        )

    @staticmethod
    def _passes_on(found: _Open, src: LocalRange) -> bool:
        """Return True if a write sends the data that a receive has taken."""
        return src == found.landing or (
            found.step.type == "rrc" and found.step.src == found.step.dst == src
        )

    def _local(self, row: int, stream: Stream, kind: TaskKind) -> None:
        src, dst = (LocalRange.of(found) for found in ranges_of(self._program, row))
        found = self._open.get(stream)
        reduces = kind is TaskKind.REDUCE
        if found is not None and found.landing in (src, dst):
            self._taken(row, found, src, dst, reduces=reduces)
            return
        self._close(stream)
        if self._fifo in (src.buffer, dst.buffer):
            raise refusal(self._program, row, "nothing was just received there")
        if self._is_imported and not reduces and self._is_first(stream):
            self._first[stream[0]].append(ExportStep("copy", row, src, dst, [], src.size))
            return
        self._step(stream, "re" if reduces else "cpy", row, src, dst, src.size)

    def _is_first(self, stream: Stream) -> bool:
        """Return True for main before all other tasks: imported copies are there."""
        return stream[1] == 0 and not self._blocks[stream].steps and not self._pending[stream]

    def _taken(
        self, row: int, found: _Open, src: LocalRange, dst: LocalRange, *, reduces: bool
    ) -> None:
        """Let an open receive become what a copy or a reduction of its data makes of it."""
        step, landing = found.step, found.landing
        is_new = step.type == "r" and step.dst is None
        found.is_moving = True
        if is_new and reduces and src == landing:
            step.type, step.src, step.dst = "rrc", dst, dst
        elif is_new and reduces:
            step.type, step.src = "rrs", src  # until a copy or a write says what becomes of it
        elif not reduces and src == landing and (is_new or (step.type == "rrs" and not step.dst)):
            step.type = "r" if is_new else "rrc"
            step.dst = dst
        else:
            raise refusal(self._program, row, "no step does that with what is received")

    def _step(
        self,
        stream: Stream,
        kind: str,
        row: int,
        src: LocalRange | None,
        dst: LocalRange | None,
        size: int,
    ) -> ExportStep:
        made = ExportStep(kind, row, src, dst, self._pending.pop(stream, []), size)
        self._blocks[stream].steps.append(made)
        return made

    def _close(self, stream: Stream) -> None:
        """End an open receive: what it received must have gone somewhere."""
        found = self._open.pop(stream, None)
        if found is None:
            return
        step = found.step
        if step.dst is None:
            raise refusal(self._program, step.row, "what is received goes nowhere")
