"""One launch of a kernel: its listing, line by line, with values in registers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from hccl_interop.cpp.ccu.long_loops import KEPT, folded
from hccl_interop.cpp.ccu.loops import LoopRun, LoopShift, runs_of
from hccl_interop.cpp.ccu.missions import (
    BIT,
    POST,
    REDUCE,
    START,
    WAIT,
    Extent,
    Origin,
    RankTasks,
    StreamNames,
)
from hccl_interop.cpp.ccu.move_memory import (
    BUFFER_BYTES,
    FIRST_BUFFER_PART,
    KINDS,
    AddressSpace,
    Refused,
    Side,
    check_length,
    is_buffer,
)
from hccl_interop.cpp.ccu.registers import (
    SLOT,
    Clock,
    Slot,
    ThreadOrder,
    Undefined,
    computed,
    holds,
)
from hccl_interop.cpp.merge import Meeting
from hccl_interop.cpp.traces import BITS, Complaint, ListedLine, Listing, RankTrace
from hccl_py.enums import DataType, ReduceOp
from hccl_py.program.instruction import ONE_SUM

Key: TypeAlias = tuple[object, ...]
Keys: TypeAlias = tuple[Key, ...]
Steps: TypeAlias = Iterator[Keys]

_MOST_STEPS = 1_000_000
_MOST_BODIES = 4096
_MOST_UNFOLDED = 64
_BUFFERS = 1536
"""Buffers of a die: those of folded loops lie behind them."""

_NUMBER = (1 << 48) - 1
_NONE = 255
_WIDENED = (DataType.FP16.number, DataType.BF16.number)
"""Data types that the CCU adds in fp32, buffer after buffer, before it rounds once."""


class Stopped(Exception):
    """A thread that cannot go on: its complaint says why."""


class Shared:
    """State of all ranks: streams and tasks, variables of channels, and the ends of channels."""

    def __init__(
        self,
        ranks: Sequence[RankTrace],
        meeting: Meeting,
        names: StreamNames,
        set_bit: Callable[[Key, Clock], None],
        start: Callable[[Steps, ThreadOrder], None],
    ) -> None:
        self.names, self.set_bit, self.start = names, set_bit, start
        self.tasks = [RankTasks() for _ in ranks]
        self.slots: dict[tuple[int, int, int], Slot] = {}
        self.memory = AddressSpace(*ranks[0].memory, len(ranks))
        self.far: dict[tuple[int, int], tuple[int, int]] = {}
        pairs = zip(meeting.rank.tolist(), meeting.channel.tolist(), strict=True)
        for (low, high), (of_low, of_high) in pairs:
            self.far[low, of_low], self.far[high, of_high] = (high, of_high), (low, of_low)

    def slot(self, rank: int, channel: int, index: int) -> Slot:
        """Return a variable of a channel."""
        return self.slots.setdefault((rank, channel, index), Slot())


class Block(NamedTuple):
    """Lines of a listing, and by how much a loop shifts what they use."""

    first: int
    end: int
    shift: LoopShift = LoopShift()


@dataclass
class KernelRun:
    """A launch: its arguments, its mission's stream, and the values of its registers."""

    shared: Shared
    trace: RankTrace
    listing: Listing
    arguments: tuple[int, ...]
    mission: int
    call: int
    order: ThreadOrder
    registers: dict[int, int] = field(default_factory=dict)
    steps: int = 0

    @property
    def rank(self) -> int:
        """The rank that launches."""
        return self.trace.rank

    @property
    def tasks(self) -> RankTasks:
        """The tasks of the rank."""
        return self.shared.tasks[self.rank]

    def block(self, block: Block, stream: int) -> Steps:
        """Run lines on a stream: the mission's, or a loop's."""
        lines, jumps = self.listing.lines, self.listing.jumps
        at = block.first
        while at < block.end:
            line = lines[at]
            self._count(line)
            try:
                if line.operation in _BRANCHES:
                    at = self._branch(line, at, jumps.get(at, at))
                elif line.operation == "group":
                    yield from self._group(line, stream)
                elif line.operation.startswith("wait_"):
                    yield self._wait(line, stream, block.shift)
                else:
                    self._run(line, stream, block.shift)
            except Undefined as error:
                self._complain("UNDEFINED_VALUE", line, str(error))
                raise Stopped from None
            except Refused as error:
                self._complain(error.name, line, f"{_spoken(line)}: {error}")
            at += 1

    def _count(self, line: ListedLine) -> None:
        self.steps += 1
        if self.steps > _MOST_STEPS:
            what = f"The kernel runs more than {_MOST_STEPS} instructions: CCU_WHILE does not end"
            self._complain("CODE_ENDLESS", line, what)
            raise Stopped

    def _complain(self, name: str, line: ListedLine, message: str) -> None:
        text = f"kernel {self.listing.name}, {message}"
        self.trace.complaints.append(Complaint(name, line.stack, self.call, text))

    def _origin(self, line: ListedLine) -> Origin:
        return Origin(line.stack, self.call)

    # Values.

    def value(self, handle: int) -> int:
        """Return the value of a register; Undefined where it has none for certain."""
        if handle >> 48 == SLOT:
            channel, index = (handle & _NUMBER) >> 8, handle & 255
            slot = self.shared.slot(self.rank, channel, index)
            try:
                return slot.read(self.order)
            except Undefined as error:
                raise Undefined(f"{self._slot_words(channel, index)} {error}") from None
        found = self.registers.get(handle)
        if found is None:
            what = "An address" if handle >> 48 == 2 else "A variable"
            raise Undefined(f"{what} is used before the kernel has given it a value")
        return found

    def _slot_words(self, channel: int, index: int) -> str:
        peer = self.trace.channels[channel].peer
        return f"variable {index} of the channel to rank {peer}, which that rank writes,"

    def _set(self, handle: int, value: int) -> None:
        if handle >> 48 == SLOT:
            channel, index = (handle & _NUMBER) >> 8, handle & 255
            self.shared.slot(self.rank, channel, index).write(value, self.order)
        else:
            self.registers[handle] = value

    # Lines.

    def _branch(self, line: ListedLine, at: int, other: int) -> int:
        """Return the line before the next one; `other` is the line that a branch goes with."""
        what = line.operation
        if what in ("if", "while", "end_do"):
            left, right, how, is_number = line.operands
            is_true = holds(how, self.value(left), right if is_number else self.value(right))
            return other if is_true == (what == "end_do") else at
        return other - (what == "end_while")  # end_if and do go with themselves

    def _run(self, line: ListedLine, stream: int, shift: LoopShift) -> None:
        what, operands = line.operation, line.operands
        if what == "set":
            self._set(operands[0], operands[1])
        elif what == "copy_register":
            self._set(operands[0], self.value(operands[1]))
        elif what in ("add", "add_number"):
            to, left, right, sign = operands
            number = right if what == "add_number" else self.value(right)
            self._set(to, computed(chr(sign), self.value(left), number))
        elif what == "argument":
            self._set(operands[0], self.arguments[operands[1]])
        elif what in ("record_event", "record_tag"):
            clock = self.order.step()
            for lane, key in self._signals(line, shift):
                self.tasks.post(stream, lane, BIT, self._origin(line))
                self.shared.set_bit(key, clock)
        elif what in ("record_notify", "write_slot"):
            self._record_notify(line, stream)
        else:
            self._move(line, stream, shift)

    # SetBits.

    def _signals(self, line: ListedLine, shift: LoopShift) -> list[tuple[int, Key]]:
        """Return the lane and the key of every bit of an event or a tag; kernels of both dies have
        the same tags.
        """
        number, bits = line.operands[0], _bits(line.operands[1])
        name = f"tag {number}"
        key: Key = ("tag", self.rank, number)
        if not line.operation.endswith("_tag"):
            event, at = self._event(number, shift), self.listing
            name = f"die {at.die}, mission {at.mission}, event {event}"
            key = ("event", self.rank, self.mission, event)
        lane = self.shared.names.number
        return [(lane(f"{name} bit {bit}"), (*key, bit)) for bit in bits]

    def _event(self, handle: int, shift: LoopShift) -> int:
        event = (handle & _NUMBER) + shift.event
        if event >= self.listing.events:
            raise Refused(
                "RESOURCE_EXCEEDED",
                f"the event offset of a LoopGroup leads to event {event} of a kernel that took "
                f"{self.listing.events}",
            )
        return event

    def _wait(self, line: ListedLine, stream: int, shift: LoopShift) -> Keys:
        """Add the waits for all bits of a mask, and return what they wait for."""
        origin, operands = self._origin(line), line.operands
        keys: list[Key] = []
        if line.operation == "wait_notify":
            channel, notify, mask = operands
            for bit in _bits(mask):
                self.tasks.signal(WAIT, stream, channel, notify * BITS + bit, origin)
                keys.append(("notify", self.rank, channel, notify * BITS + bit))
        else:
            for lane, key in self._signals(line, shift):
                self.tasks.wait(stream, lane, BIT, origin)
                keys.append(key)
        return tuple(keys)

    def _record_notify(self, line: ListedLine, stream: int) -> None:
        channel, notify, mask = line.operands[:3]
        peer, theirs = self.shared.far[self.rank, channel]
        if line.operation == "write_slot":
            value, slot = self.value(line.operands[3]), line.operands[4]
            try:
                self.shared.slot(peer, theirs, slot).write(value, self.order)
            except Undefined as error:
                raise Undefined(f"variable {slot} of rank {peer}'s channel {error}") from None
        clock = self.order.step()
        for bit in _bits(mask):
            number = notify * BITS + bit
            self.tasks.signal(POST, stream, channel, number, self._origin(line))
            self.shared.set_bit(("notify", peer, theirs, number), clock)

    # Moves.

    def _move(self, line: ListedLine, stream: int, shift: LoopShift) -> None:
        """Add a move on its lane, and set the bits of its event."""
        origin, tasks, signals = self._origin(line), self.tasks, self._signals(line, shift)
        first = signals[0][0]
        try:
            pieces = self._pieces(line, shift)
        finally:  # a refused move is reported, and the kernel goes on as if it had run
            clock = self.order.step()
            for _, key in signals:
                self.shared.set_bit(key, clock)
        tasks.post(stream, first, START, origin)
        tasks.wait(first, first, START, origin)
        for piece in pieces:
            tasks.move(piece.kind, first, *piece[1:], origin)
        for lane, _ in signals:
            tasks.post(first, lane, BIT, origin)

    def _pieces(self, line: ListedLine, shift: LoopShift) -> list[_Piece]:
        """Return the pieces of a move: one, or a chain of reductions that is one sum where the CCU
        rounds it once; raises Refused.
        """
        size = self.value(line.operands[2])
        if line.operation == "reduce_buffers":
            check_length(size, over_channel=False)
            size *= shift.repeats
            dtype, op = line.operands[4:6]
            first, *others = (self._buffer(handle, size, shift) for handle in line.operands[6:])
            joined = ONE_SUM if dtype in _WIDENED and op == ReduceOp.SUM else 0
            return [
                _Piece(REDUCE, -1, first, other, size, (dtype, op), joined if k else 0)
                for k, other in enumerate(others)
            ]
        channel, dtype, op = line.operands[3:6]
        over = line.operation not in ("copy", "reduce")
        check_length(size, over_channel=over)
        size *= shift.repeats
        peer = self.trace.channels[channel].peer if over else self.rank
        reads = line.operation.startswith("read")
        owners = (self.rank, peer) if reads else (peer, self.rank)
        to, source = (
            self._extent(line, what, at, owner, size, shift)
            for what, at, owner in (("the destination", 6, owners[0]), ("the source", 8, owners[1]))
        )
        reduction = (-1, -1) if dtype == _NONE else (dtype, op)
        return [_Piece(KINDS[line.operation], channel if over else -1, to, source, size, reduction)]

    def _extent(
        self, line: ListedLine, what: str, place: int, owner: int, size: int, shift: LoopShift
    ) -> Extent:
        """Return the memory of a side, whose operands begin at `place`."""
        at, token = line.operands[place : place + 2]
        if is_buffer(at):
            return self._buffer(at, size, shift)
        side = Side(self.value(at) + shift.address, self.value(token))
        found = self.shared.memory.extent(what, side, owner)
        if fault := self.shared.memory.fault_of_token(what, side, owner):
            self._complain("WRONG_TOKEN", line, f"{_spoken(line)}: {fault}")
        return found

    def _buffer(self, handle: int, size: int, shift: LoopShift) -> Extent:
        number = (handle & _NUMBER) + shift.buffer
        if number * BUFFER_BYTES + size // shift.repeats > self.listing.buffers * BUFFER_BYTES:
            raise Refused(
                "RESOURCE_EXCEEDED",
                f"{size} bytes from buffer {number} on, of a kernel that took "
                f"{self.listing.buffers} buffers of {BUFFER_BYTES} bytes",
            )
        part = FIRST_BUFFER_PART + self.listing.die
        offset = (self.listing.first_buffer + number) * BUFFER_BYTES
        if shift.repeats > 1:
            offset = _BUFFERS * BUFFER_BYTES + number * BUFFER_BYTES * shift.repeats
        return Extent(self.rank, part, offset)

    # Loops.

    def _group(self, line: ListedLine, stream: int) -> Steps:
        """Run the loops of a LoopGroup side by side, and wait for all."""
        runs = runs_of(line.operands, self.value)
        if len(runs) > line.operands[6]:
            raise Refused(
                "RESOURCE_EXCEEDED",
                f"{len(runs)} loops run, copies included, and the group is for {line.operands[6]}",
            )
        rest: list[LoopRun] | None = []
        bodies = sum(run.iterations for run in runs)
        if bodies > _MOST_UNFOLDED:
            rest = folded(runs, self.listing.bodies, self.listing.lines, self.value)
        if rest is None and bodies > _MOST_BODIES:
            raise Refused(
                "UNSUPPORTED_CALL",
                f"its {bodies} iterations do not adjoin, and no more than {_MOST_BODIES} are "
                "recorded one by one: record a smaller size",
            )
        if rest:
            runs = [run._replace(iterations=min(run.iterations, KEPT)) for run in runs]
        yield from self._together(runs, line, stream)
        if rest:
            yield from self._together(rest, line, stream, len(runs))

    def _together(
        self, runs: Sequence[LoopRun], line: ListedLine, stream: int, first: int = 0
    ) -> Steps:
        """Run loops side by side, each on a stream of its own, numbered from `first`."""
        origin = self._origin(line)
        loops: list[int] = []
        for number, run in enumerate(runs, first):
            at = self.listing
            loop = self.shared.names.number(f"die {at.die}, mission {at.mission}, loop {number}")
            loops.append(loop)
            self.tasks.post(stream, loop, START, origin)
            self.shared.start(self._loop(run, loop, origin), self.order)
        yield tuple(("loop", self.rank, loop) for loop in loops)
        for loop in loops:
            self.tasks.wait(stream, loop, BIT, origin)

    def _loop(self, run: LoopRun, loop: int, origin: Origin) -> Steps:
        self.tasks.wait(loop, loop, START, origin)
        try:
            for iteration in range(run.iterations):
                block = Block(*self.listing.bodies[run.number], run.shift(iteration))
                yield from self.block(block, loop)
        except Stopped:
            return
        self.tasks.post(loop, loop, BIT, origin)
        self.shared.set_bit(("loop", self.rank, loop), self.order.step())


class _Piece(NamedTuple):
    kind: int
    channel: int
    to: Extent
    source: Extent
    size: int
    reduction: tuple[int, int]
    joined: int = 0


_BRANCHES = frozenset(
    ("if", "else", "end_if", "while", "end_while", "do", "end_do", "loop", "end_loop")
)


@lru_cache(maxsize=1 << 16)
def _bits(mask: int) -> tuple[int, ...]:
    return tuple(bit for bit in range(BITS) if mask >> bit & 1)


_CALLS = {
    "copy": "LocalCopy",
    "reduce": "LocalReduce",
    "reduce_buffers": "LocalReduce",
    "read": "Read",
    "read_reduce": "ReadReduce",
    "write": "Write",
    "write_reduce": "WriteReduce",
    "group": "LoopGroup",
    "wait_event": "EventWait",
    "record_event": "EventRecord",
}


def _spoken(line: ListedLine) -> str:
    """Return the call of an operation, as authors write it."""
    return _CALLS.get(line.operation, line.operation)
