"""The steady state of passes that do the same, and the time that each takes then.

A pass is a round of a program. A stream is steady where every task of several passes in a row
starts, ends and takes effect by one and the same time later than its like `step` passes before.
All that follows is so much later, too, where a stream that waits for another one is no faster than
that, and no slower while it really has to wait: then every task goes on to be bound by what it is
bound by now. Passes in a row are enough where they cover all that later ones can wait for.

Streams that share links must take the same time, and there must be a moment at which each is in one
of these passes: then the same data is on its way again, so much later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hccl_py.enums import WAIT
from hccl_py.values import Floats, IntArray

if TYPE_CHECKING:
    from hccl_py.simulator.timeline import Timeline

MOST_SPREAD = 0.02
"""The most by which what passes take may change where it stands for that of others."""

SAME = 1e-9
"""Times that differ by less, relatively to the whole, are the same."""


@dataclass(frozen=True)
class AveragePass:
    """The time of a pass on average, `us`, and its change from pass to pass."""

    us: float
    spread: float


def average_pass(timeline: Timeline, depth: int) -> AveragePass | None:
    """Return the time of a pass in the later half of a program that comes to no steady state; None
    where its quarters differ by more than MOST_SPREAD, and for a few passes.

    The last `depth` passes and the very last one may do something else.
    """
    number, last = _rounds(timeline), timeline.program.rounds - 2 - depth
    ends = np.zeros(timeline.program.rounds)
    np.maximum.at(ends, number, np.maximum(timeline.end_us, timeline.effect_us))
    quarter = last // 4
    if not quarter:
        return None
    before, after = (
        (ends[last - k * quarter] - ends[last - (k + 1) * quarter]) / quarter for k in (1, 0)
    )
    us = (before + after) / 2
    spread = abs(after - before) / us if us > 0 else np.inf
    return AveragePass(float(us), float(spread)) if spread <= MOST_SPREAD else None


@dataclass(frozen=True, eq=False)
class SteadyState:
    """`step_us` has for every stream (rank · streams + stream) what `step` passes take, NaN for
    those without passes.
    """

    timeline: Timeline
    step_us: Floats

    def total_us(self, times: int) -> float:
        """Return the time of a program that has `times` as many steps more."""
        ends = np.maximum(self.timeline.end_us, self.timeline.effect_us)
        last = np.zeros(len(self.step_us))
        np.maximum.at(last, _queues(self.timeline), ends)
        return max(float(np.nanmax(last + times * self.step_us)), self._joined_us(times))

    def _joined_us(self, times: int) -> float:
        """Return when the streams without passes end, which wait for the others: behind each of
        their waits comes what they themselves take.
        """
        timeline, queue = self.timeline, _queues(self.timeline)
        program = timeline.program
        rows = np.flatnonzero(np.isnan(self.step_us[queue]))
        rows = rows[np.lexsort((program.tasks.index[rows], queue[rows]))]
        ready, later = timeline.start_us[rows], np.zeros(len(rows))
        waits = np.flatnonzero(program.tasks.kind[rows] == WAIT)
        post = program.linked.post_of[rows[waits]]
        ready[waits] = np.maximum(ready[waits], timeline.effect_us[post])
        later[waits] = times * np.nan_to_num(self.step_us[queue[post]])
        own = timeline.end_us[rows] - ready
        last = np.flatnonzero(np.diff(queue[rows], append=-1))
        done = np.cumsum(own)
        left = np.repeat(done[last], np.diff(last, prepend=-1)) - done + own
        return float((ready + later + left).max(initial=0.0))


def steady_state(
    timeline: Timeline, step: int, depth: int, *, shares_links: bool
) -> SteadyState | None:
    """Return the steady state that a program comes to; None where it does not, yet.

    A pass waits for none that is more than `depth` passes before it. The last `depth` passes and
    the very last one may do something else, and so may the first one.
    """
    last = timeline.program.rounds - 1 - depth
    several = max(depth, (last - 1 - step) // 2)
    if last - several - step < 1:
        return None
    rows = _rows_of(timeline, last - several, last)
    before = _rows_of(timeline, last - several - step, last - step)
    if not len(rows) or len(rows) != len(before):
        return None
    columns = (timeline.start_us, timeline.end_us, timeline.effect_us)
    later = np.stack([column[rows] - column[before] for column in columns])
    queue = _queues(timeline)[rows]
    first = np.flatnonzero(np.diff(queue, prepend=-1))
    least, most = (
        f.reduceat(g, first)
        for f, g in ((np.minimum, later.min(axis=0)), (np.maximum, later.max(axis=0)))
    )
    found = np.full(timeline.program.ranks * timeline.program.streams, np.nan)
    found[queue[first]] = np.add.reduceat(later.mean(axis=0), first) / np.diff(
        first, append=len(rows)
    )
    near = SAME * timeline.total_us
    state = SteadyState(timeline, found)
    is_steady = (most - least <= near).all() and _stays_bound(state, last - several, near)
    if is_steady and shares_links:
        is_steady = _recurs(state, rows, near)
    return state if is_steady else None


def _queues(timeline: Timeline) -> IntArray:
    tasks = timeline.program.tasks
    return tasks.rank.astype(np.int64) * timeline.program.streams + tasks.stream


def _rounds(timeline: Timeline) -> npt.NDArray[np.int32]:
    tasks = timeline.program.tasks
    return tasks.table.round[tasks.instruction]


def _rows_of(timeline: Timeline, begin: int, end: int) -> IntArray:
    """Return the tasks of some passes, by stream and place there."""
    number = _rounds(timeline)
    rows = np.flatnonzero((number >= begin) & (number < end))
    return rows[np.lexsort((timeline.program.tasks.index[rows], _queues(timeline)[rows]))]


def _stays_bound(state: SteadyState, begin: int, near: float) -> bool:
    """True if waits from some pass on go on to be bound by the posts that bind them now."""
    timeline = state.timeline
    program, queue = timeline.program, _queues(timeline)
    rows = np.flatnonzero((_rounds(timeline) >= begin) & (program.tasks.kind == WAIT))
    post = program.linked.post_of[rows]
    more = state.step_us[queue[post]] - state.step_us[queue[rows]]
    binds = timeline.effect_us[post] > timeline.start_us[rows] - near
    return bool((np.where(binds, np.abs(more), more) <= near).all())


def _recurs(state: SteadyState, rows: IntArray, near: float) -> bool:
    """True if streams that share links take the same time, and meet."""
    timeline = state.timeline
    tasks, queue = timeline.program.tasks, _queues(timeline)
    moves = tasks.table.moves_data[tasks.instruction] & (tasks.size > 0)
    if timeline.links.cost.memory_gbps is None:
        moves &= tasks.end >= 0
    sharing = np.unique(queue[moves])
    kept = rows[np.isin(queue[rows], sharing)]
    if not len(kept):
        return True
    first = np.flatnonzero(np.diff(queue[kept], prepend=-1))
    last = np.append(first[1:], len(kept)) - 1
    meets = timeline.start_us[kept[first]].max() <= timeline.end_us[kept[last]].min()
    return bool(meets and np.ptp(state.step_us[queue[kept[first]]]) <= near)
