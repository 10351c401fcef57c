"""One rank's part of a program as what a driver enqueues.

Everything is enqueued in the order in which it was recorded, as HCCL does, so that no stream runs
full while what it waits for has yet to be enqueued on another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hccl_platform.lowering.moves import COPY
from hccl_platform.lowering.part import MOVE, Cell, Part
from hccl_platform.npu.driver import HARDWARE_REDUCTIONS, Driver
from hccl_py.enums import POST, DataType, ReduceOp
from hccl_py.program.program import Program

ABSOLUTE, USER_IN, USER_OUT = range(3)
"""What the offset of a range counts from: nothing, or the caller's input or output."""

_ALIGN = 512

Place = tuple[int, int]
"""One of the three above, and bytes from there."""

Reduce = Callable[[int, int, int, DataType, ReduceOp, int], None]
"""Reduces what hardware cannot: destination, source, bytes, type, op, number of the stream."""


class Entry(NamedTuple):
    """What is enqueued on stream `stream`: a copy or reduction of `size` bytes, or with `dst` None
    a post or wait of `notify`. `place` is the task's position on its stream.
    """

    stream: int
    dst: Place | None
    src: Place
    size: int
    how: tuple[DataType, ReduceOp] | None
    notify: int
    is_post: bool
    place: int


@dataclass(frozen=True, eq=False)
class Bound:
    """The part of one rank with addresses and notifies: all but those of the user's memory.

    `title` names the program, which is not kept: it may go while this is remembered. `buffers` is
    how many buffers each of its ranks has.
    """

    title: str
    buffers: int
    part: Part
    entries: tuple[Entry, ...]

    @property
    def streams(self) -> int:
        """How many streams it takes, main included."""
        return max((entry.stream for entry in self.entries), default=0) + 1

    @classmethod
    def of(
        cls,
        program: Program,
        part: Part,
        places: Mapping[int, Place],
        notifies: Mapping[Cell, int],
        most_bytes: int,
    ) -> Bound:
        """Bind a part: `places` has the memory of every slot, `notifies` the handle of every
        cell. Moves of more than `most_bytes` are cut.
        """
        most = max(most_bytes // _ALIGN * _ALIGN, _ALIGN)
        entries: list[Entry] = []
        moves = part.moves
        columns = (moves.op, moves.dtype, moves.dst, moves.dst_offset, moves.src, moves.src_offset)
        rows = list(zip(*(c.tolist() for c in columns), moves.size.tolist(), strict=True))
        for stream, task in part.recorded:
            if task.kind != MOVE:
                notify = notifies[part.cells[task.number]]
                is_post = task.kind == POST
                entries.append(Entry(stream, None, (0, 0), 0, None, notify, is_post, task.place))
                continue
            op, dtype, dst, dst_offset, src, src_offset, size = rows[task.number]
            how = None if op == COPY else (DataType.from_number(dtype), ReduceOp(op))
            to, source = places[dst], places[src]
            for start in range(0, size, most):
                entries.append(
                    Entry(
                        stream,
                        (to[0], to[1] + dst_offset + start),
                        (source[0], source[1] + src_offset + start),
                        min(most, size - start),
                        how,
                        0,
                        False,
                        task.place,
                    )
                )
        op = program.op.name
        title = f"{program.executor} ({op})" if program.executor else op
        return cls(title, len(program.buffers), part, tuple(entries))


def enqueue(
    bound: Bound,
    driver: Driver,
    user: tuple[int, int],
    streams: Sequence[int],
    seconds: int,
    reduce: Reduce,
    note: Callable[[], None] | None,
) -> None:
    """Enqueue everything. `user` has the addresses of the caller's input and output, `streams` the
    handles of the streams; waits take at most `seconds`. `note` is called after every task.
    """
    base = (0, *user)
    post, wait, copy, by_hardware = driver.post, driver.wait, driver.copy, driver.reduce
    for stream, dst, src, size, how, notify, is_post, _ in bound.entries:
        handle = streams[stream]
        if dst is None:
            if is_post:
                post(notify, handle)
            else:
                wait(notify, handle, seconds)
        else:
            to, source = base[dst[0]] + dst[1], base[src[0]] + src[1]
            if how is None:
                copy(to, source, size, handle)
            elif how in HARDWARE_REDUCTIONS:
                by_hardware(to, source, size, *how, handle)
            else:
                reduce(to, source, size, *how, stream)
        if note is not None:
            note()
