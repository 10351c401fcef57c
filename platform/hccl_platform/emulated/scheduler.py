"""The scheduler: asynchronous streams, one task at a time, in any interleaving that is legal.

At every moment some streams can go on (their next task is not a wait for an empty cell) and some
RDMA connections have work in flight. A chooser decides which of them moves next:

    stream      runs its next tasks; an RDMA write is done for the stream when it is posted to its
                connection
    connection  delivers its oldest piece of work: data, read from the source only now, or a post

A connection belongs to one end of an RDMA transport and keeps the order of the writes and posts
issued there. All choices go through a `Chooser`, so that a seed, or a recorded list of choices,
gives the same interleaving again. The next to move is drawn by lot; stragglers have fewer lots
(turns.py).
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from hccl_platform.emulated.turns import Turns
from hccl_platform.lowering.moves import Bytes, Step, run_step
from hccl_py.enums import POST, RDMA_WRITES, WAIT, TaskKind
from hccl_py.errors import ExecTimeoutError
from hccl_py.plugins.platforms import Adversary, Chooser
from hccl_py.program.describe import format_notify, format_place
from hccl_py.program.matching import Linked, queues_of
from hccl_py.program.program import Program

_BURSTS = (1, 1, 3, 20)
"""Tasks that a stream may run before the next draw."""


@dataclass(frozen=True)
class WaitLimit:
    """The longest wait for a notify, in seconds of a clock; None for no limit."""

    seconds: float | None = None
    clock: Callable[[], float] = time.monotonic


class Scheduler:
    """One run of a program. Streams are numbered as queues; connections have the numbers after
    those, by transport end.

        _queues, _next      task rows of every stream, and its position in them
        _ready              streams whose next task can run, in the order in which they became so
        _waiting            by cell: streams that sleep until it is posted
        _posted             by cell: posts that no wait has taken yet; a notify of one bit holds one
        _flights, _busy     by connection: rows issued and not delivered; connections with any

    Every stream that is not at its end is either in _ready or in one list of _waiting.
    """

    def __init__(
        self,
        program: Program,
        steps: dict[int, Step],
        slots: Sequence[Bytes],
        adversary: Adversary,
        chooser: Chooser,
        turns: Turns | None = None,
        waits: WaitLimit | None = None,
    ) -> None:
        tasks, queues = program.tasks, queues_of(program)
        self._program = program
        self._steps = steps
        self._slots = slots
        self._chooser = chooser
        self._kind: list[int] = tasks.kind.tolist()
        self._cell: list[int] = tasks.cell.tolist()
        self._connection: list[int] = _connections(program).tolist()
        edges = queues.first.tolist()
        rows = queues.rows.tolist()
        self._queues = [rows[a:b] for a, b in pairwise(edges)]
        self._next = [0] * len(self._queues)
        self._ready = [q for q, queue in enumerate(self._queues) if queue]
        self._posted: dict[int, deque[int]] = defaultdict(deque)
        self._waiting: dict[int, list[int]] = {}
        self._waits = waits or WaitLimit()
        self._asleep_since: dict[int, float] = {}
        self._flights: dict[int, deque[int]] = {}
        self._busy: list[int] = []
        self.order: list[int] = []
        """Task rows, in the order in which streams took them."""
        self._post_of = np.full(len(tasks), -1, np.int32)
        self._turns = turns or Turns.of(program)
        first = [self._turns.on_stream[queue[0]] if queue else 1 for queue in self._queues]
        self._lots = first + self._turns.on_connection
        self._adversary = adversary
        self._last = self._draw_victims()

    def run(self) -> None:
        """Run to the end; DeadlockError or OrchestrationError if the program cannot end well.

        Each turn moves one candidate: a stream runs a burst of tasks, or a connection delivers one.
        A run ends when no stream is ready and no connection is busy; then streams that are not at
        their end are stuck, since only a post, by a stream or a connection, could wake them.
        """
        with np.errstate(all="ignore"):
            while candidates := self._candidates():
                chosen = self._drawn(candidates)
                if chosen < len(self._queues):
                    self._run_stream(chosen, self._burst(chosen))
                else:
                    self._deliver(chosen)
        blocked = [
            queue[at] for queue, at in zip(self._queues, self._next, strict=True) if at < len(queue)
        ]
        self._check(
            stuck=blocked, leftover=sorted(row for rows in self._posted.values() for row in rows)
        )

    def _draw_victims(self) -> frozenset[int]:
        """Draw the streams that the adversary runs only when nothing else can."""
        if self._adversary is Adversary.STARVED_STREAM and self._ready:
            return frozenset([self._ready[self._chooser.choose(len(self._ready))]])
        if self._adversary is Adversary.SLOW_RANK:
            streams = self._program.streams
            rank = self._chooser.choose(self._program.ranks)
            return frozenset(range(rank * streams, (rank + 1) * streams))
        return frozenset()

    def _candidates(self) -> list[int]:
        """Return the streams and connections that the adversary allows to move now."""
        if self._adversary is Adversary.LATE_WIRE:
            return self._ready or self._busy
        if self._adversary is Adversary.EARLY_WIRE:
            return self._busy or self._ready
        if self._last:
            return [q for q in self._ready if q not in self._last] + self._busy or self._ready
        return self._ready + self._busy

    def _drawn(self, candidates: list[int]) -> int:
        """Draw one of the candidates by lot."""
        if self._turns.are_even:  # the same draw, without adding up
            return candidates[self._chooser.choose(len(candidates))]
        bounds = list(accumulate(map(self._lots.__getitem__, candidates)))
        return candidates[bisect_right(bounds, self._chooser.choose(bounds[-1]))]

    def _burst(self, stream: int) -> int:
        """Draw the number of tasks that a stream may run; 1 if the adversary may stop it after
        any task.
        """
        if stream in self._last or self._adversary is Adversary.EARLY_WIRE:
            return 1
        return _BURSTS[self._chooser.choose(len(_BURSTS))]

    def _run_stream(self, queue: int, burst: int) -> None:
        rows, at = self._queues[queue], self._next[queue]
        lots, mine = self._turns.on_stream, self._lots[queue]
        for row in rows[at : at + burst]:
            if lots[row] != mine:
                break  # a task with other lots takes a turn of its own
            connection = self._connection[row]
            if self._kind[row] == WAIT:
                if not self._consume(row, queue):
                    break
            elif connection >= 0:
                self._issue(row, connection)
            else:
                self._complete(row)
            self.order.append(row)
            at += 1
        self._next[queue] = at
        if at == len(rows):
            self._ready.remove(queue)
        else:
            self._lots[queue] = lots[rows[at]]

    def _consume(self, row: int, queue: int) -> bool:
        """Take a post from a wait's cell; False if there is none: then the stream sleeps."""
        cell = self._cell[row]
        if not self._posted[cell]:
            self._ready.remove(queue)
            self._waiting.setdefault(cell, []).append(queue)
            self._asleep_since.setdefault(queue, self._waits.clock())
            return False
        if queue in self._asleep_since:
            self._check_wait(row, self._asleep_since.pop(queue))
        self._post_of[row] = self._posted[cell].popleft()
        return True

    def _check_wait(self, row: int, since: float) -> None:
        """Raise ExecTimeoutError if a wait that ends now has taken too long."""
        most, waited = self._waits.seconds, self._waits.clock() - since
        if most is None or waited <= most:
            return
        program = self._program
        raise ExecTimeoutError(
            f"{format_place(program, row)} waited {waited:.1f} s for "
            f"{format_notify(program, row)}; HCCL_EXEC_TIMEOUT allows {most:g} s.",
            "Set HCCL_EXEC_TIMEOUT higher, or find what keeps the other rank. (EI0002)",
        )

    def _issue(self, row: int, connection: int) -> None:
        flight = self._flights.setdefault(connection, deque())
        if not flight:
            self._busy.append(connection)
        flight.append(row)

    def _deliver(self, connection: int) -> None:
        flight = self._flights[connection]
        self._complete(flight.popleft())
        if not flight:
            self._busy.remove(connection)

    def _complete(self, row: int) -> None:
        """Apply the effect of a task: move its data, or post its notify and wake the waiters."""
        if self._kind[row] != POST:
            if row in self._steps:
                run_step(self._slots, self._steps[row])
            return
        cell = self._cell[row]
        if self._posted[cell] and not self._program.counts_posts:
            self._check(overruns=[(row, self._posted[cell][0])])
        self._posted[cell].append(row)
        self._ready += self._waiting.pop(cell, [])

    def _check(
        self,
        stuck: Sequence[int] = (),
        leftover: Sequence[int] = (),
        overruns: Sequence[tuple[int, int]] = (),
    ) -> None:
        """Raise the untimed walk's errors unless all three are empty."""
        linked = Linked(
            order=np.array(self.order, np.int32),
            post_of=self._post_of,
            overruns=np.array(overruns, np.int32).reshape(-1, 2),
            leftover=np.array(leftover, np.int32),
            stuck=np.array(stuck, np.int32),
            counts_posts=self._program.counts_posts,
        )
        linked.check(self._program)


def _connections(program: Program) -> npt.NDArray[np.int64]:
    """Return the connection that each task travels on, -1 if it takes effect at once."""
    tasks, transports = program.tasks, program.transports
    if not len(transports):
        return np.full(len(tasks), -1, np.int64)
    is_rdma = (tasks.end >= 0) & transports.is_rdma[tasks.end]
    travels = is_rdma & np.isin(tasks.kind, (*RDMA_WRITES, TaskKind.NOTIFY_POST))
    queues = program.ranks * program.streams
    return np.where(travels, queues + tasks.end, -1)
