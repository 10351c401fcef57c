"""Long loops in few tasks: iterations whose memory adjoins move as one.

The first two iterations of every loop stay as they are, so that a buffer or an event that one
iteration takes too early from the one before is found. The others become one body, if

    - it has only moves and waits for events,
    - the bytes that it moves per iteration are the distance of one iteration from the next, over
      all copies of the loop,
    - buffers are written before they are read, and memory that it writes is not read.

Buffers of the folded body are as large as all that goes through them: they lie behind the others.
The starts of the moves that are left out take no time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby, pairwise

from hccl_interop.cpp.ccu.loops import LoopRun, LoopShift
from hccl_interop.cpp.ccu.move_memory import KINDS, is_buffer
from hccl_interop.cpp.traces import ListedLine

KEPT = 2
"""Iterations of every loop that are not folded."""


def folded(
    runs: Sequence[LoopRun],
    bodies: dict[int, tuple[int, int]],
    lines: Sequence[ListedLine],
    value: Callable[[int], int],
) -> list[LoopRun] | None:
    """Return loops of one iteration that stand for all but the first ones, or None where they are
    not alike in one way or another.
    """
    found = []
    for number, copies in groupby(runs, lambda run: run.number):
        first, end = bodies[number]
        size = _size(lines[first:end], value)
        shifts = sorted(
            run.shift(iteration).address
            for run in copies
            for iteration in range(KEPT, run.iterations)
        )
        steps = {later - earlier for earlier, later in pairwise(shifts)}
        if size is None or (steps and steps != {size}):
            return None
        if shifts:
            found.append(LoopRun(number, 1, 0, LoopShift(address=shifts[0], repeats=len(shifts))))
    return found


def _size(body: Sequence[ListedLine], value: Callable[[int], int]) -> int | None:
    """Return the bytes that every move of a body moves; None where it cannot be folded."""
    sizes, written, sources, targets = set[int](), set[int](), set[int](), set[int]()
    for line in body:
        if line.operation == "wait_event":
            continue
        if line.operation == "reduce_buffers":
            read, to = set(line.operands[6:]), line.operands[6]
        elif line.operation in KINDS:
            to, source = line.operands[6], line.operands[8]
            read = {source} | ({to} if "reduce" in line.operation else set())
            targets |= {value(to)} if not is_buffer(to) else set()
            sources |= {value(source)} if not is_buffer(source) else set()
        else:
            return None
        if any(is_buffer(handle) and handle not in written for handle in read):
            return None
        written |= {to}
        sizes.add(value(line.operands[2]))
    return sizes.pop() if len(sizes) == 1 and not sources & targets else None
