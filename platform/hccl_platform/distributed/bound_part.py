"""A rank's part of a program bound to memory: the steps of run_steps.

user memory, op-base      the caller's arrays, which may differ from run to run
user memory, graph mode   a shadow in shared memory if peers access it: the caller's data is
                          copied there before the run, and back after it
other buffers             shared memory: bound once, until a region moves
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from hccl_platform.distributed.header import FIRST_NOTIFY
from hccl_platform.distributed.one_sided import (
    COPY,
    LOCKED,
    POST,
    REDUCE,
    Blocked,
    BoundStep,
    Counts,
    Explain,
    Item,
    Lock,
    Wait,
)
from hccl_platform.distributed.shared_memory import NOTIFIES, Notifies, SharedMemory
from hccl_platform.lowering.call import call_of
from hccl_platform.lowering.memory import USER_BUFFERS
from hccl_platform.lowering.moves import COPY as NO_OP
from hccl_platform.lowering.moves import Bytes, address_of
from hccl_platform.lowering.part import MOVE, RankPart, Task
from hccl_platform.lowering.reducing import Reducer
from hccl_platform.lowering.steps import RankStep, StepWait, is_local, steps_of, turns_of
from hccl_py.call.ops import OPS
from hccl_py.enums import POST as POST_TASK
from hccl_py.enums import WAIT, DataType, InPlace, ReduceOp
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
    counts: Counts


class _CallersMove(NamedTuple):
    """A move of the caller's arrays, which is the item at a place of a step."""

    group: int
    step: int
    place: int
    move: tuple[int, _Side, _Side, Any]


