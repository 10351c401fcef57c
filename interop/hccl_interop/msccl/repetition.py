"""Calls whose passes are too many to be written out: shorter ones stand for them.

Every pass does the same on other bytes, so a few of them say what all do:

    checks    A pass leaves every FIFO as empty as it found it, so if one can end, all can. Only
              slots of FIFOs are used by several passes, and after `step` passes they are used as
              before. So passes that cover every use of a slot, and every other one that may still
              be under way then, show what any of them does wrong.
    times     Where passes come to a steady state (`simulator/steady.py`), the others take what
              these take; where they do not, more are written out, as many as there is room for.
              Then the average of the later ones stands for others, where it stays the same.
              Messages that stream come in larger slices where their own leave no room.

A shorter call has the same first passes and the same last one, which may be a part of a pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import gcd, lcm
from typing import TYPE_CHECKING

from hccl_interop.common.meaning import Meaning, MscclCall
from hccl_interop.msccl.algorithm import XmlAlgorithm
from hccl_interop.msccl.build import build, place_of_call
from hccl_interop.msccl.layout import MAX_TASKS, MAX_TIMED, CallLayout
from hccl_py.call.ops import OPS
from hccl_py.errors import DeadlockError, ParameterError
from hccl_py.program.program import Program

if TYPE_CHECKING:
    from hccl_py.simulator.timeline import Timeline


@dataclass(frozen=True)
class RepeatedTimes:
    """The time of a call: `program` has the `written` passes that were timed, `passes` and `tasks`
    count those of the call. `slice_bytes` are those of its slices where they are larger than those
    of the call. `spread` is by how much passes differ where their average stands for others.
    """

    program: Program
    total_us: float
    passes: int
    written: int
    tasks: int
    slice_bytes: int | None = None
    spread: float = 0.0


@dataclass(frozen=True)
class RepeatedPasses:
    """A call of so many passes. After `step` passes, slots are used as before; no pass waits for
    one more than `depth` before it.
    """

    meaning: Meaning[XmlAlgorithm]
    call: MscclCall
    passes: int
    step: int
    depth: int

    @staticmethod
    def of(
        meaning: Meaning[XmlAlgorithm], call: MscclCall, most: int = MAX_TASKS
    ) -> RepeatedPasses | None:
        """Return the passes that a call repeats; None where it is written out, with up to `most`
        tasks.
        """
        layout = CallLayout(meaning.algorithm, call, keeps_own=True)
        if layout.fits(most):
            return None
        slots, ranks = layout.protocol.slots, meaning.algorithm.ranks
        chunks, unit = meaning.algorithm.chunks, call.op.unit
        messages = [max(fifo.sent, fifo.received) for fifo in layout.fifos.values()]
        step = lcm(*(slots // gcd(slots, count) for count in messages))
        if OPS[meaning.op].has_slots:  # the parts of ranks are whole elements in shorter calls, too
            whole = ranks // gcd(ranks, chunks)
            step = lcm(step, whole // gcd(whole, layout.loop.limit // unit))
        depth = max((-(-slots // count) for count in messages), default=0) + 1
        return RepeatedPasses(meaning, call, layout.loop.passes, step, depth)

    def checked(self) -> MscclCall:
        """Return a call that shows what any pass does wrong."""
        return self._shorter(2 * self.step + 2 * self.depth + 2)

    def timed(
        self,
        simulated: Callable[[Program], Timeline],
        *,
        shares_links: bool,
        most: int = MAX_TIMED,
    ) -> RepeatedTimes:
        """Return the time of the call by a simulation in which tasks share links, or do not;
        ParameterError where its passes are not steady before there are more than `most` tasks.
        """
        from hccl_py.simulator.steady import average_pass, steady_state  # checks need none

        least, sliced = 2 * self.step + 4 * self.depth + 4, self
        unsteady: Timeline | None = None
        while True:
            layout = CallLayout(self.meaning.algorithm, sliced._shorter(least), keeps_own=True)
            if layout.fits(most):
                timeline = sliced._timeline(layout.call, simulated, most)
                left = self.passes - timeline.program.rounds
                if not left:
                    return sliced._repeated(timeline, timeline.total_us, self.call)
                state = steady_state(timeline, self.step, self.depth, shares_links=shares_links)
                if state is not None:
                    total_us = state.total_us(left // self.step)
                    return sliced._repeated(timeline, total_us, self.call)
                least, unsteady = 2 * least, timeline
            elif unsteady is None and least > self._fewest:
                least = self._fewest
            elif unsteady is not None and (of_one := average_pass(unsteady, self.depth)):
                left = self.passes - unsteady.program.rounds
                total_us = unsteady.total_us + left * of_one.us
                return sliced._repeated(unsteady, total_us, self.call, of_one.spread)
            elif coarser := sliced._coarser(layout):
                sliced, unsteady = coarser, None
            else:
                raise self._unsteady(unsteady, layout, most)

    def _timeline(
        self, call: MscclCall, simulated: Callable[[Program], Timeline], most: int
    ) -> Timeline:
        """Time a shorter call; DeadlockError with the places of the algorithm where it hangs."""
        built = build(self.meaning.algorithm, call, most=most)
        try:
            return simulated(built.program)
        except DeadlockError as error:
            where = place_of_call(self.meaning.algorithm, self.call)
            raise built.hang(where, error) from None

    @property
    def _fewest(self) -> int:
        """The fewest passes in which a steady state may show."""
        return self.step + 2 * self.depth + 3

    def _coarser(self, layout: CallLayout) -> RepeatedPasses | None:
        """Return the call with slices of twice the size; None where messages are whole."""
        if layout.signals.slices == 1:
            return None
        largest = max(fifo.slot_bytes for fifo in layout.fifos.values())
        twice = 2 * max(length for _, length in layout.slices(largest))
        return replace(self, call=self.call._replace(slice_bytes=twice))

    def _shorter(self, least: int) -> MscclCall:
        """Return the call of at least so many passes that ends as this one does."""
        op, chunks = self.call.op, self.meaning.algorithm.chunks
        passes = min(self.passes, least + (self.passes - least) % self.step)
        layout = CallLayout(self.meaning.algorithm, self.call, keeps_own=True)
        chunk = self.call.chunk - (self.passes - passes) * layout.loop.limit
        root = op.root if OPS[op.name].rooted else None
        call = self.meaning.call(chunk * chunks, op.dtype, op.reduce, root)
        return call._replace(slice_bytes=self.call.slice_bytes, slices=self.call.slices)

    def _repeated(
        self, timeline: Timeline, total_us: float, asked: MscclCall, spread: float = 0.0
    ) -> RepeatedTimes:
        program = timeline.program
        tasks, left = program.tasks, self.passes - program.rounds
        number = tasks.table.round[tasks.instruction]
        of_a_pass = int((number == program.rounds - 2 - self.depth).sum())
        count = program.task_count + left * of_a_pass
        mine = self.call.slice_bytes
        coarser = None if mine == asked.slice_bytes else mine
        written = program.rounds
        return RepeatedTimes(program, total_us, self.passes, written, count, coarser, spread)

    def _unsteady(self, timed: Timeline | None, layout: CallLayout, most: int) -> ParameterError:
        algorithm = self.meaning.algorithm
        why = "" if timed is None else f"the first {timed.program.rounds} come to no steady state"
        if timed is None:
            why = f"{layout.loop.passes} make more than {most:,} tasks, and fewer say nothing"
        return ParameterError(
            f"{algorithm.source(algorithm.line)}: of {self.passes} passes of the algorithm {why}.",
            "Give a smaller -b, up to which all passes are written out.",
        )
