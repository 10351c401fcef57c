"""A rank's part of a program bound to memory: the queues of run_queues.

user memory, op-base      the caller's arrays, which differ from call to call
user memory, graph mode   a shadow in shared memory if peers access it: the caller's data is
                          copied there before the run, and back after it
other buffers             shared memory: bound once, until a region moves
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from hccl_platform.distributed.header import FIRST_NOTIFY
from hccl_platform.distributed.one_sided import (
    COPY,
    LOCKED,
    POST_LOCAL,
    POST_REMOTE,
    REDUCE,
    WAIT_LOCAL,
    WAIT_REMOTE,
    Blocked,
    Item,
    Lock,
)
from hccl_platform.distributed.shared_memory import NOTIFIES, Notifies, SharedMemory
from hccl_platform.lowering.call import call_of
from hccl_platform.lowering.memory import USER_BUFFERS
from hccl_platform.lowering.moves import COPY as NO_OP
from hccl_platform.lowering.moves import Bytes, address_of
from hccl_platform.lowering.part import MOVE, RankPart, Task
from hccl_platform.lowering.reducing import Reducer
from hccl_py.call.ops import OPS
from hccl_py.enums import POST, DataType, InPlace, ReduceOp
from hccl_py.errors import NotSupportedError
from hccl_py.program.describe import format_stream
from hccl_py.program.program import Program

_IN, _OUT = USER_BUFFERS
_Side: TypeAlias = Bytes | tuple[int, int, int]
"""One side of a move: bytes, or slot, start and stop in an array of the caller's."""


class RankContext(NamedTuple):
    """The part of a session that its bound programs share; `headers` has the words of all ranks."""

    memory: SharedMemory
    notifies: Notifies
    reducer: Reducer
    headers: Sequence[memoryview[int]]