class BoundPart:
    """One rank's part of a program under a tag, and the memory that it works on. `half` selects the
    half of alternating buffers. `landing` stands for a script's slot behind those of the program.
    `groups` are steps to be run one group after the other: those of all streams together, or of
    every stream alone.
    """

    def __init__(
        self, tag: str, program: Program, part: RankPart, context: RankContext, half: int = 0
    ) -> None:
        self.part, self.rank = part, part.rank
        self.call = call_of(program)
        self.landing = np.zeros(0, np.uint8)
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
        self.groups: list[tuple[RankStep, ...]] = []
        self._steps: list[list[BoundStep]] = []
        self._waits: Counter[int] = Counter()
        self._callers: list[_CallersMove] = []
        self._version = -1

    def provide(self, program: Program) -> int:
        """Make steps, and room for the buffers of the program, once; return the version of the
        regions. Raises what `turns_of` and `steps_of` raise: in a call, so that all ranks do.
        """
        if not self.groups:  # the same call is the first one with this part at all ranks
            self._memory.regions.provide(self._tag, program)
            self.groups = self._groups(program)
            self._steps = [[self._bound(step) for step in steps] for steps in self.groups]
            self._waits.update(
                self._count_of(task)
                for stream in self.part.streams
                for task in stream
                if task.kind == WAIT and not is_local(self.part.cells[task.number])
            )
        return self._memory.regions.version

    def bind(self, into: npt.NDArray[Any], out: npt.NDArray[Any]) -> list[list[BoundStep]]:
        """Return the steps of runs on the caller's arrays, for as long as no region moves."""
        if self._version != self._memory.regions.version:
            self._bind_shared()
        callers = self.callers(into, out)
        groups = [list(steps) for steps in self._steps]
        for group, number in {(move.group, move.step) for move in self._callers}:
            step = groups[group][number]
            groups[group][number] = step._replace(items=list(step.items))
        for group, number, place, (kind, dst, src, third) in self._callers:
            into_bytes = dst if isinstance(dst, np.ndarray) else callers[dst[0]][dst[1] : dst[2]]
            what = src if isinstance(src, np.ndarray) else callers[src[0]][src[1] : src[2]]
            groups[group][number].items[place] = (kind, into_bytes, what, third)
        return groups

    def begin(self, into: npt.NDArray[Any], out: npt.NDArray[Any]) -> None:
        """Begin a run on the caller's arrays: fill the shadows."""
        if not self._shadowed:
            return
        if self._in_place:
            self._check_addresses(into, out)
        callers = self.callers(into, out)
        for slot in self._shadowed:
            self._shadow(slot)[...] = callers[slot]

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

    def end(self, out: npt.NDArray[Any]) -> None:
        """End a good run: its waits are over, and the shadow of OUT goes to the caller's array."""
        for count, number in self._waits.items():
            self._context.counts.waited[count] += number
        if self._shadowed and self._slot(_OUT) in self._shadowed:
            out.view(np.uint8)[...] = self._shadow(self._slot(_OUT))

    def explain(self, group: int) -> Explain:
        """Return a function that describes what the first of a group's blocked steps waits for."""

        def explain(blocked: Sequence[Blocked]) -> str:
            return self._waiting(group, blocked[0])

        return explain

    def _waiting(self, group: int, blocked: Blocked) -> str:
        step = self.groups[group][blocked.step]
        places = [wait.place for wait in step.waits] if blocked.is_waiting else step.places
        stream, at = places[blocked.at]
        task = self.part.streams[stream][at]
        where = self._where(stream, task)
        if blocked.is_waiting:
            poster = self.part.cells[task.number].poster
            return f"{where} for {self._names[task.number]} from rank {poster}"
        owner = int(self.part.moves.dst[task.number]) // len(self._buffers)
        return f"{where} for another rank to stop adding to rank {owner}'s memory"

    def _where(self, stream: int, task: Task) -> str:
        return f"Rank {self.rank} {format_stream(stream)} task {task.place} has waited"

    def _groups(self, program: Program) -> list[tuple[RankStep, ...]]:
        turns = turns_of(program, self.part)
        return [steps_of(program, self.part, turns, range(len(self.part.streams)))]

    def _slot(self, name: str) -> int:
        return self.rank * len(self._buffers) + self._buffers.index(name)

    def _bound(self, step: RankStep) -> BoundStep:
        """Bind a step but for its moves."""
        items = [self._item_of(self.part.streams[stream][at]) for stream, at in step.places]
        return BoundStep(
            [self._wait_of(wait) for wait in step.waits], items, step.before, step.then
        )

    def _item_of(self, task: Task) -> Item:
        if task.kind == MOVE:
            return _NOTHING
        waiter = self.part.cells[task.number].waiter
        return POST, self._count_of(task), (self._context.headers[waiter], self._word(task)), waiter

    def _wait_of(self, wait: StepWait) -> Wait:
        task = self.part.streams[wait.place[0]][wait.place[1]]
        return self._count_of(task), self._word(task), wait.posts

    def _count_of(self, task: Task) -> int:
        """Return the number of a notify's count: among those from its poster, or to its waiter."""
        cell = self.part.cells[task.number]
        peer = cell.waiter if task.kind == POST_TASK else cell.poster
        return peer * NOTIFIES + self._context.notifies.number(cell)

    def _word(self, task: Task) -> int:
        cell = self.part.cells[task.number]
        return FIRST_NOTIFY + cell.poster * NOTIFIES + self._context.notifies.number(cell)

    def _bind_shared(self) -> None:
        """Bind all moves between regions, which are the same in every run; keep those that read or
        write the caller's arrays for `bind`.
        """
        self._callers.clear()
        regions: dict[int, Bytes] = {}
        for group, steps in enumerate(self.groups):
            for number, step in enumerate(steps):
                for place, (stream, at) in enumerate(step.places):
                    task = self.part.streams[stream][at]
                    if task.kind == MOVE:
                        move = self._move(task.number, regions)
                        if isinstance(move[1], np.ndarray) and isinstance(move[2], np.ndarray):
                            self._steps[group][number].items[place] = move
                        else:
                            self._callers.append(_CallersMove(group, number, place, move))
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


class BoundRun:
    """Runs of a part on arrays of the caller's that stay where they are; `execute` runs steps."""

    def __init__(
        self,
        part: BoundPart,
        program: Program,
        into: npt.NDArray[Any],
        out: npt.NDArray[Any],
        execute: Callable[[BoundPart, Sequence[Sequence[BoundStep]]], None],
    ) -> None:
        self.part = part
        self._program, self._execute = program, execute
        self._into, self._out = into, out
        self._groups: list[list[BoundStep]] = []
        self._version = -1

    def __call__(self) -> None:
        """Run once."""
        part, version = self.part, self.part.provide(self._program)
        if self._version != version:
            self._groups, self._version = part.bind(self._into, self._out), version
        part.begin(self._into, self._out)
        with np.errstate(all="ignore"):
            self._execute(part, self._groups)
        part.end(self._out)

    def check(self) -> None:
        """Raise if the program can never end."""
        self._program.linked.check(self._program)


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
