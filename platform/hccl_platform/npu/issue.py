"""One rank's part of a program as a list of tasks that a driver enqueues.

Tasks are enqueued in the order of recording, as HCCL does: so no stream fills up with tasks that
wait for a task which is not enqueued yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hccl_platform.lowering.moves import COPY
from hccl_platform.lowering.part import MOVE, Cell, RankPart
from hccl_platform.npu.driver import HARDWARE_REDUCTIONS, AclDriver
from hccl_py.enums import POST, DataType, ReduceOp
from hccl_py.program.program import Program

ABSOLUTE, USER_IN, USER_OUT = range(3)
"""The origin of a range's offset: address 0, or the caller's input or output."""

_ALIGN = 512

Place = tuple[int, int]
"""An origin, and an offset in bytes."""

Reduce = Callable[[int, int, int, DataType, ReduceOp, int], None]
"""Enqueues a reduction that hardware lacks: destination, source, bytes, type, op, stream number."""


class IssueEntry(NamedTuple):
    """A task on stream `stream`: a copy or reduction of `size` bytes, or with `dst` None a post or
    wait of `notify`. `place` is the task's position on its stream.
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
class IssueList:
    """The part of one rank with all addresses and notifies but the addresses of user memory.

    `title` names the program, which may be released before the list. `buffers` is the number of
    buffers of each of its ranks.
    """

    title: str
    buffers: int
    part: RankPart
    entries: tuple[IssueEntry, ...]

    @property
    def streams(self) -> int:
        """The number of streams, including main."""
        return max((entry.stream for entry in self.entries), default=0) + 1

    @classmethod
    def of(
        cls,
        program: Program,
        part: RankPart,
        places: Mapping[int, Place],
        notifies: Mapping[Cell, int],
        most_bytes: int,
    ) -> IssueList:
        """Return the list of a part. `places` has the memory of every slot, `notifies` the handle
        of every cell. Moves of more than `most_bytes` are cut.
        """
        most = max(most_bytes // _ALIGN * _ALIGN, _ALIGN)
        entries: list[IssueEntry] = []
        ops, dtypes = part.moves.op.tolist(), part.moves.dtype.tolist()
        for stream, task in part.recorded:
            if task.kind != MOVE:
                notify = notifies[part.cells[task.number]]
                is_post = task.kind == POST
                entry = IssueEntry(stream, None, (0, 0), 0, None, notify, is_post, task.place)
                entries.append(entry)
                continue
            dst, low, high, src, source_low, *_ = part.moves.steps[task.number]
            op, dtype = ops[task.number], dtypes[task.number]
            how = None if op == COPY else (DataType.from_number(dtype), ReduceOp(op))
            (to, to_start), (source, source_start) = places[dst], places[src]
            for start in range(0, high - low, most):
                into = to, to_start + low + start
                what = source, source_start + source_low + start
                size = min(most, high - low - start)
                entries.append(IssueEntry(stream, into, what, size, how, 0, False, task.place))
        name = program.op.name
        title = f"{program.executor} ({name})" if program.executor else name
        return cls(title, len(program.buffers), part, tuple(entries))


def enqueue(
    issued: IssueList,
    driver: AclDriver,
    user: tuple[int, int],
    streams: Sequence[int],
    seconds: int,
    reduce: Reduce,
    note: Callable[[], None] | None,
) -> None:
    """Enqueue all tasks. `user` has the addresses of the caller's input and output, `streams` the
    handles of the streams; waits take at most `seconds`. `note` is called after every task.
    """
    base = (0, *user)
    post, wait, copy, by_hardware = driver.post, driver.wait, driver.copy, driver.reduce
    for stream, dst, src, size, how, notify, is_post, _ in issued.entries:
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