class BoundPart:
    """One rank's part of a program under a tag, and the memory that it works on. `half` selects the
    half of alternating buffers. `landing` stands for a script's slot behind those of the program.
    """

    def __init__(
        self, tag: str, program: Program, part: RankPart, context: RankContext, half: int = 0
    ) -> None:
        self.part, self.rank = part, part.rank
        self.call = call_of(program)
        self.landing = np.zeros(0, np.uint8)
        self.has_room = False
        """True once the group's memory has the buffers of the program."""
        self.local = len(program.local_notifies.slots)
        self.reduced = _reduced_bytes(part)
        self._tag, self._context, self._memory = tag, context, context.memory
        self._buffers, self._in_place = program.buffers, bool(program.op.in_place)
        self._in_slot = _in_slot(program)
        self._halves = dict.fromkeys(program.alternating, half)
        self._slot_sizes = program.buffer_sizes.reshape(-1)
        user = [self._slot(_IN), self._slot(_OUT)]
        self._shadowed = [slot for slot in user if slot in part.remote_user_slots]
        if self._in_place and self._shadowed:
            self._shadowed = user
        context.notifies.learn(program, self.rank)
        self._names = {c: _notify_name(program, c) for c in part.cells}
        self._items = [[self._item_of(task) for task in stream] for stream in part.streams]
        self._callers: list[tuple[list[Item], int, int, _Side, _Side, Any]] = []
        self._version = -1

    def bind(self, into: npt.NDArray[Any], out: npt.NDArray[Any]) -> list[list[Item]]:
        """Return the queues of a run on the caller's arrays, which they keep until `release`."""
        if self._version != self._memory.regions.version:
            self._bind_shared()
        callers = self.callers(into, out)
        if self._in_place and self._shadowed:
            self._check_addresses(into, out)
        for slot in self._shadowed:
            self._shadow(slot)[...] = callers[slot]
        for items, place, kind, dst, src, third in self._callers:
            into_bytes = dst if isinstance(dst, np.ndarray) else callers[dst[0]][dst[1] : dst[2]]
            what = src if isinstance(src, np.ndarray) else callers[src[0]][src[1] : src[2]]
            items[place] = (kind, into_bytes, what, third)
        return self._items

    def _check_addresses(self, into: npt.NDArray[Any], out: npt.NDArray[Any]) -> None:
        """Refuse arrays whose distance is not that of the program's IN and OUT."""
        apart = self._begin(self._slot(_IN)) - self._begin(self._slot(_OUT))
        if address_of(into) - address_of(out) == apart:
            return
        if self._in_slot:
            message = f"Rank {self.rank}'s {_WORDS[self._in_slot]} is not its slot of the other."
            raise NotSupportedError(message, "The program is for calls in place, slot by slot.")
        raise NotSupportedError(
            f"Rank {self.rank}'s input and output begin at different addresses.",
            "Where peers reach them, calls in place have them at the same one.",
        )

    def callers(self, into: npt.NDArray[Any], out: npt.NDArray[Any]) -> dict[int, Bytes]:
        """Return the caller's arrays by slot."""
        return {self._slot(_IN): into.view(np.uint8), self._slot(_OUT): out.view(np.uint8)}

    def release(self, out: npt.NDArray[Any] | None) -> None:
        """Drop the caller's arrays; after a good run copy the shadow of OUT to `out` first."""
        for items, place, *_ in self._callers:
            items[place] = _NOTHING
        if out is not None and self._slot(_OUT) in self._shadowed:
            out.view(np.uint8)[...] = self._shadow(self._slot(_OUT))

    def explain(self, blocked: Sequence[Blocked]) -> str:
        """Describe the wait of a rank."""
        texts = list(self._waiting(blocked))
        return texts[0] if texts else f"Rank {self.rank} has waited"

    def _waiting(self, blocked: Sequence[Blocked]) -> Iterator[str]:
        for queue, place in blocked:
            task = self.part.streams[queue][place]
            where = f"Rank {self.rank} {format_stream(queue)} task {task.place} has waited"
            if task.kind == MOVE:
                owner = int(self.part.moves.dst[task.number]) // len(self._buffers)
                yield f"{where} for another rank to stop adding to rank {owner}'s memory"
            elif self.part.cells[task.number].poster != self.rank:
                poster = self.part.cells[task.number].poster
                yield f"{where} for {self._names[task.number]} from rank {poster}"

    def _slot(self, name: str) -> int:
        return self.rank * len(self._buffers) + self._buffers.index(name)

    def _item_of(self, task: Task) -> Item:
        if task.kind == MOVE:
            return _NOTHING
        cell = self.part.cells[task.number]
        if not cell.plane and cell.waiter == cell.poster:
            local = cell.notify - self.rank * self.local
            return (POST_LOCAL if task.kind == POST else WAIT_LOCAL, local, None, None)
        number = self._context.notifies.number(cell)
        word = FIRST_NOTIFY + cell.poster * NOTIFIES + number
        if task.kind == POST:
            count = cell.waiter * NOTIFIES + number
            return (POST_REMOTE, count, (self._context.headers[cell.waiter], word), cell.waiter)
        return (WAIT_REMOTE, cell.poster * NOTIFIES + number, word, None)

    def _bind_shared(self) -> None:
        """Bind all moves between regions, which are the same in every run; keep those that read or
        write the caller's arrays for `bind`.
        """
        self._callers.clear()
        regions: dict[int, Bytes] = {}
        for items, stream in zip(self._items, self.part.streams, strict=True):
            for place, task in enumerate(stream):
                if task.kind == MOVE:
                    kind, dst, src, third = self._move(task.number, regions)
                    if isinstance(dst, np.ndarray) and isinstance(src, np.ndarray):
                        items[place] = (kind, dst, src, third)
                    else:
                        self._callers.append((items, place, kind, dst, src, third))
        self._version = self._memory.regions.version

    def _move(self, number: int, regions: dict[int, Bytes]) -> tuple[int, _Side, _Side, Any]:
        """Return a move as an item, whose sides may be in the caller's arrays."""
        moves = self.part.moves
        dst, start, stop, src, low, high, *_ = moves.steps[number]
        into, what = self._side(dst, start, stop, regions), self._side(src, low, high, regions)
        op = int(moves.op[number])
        if op == NO_OP:
            return COPY, into, what, None
        dtype = DataType.from_number(int(moves.dtype[number]))
        reduce = self._context.reducer.reduction(dtype, ReduceOp(op))
        if number not in self.part.atomic:
            return REDUCE, into, what, reduce
        owner, at = self._region(dst)[1:]
        lock = Lock(self._memory.files[owner], at + start, stop - start)
        return LOCKED, into, what, (reduce, lock)

    def _side(self, slot: int, start: int, stop: int, regions: dict[int, Bytes]) -> _Side:
        if slot in (self._slot(_IN), self._slot(_OUT)) and slot not in self._shadowed:
            return slot, start, stop
        if slot not in regions:
            regions[slot] = self._bytes(slot, {})
        return regions[slot][start:stop]

    def _bytes(self, slot: int, callers: dict[int, Bytes]) -> Bytes:
        if slot in callers and slot not in self._shadowed:
            return callers[slot]
        if slot == len(self._slot_sizes):
            return self.landing
        return self._region(slot)[0]

    def _region(self, slot: int) -> tuple[Bytes, int, int]:
        """Return the bytes of a slot in shared memory, the rank whose file they are in, and their
        offset there.
        """
        rank, buffer = divmod(slot, len(self._buffers))
        name = self._buffers[buffer]
        if self._in_place and name == _IN:
            name = _OUT  # one memory, and one shadow
        found, at = self._memory.region(rank, self._tag, name, self._halves.get(name, 0))
        begin = self._begin(slot)
        return found[begin : begin + int(self._slot_sizes[slot])], rank, at + begin

    def _begin(self, slot: int) -> int:
        """Return the offset of a buffer in the memory that IN and OUT share, in bytes."""
        rank, buffer = divmod(slot, len(self._buffers))
        is_in_slot = self._buffers[buffer] == self._in_slot
        return rank * int(self._slot_sizes[slot]) if is_in_slot else 0

    def _shadow(self, slot: int) -> Bytes:
        return self._region(slot)[0]


_NOTHING: Item = (COPY, np.zeros(0, np.uint8), np.zeros(0, np.uint8), None)
_WORDS = {_IN: "input", _OUT: "output"}


def _in_slot(program: Program) -> str:
    """Return IN or OUT if it is the rank's own slot of the other; empty if neither is."""
    own_slot = OPS[program.op.name].own_slot if program.op.in_place == InPlace.SLOT else 0
    return {1: _IN, -1: _OUT}.get(own_slot, "")


def _notify_name(program: Program, cell: int) -> str:
    transports = program.transports
    if cell >= transports.cells:
        return "a notify"
    return transports.name_of(cell % transports.stride)


def _reduced_bytes(part: RankPart) -> dict[DataType, int]:
    """Return the number of bytes that one run reduces, by type."""
    moves = part.moves
    return {
        dtype: int(moves.size[(moves.op != NO_OP) & (moves.dtype == dtype.number)].sum())
        for dtype in moves.reduce_dtypes
    }
