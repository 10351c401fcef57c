"""The threads of all ranks together: each runs until it has to wait, in no time.

A launch runs its kernel's listing: registers have values, branches follow them, moves and signals
become tasks, and a wait blocks until the bits that it needs are set. A value that depends on which
rank is faster is a finding, so the tasks are the same in every order. Where threads block for ever,
the tasks up to there are the program, and the verifier says why.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hccl_interop.cpp.ccu.launches import Block, KernelRun, Keys, Shared, Steps, Stopped
from hccl_interop.cpp.ccu.missions import (
    BIT,
    LOCAL_POST,
    LOCAL_WAIT,
    START,
    Origin,
    RankTasks,
    StreamNames,
)
from hccl_interop.cpp.ccu.registers import Clock, ThreadOrder
from hccl_interop.cpp.merge import Meeting
from hccl_interop.cpp.traces import LAUNCH, RankTrace


@dataclass
class _Process:
    """Steps that yield what they wait for; `keys` are those of now."""

    steps: Steps
    order: ThreadOrder
    keys: Keys = ()


@dataclass
class SetBits:
    """Bits that are set, each with the clock of who set it."""

    bits: dict[tuple[object, ...], Clock] = field(default_factory=dict)
    waiting: dict[tuple[object, ...], list[_Process]] = field(
        default_factory=lambda: defaultdict(list)
    )
    ready: deque[_Process] = field(default_factory=deque)

    def set(self, key: tuple[object, ...], clock: Clock) -> None:
        """Set a bit, which may be set already, and wake what waits for it."""
        before = self.bits.get(key)
        self.bits[key] = clock if before is None else np.maximum(before, clock)
        self.ready.extend(self.waiting.pop(key, ()))

    def run(self) -> None:
        """Run until nothing can go on."""
        while self.ready:
            process = self.ready.popleft()
            while self._passes(process):
                try:
                    process.keys = next(process.steps)
                except StopIteration:
                    break

    def start(self, steps: Steps, order: ThreadOrder) -> None:
        """Add a process."""
        self.ready.append(_Process(steps, order))

    def _passes(self, process: _Process) -> bool:
        """Clear the bits that a process waits for, if all are set; else let it wait."""
        for key in process.keys:
            if key not in self.bits:
                self.waiting[key].append(process)
                return False
        for key in process.keys:
            process.order.join(self.bits.pop(key))
        process.keys = ()
        return True


def run_together(
    ranks: Sequence[RankTrace], meeting: Meeting
) -> tuple[list[RankTasks], StreamNames]:
    """Run all launches; complaints go to the traces. Return every rank's tasks and the streams."""
    threads = [len(trace.threads) for trace in ranks]
    names = StreamNames.of_threads(max(threads))
    signals = SetBits()
    shared = Shared(ranks, meeting, names, signals.set, signals.start)
    number = 0
    for trace, count in zip(ranks, threads, strict=True):
        by_thread = defaultdict(list)
        for row in trace.tasks.tolist():
            by_thread[row[_THREAD]].append(row)
        for thread in range(count):
            order = ThreadOrder(number, np.zeros(sum(threads), np.int64))
            signals.start(_thread(shared, trace, thread, by_thread[thread], order), order)
            number += 1
    signals.run()
    return shared.tasks, names


_THREAD, _TARGET, _INDEX, _STACK, _CALL = 5, 6, 7, 8, 9
"""Columns of a task (traces.TASK)."""


def _thread(
    shared: Shared, trace: RankTrace, thread: int, rows: list[tuple[int, ...]], order: ThreadOrder
) -> Steps:
    """Run the tasks of a thread; launches wait for the kernel's end."""
    rank, tasks = trace.rank, shared.tasks[trace.rank]
    try:
        for row in rows:
            kind, target, index = row[0], row[_TARGET], row[_INDEX]
            if kind == LAUNCH:
                origin = Origin(row[_STACK], row[_CALL])
                yield from _launch(shared, trace, thread, target, index, origin, order)
                continue
            tasks.rows.append(row)
            if kind == LOCAL_POST:
                shared.set_bit(("thread", rank, target, index), order.step())
            elif kind == LOCAL_WAIT:
                yield (("thread", rank, thread, index),)
    except Stopped:
        return


def _launch(
    shared: Shared,
    trace: RankTrace,
    thread: int,
    launch: int,
    kernel: int,
    origin: Origin,
    order: ThreadOrder,
) -> Steps:
    """Run a kernel on its mission: the thread starts it and waits for its end."""
    listing, tasks = trace.kernels[kernel], shared.tasks[trace.rank]
    mission = shared.names.number(f"die {listing.die}, mission {listing.mission}")
    tasks.post(thread, mission, START, origin)
    tasks.wait(mission, mission, START, origin)
    run = KernelRun(shared, trace, listing, trace.launches[launch], mission, origin.call, order)
    yield from run.block(Block(0, len(listing.lines)), mission)
    tasks.post(mission, mission, BIT, origin)
    tasks.wait(thread, mission, BIT, origin)
