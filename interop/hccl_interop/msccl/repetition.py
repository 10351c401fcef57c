"""Calls whose passes are too many to be written out: shorter ones stand for them.

Every pass does the same on other bytes, so a few of them say what all do:

    checks    A pass leaves every FIFO as empty as it found it, so if one can end, all can. Only
              slots of FIFOs are used by several passes, and after `step` passes they are used as
              before. So passes that cover every use of a slot, and every other one that may still
              be under way then, show what any of them does wrong.
    times     Where passes come to a steady state (`simulator/steady.py`), the others take what
              these take; where they do not, more are written out, as many as there is room for.

A shorter call has the same first passes and the same last one, which may be a part of a pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd, lcm
from typing import TYPE_CHECKING

from hccl_interop.common.meaning import Meaning, MscclCall
from hccl_interop.msccl.algorithm import XmlAlgorithm
from hccl_interop.msccl.build import build
from hccl_interop.msccl.layout import MAX_TASKS, CallLayout
from hccl_py.call.ops import OPS
from hccl_py.errors import ParameterError
from hccl_py.program.program import Program

if TYPE_CHECKING:
    from hccl_py.simulator.timeline import Timeline


@dataclass(frozen=True)
class RepeatedTimes:
    """The time of a call: `program` has the `written` passes that were timed, `passes` and `tasks`
    count those of the call.
    """

    program: Program
    total_us: float
    passes: int
    written: int
    tasks: int


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
        most: int = MAX_TASKS,
    ) -> RepeatedTimes:
        """Return the time of the call by a simulation in which tasks share links, or do not;
        ParameterError where its passes are not steady before there are more than `most` tasks.
        """
        from hccl_py.simulator.steady import steady_state  # checks need no simulator

        least = 2 * self.step + 4 * self.depth + 4
        while True:
            call = self._shorter(least)
            layout = CallLayout(self.meaning.algorithm, call, keeps_own=True)
            if not layout.fits(most):
                raise self._unsteady(least // 2)
            timeline = simulated(build(self.meaning.algorithm, call).program)
            left = self.passes - timeline.program.rounds
            if not left:
                return self._repeated(timeline, timeline.total_us)
            state = steady_state(timeline, self.step, self.depth, shares_links=shares_links)
            if state is not None:
                return self._repeated(timeline, state.total_us(left // self.step))
            least *= 2

    def _shorter(self, least: int) -> MscclCall:
        """Return the call of at least so many passes that ends as this one does."""
        op, chunks = self.call.op, self.meaning.algorithm.chunks
        passes = min(self.passes, least + (self.passes - least) % self.step)
        layout = CallLayout(self.meaning.algorithm, self.call, keeps_own=True)
        chunk = self.call.chunk - (self.passes - passes) * layout.loop.limit
        root = op.root if OPS[op.name].rooted else None
        call = self.meaning.call(chunk * chunks, op.dtype, op.reduce, root)
        return call._replace(slice_bytes=self.call.slice_bytes)

    def _repeated(self, timeline: Timeline, total_us: float) -> RepeatedTimes:
        program = timeline.program
        tasks, left = program.tasks, self.passes - program.rounds
        number = tasks.table.round[tasks.instruction]
        of_a_pass = int((number == program.rounds - 2 - self.depth).sum())
        count = program.task_count + left * of_a_pass
        return RepeatedTimes(program, total_us, self.passes, program.rounds, count)

    def _unsteady(self, passes: int) -> ParameterError:
        algorithm = self.meaning.algorithm
        return ParameterError(
            f"{algorithm.source(algorithm.line)}: of {self.passes} passes of the algorithm the "
            f"first {passes} come to no steady state.",
            "Give a smaller -b, up to which all passes are written out.",
        )
