"""The critical path of a program, and the slack of every task.

Times bind each other in three ways: tasks of a stream follow one another, a wait ends when its post
takes effect, and an RDMA connection serves one after the other. The critical path goes back from
the end along what came last; slack goes back along all of them. Both work on the gaps between
times, so that what binds has a slack of exactly 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_py.clocks.alpha import AlphaRule
from hccl_py.clocks.jitter import Jitter
from hccl_py.enums import POST, READS, WAIT, TaskKind, moves_data
from hccl_py.program.kernels import kernel
from hccl_py.simulator.analysis.order import ConnectionOrder, Rows, before_on_stream, order_of
from hccl_py.values import Floats

if TYPE_CHECKING:
    from hccl_py.simulator.timeline import Timeline

_LOCAL = (TaskKind.COPY, TaskKind.REDUCE)


class PathParts(NamedTuple):
    """The parts of a critical path, in microseconds; they sum to the total.

    `launch_us` comes before all tasks, `floor_us` is what calls take beyond them, `shared_us` what
    the busiest link needs beyond both, where flows were timed alone; `alpha_us` is the
    latency of steps, paid by Acks over SDMA and by DataSignals over RDMA, or by what stands for
    messages, `notify_us` that of all other notifies, `handling_us` the stream's time for posts and
    waits; `link_us` bytes over links, `reduce_us` reductions, `copy_us` local copies, each with the
    overhead of their tasks.
    """

    launch_us: float
    floor_us: float
    shared_us: float
    alpha_us: float
    notify_us: float
    handling_us: float
    link_us: float
    reduce_us: float
    copy_us: float
    compute_us: float


@dataclass(frozen=True, eq=False)
class CriticalPath:
    """Task rows from the first to the last whose times bind each other, and the microseconds from
    `begin_us` to `end_us` that each adds: every span begins where the one before ends, the first
    one after the launch.

    A wait adds what it takes by itself: the time until then is that of its post, which comes before
    it. Posts and RDMA writes that the path only passes on their stream, and that take it no time,
    are left out.
    """

    timeline: Timeline
    rows: Rows
    begin_us: Floats
    end_us: Floats

    @property
    def spans_us(self) -> Floats:
        """The time that every row adds."""
        return np.asarray(self.end_us - self.begin_us)

    def parts(self) -> PathParts:
        """Return the parts of the total that each parameter of the cost model explains."""
        program, spans = self.timeline.program, self.spans_us
        tasks = program.tasks
        kind, remote = tasks.table.kind[tasks.instruction[self.rows]], tasks.end[self.rows] >= 0
        is_rdma = np.append(program.transports.is_rdma, False)[tasks.end[self.rows]]  # -1: none
        rule = AlphaRule.of(program, self.timeline.links.cost)
        is_alpha = remote & rule.pays(tasks.cell[self.rows], is_rdma)
        is_post, is_data = kind == POST, moves_data(kind)
        timeline = self.timeline
        on_stream = np.minimum(spans, timeline.end_us[self.rows] - timeline.start_us[self.rows])
        latency = spans - np.where(is_post, on_stream, 0.0)
        is_local = np.isin(kind, _LOCAL)
        reduced = np.where(kind == TaskKind.REDUCE, spans, self._inline_reductions(kind))
        return PathParts(
            launch_us=self.timeline.launch_us if len(spans) else 0.0,
            floor_us=max(timeline.floor_us - timeline.makespan_us, 0.0),
            shared_us=timeline.total_us - max(timeline.floor_us, timeline.makespan_us),
            alpha_us=float(latency[is_post & is_alpha].sum()),
            notify_us=float(latency[is_post & ~is_alpha].sum()),
            handling_us=float(spans[kind == WAIT].sum() + on_stream[is_post].sum()),
            link_us=float((spans - reduced)[is_data & ~is_local].sum()),
            reduce_us=float(reduced.sum()),
            copy_us=float(spans[kind == TaskKind.COPY].sum()),
            compute_us=float(spans[kind == TaskKind.COMPUTE].sum()),
        )

    def phases(self) -> dict[str, float]:
        """Return the microseconds by the labels of phases, the longest first; "" has none."""
        program = self.timeline.program
        label = program.tasks.table.label[program.tasks.instruction[self.rows]]
        found, place = np.unique(label, return_inverse=True)
        spans = np.bincount(place.reshape(-1), self.spans_us, len(found))
        return {
            program.labels[found[k]] if found[k] >= 0 else "": float(spans[k])
            for k in np.argsort(-spans, kind="stable")
        }

    def _inline_reductions(self, kind: npt.NDArray[np.int8]) -> Floats:
        """Return the part of every span that is γ of a reduction inside a transfer; where it
        overlaps the transfer, the time that it adds.
        """
        links, program = self.timeline.links, self.timeline.program
        reduces = [kind_ for kind_ in TaskKind if kind_.reduces and kind_ not in _LOCAL]
        factor = links.slow.of_ranks(program.ranks)[program.tasks.rank[self.rows]]
        gamma: Floats | float = links.cost.inline_gamma_us
        if links.cost.inline_reductions == "longest":
            found, ends = links.classes(program.transports), program.tasks.end[self.rows]
            read, write = (
                np.append(us[found.of_end], 0.0)[ends] for us in (found.read_us, found.write_us)
            )
            gamma = np.maximum(gamma - np.where(np.isin(kind, list(READS)), read, write), 0.0)
        gamma = program.tasks.size[self.rows] * gamma * factor
        gamma = gamma * Jitter.of(program, links.cost).of_rows(program, self.rows)
        return np.where(np.isin(kind, reduces), np.minimum(gamma, self.spans_us), 0.0)


def critical_path(timeline: Timeline) -> CriticalPath:
    """Go back from what ends last, always along what bound it."""
    program = timeline.program
    connections = ConnectionOrder.of(timeline)
    last = (
        int(np.argmax(np.maximum(timeline.end_us, timeline.effect_us)))
        if len(connections.before)
        else -1
    )
    run = _trace_back.sized(len(connections.before))
    rows, begin, end = run(
        last,
        program.linked.post_of,
        before_on_stream(program),
        connections.before,
        connections.stream_us,
        program.tasks.kind,
        timeline.start_us,
        timeline.end_us,
        timeline.effect_us,
    )
    return CriticalPath(timeline, rows, begin, end)


def slack(timeline: Timeline) -> Floats:
    """Return for every row how many microseconds later it could take effect, all else taking as
    long as it does, without a later end of the program.
    """
    program, tasks = timeline.program, timeline.program.tasks
    connections = ConnectionOrder.of(timeline)
    run = _spread_slack.sized(len(tasks))
    return run(
        order_of(timeline, connections),
        program.linked.post_of,
        tasks.rank * np.int32(program.streams) + tasks.stream,
        connections.before,
        connections.stream_us,
        connections.connection_us,
        tasks.kind,
        timeline.start_us,
        timeline.end_us,
        timeline.effect_us,
        program.ranks * program.streams,
        timeline.total_us,
    )


# By row, all arrays of both kernels: `on_stream` and `on_connection` are the rows before it on its
# stream and on its RDMA connection (-1: none), `post_of` the post of a wait; `start`, `end` and
# `effect` its times; `stream_us` how long it was ready on its stream before its connection was, and
# `connection_us` the other way round. One step for each row of the path: at most all rows, once.
@kernel
def _trace_back(
    row: int,
    post_of: Rows,
    on_stream: Rows,
    on_connection: Rows,
    stream_us: Floats,
    kinds: npt.NDArray[np.int8],
    start: Floats,
    end: Floats,
    effect: Floats,
) -> tuple[Rows, Floats, Floats]:
    """Follow one row back to the launch, always to the row that bound it, and return the path from
    its first row on, with the begin and the end of the span that each row adds.
    """
    rows = np.empty(len(kinds), np.int32)
    begin = np.empty(len(kinds))
    until = np.empty(len(kinds))
    count = 0
    # Invariant: the path binds `row` at its effect where `at_effect`, else at its end on the
    # stream.
    at_effect = row >= 0 and effect[row] >= end[row]
    while row >= 0:
        rows[count] = row
        until[count] = effect[row] if at_effect else end[row]
        begin[count] = start[row]
        other = on_stream[row]  # unless something else came last
        by_effect = False
        if at_effect and stream_us[row] > 0:  # the connection came last
            other = on_connection[row]
            begin[count] = effect[other]
            by_effect = True
        elif kinds[row] == WAIT and effect[post_of[row]] > start[row]:  # it really waited
            other = post_of[row]
            begin[count] = effect[other]
            by_effect = True
        if not by_effect:  # what only starts something takes no time on its stream
            while other >= 0 and effect[other] > end[other] and end[other] == start[other]:
                other = on_stream[other]
        at_effect = by_effect
        row = other
        count += 1
    return rows[:count][::-1].copy(), begin[:count][::-1].copy(), until[:count][::-1].copy()


# `order` lists rows so that each comes after all that it follows; `queue` is the stream of a row,
# rank · streams + stream. One step for each row.
@kernel
def _spread_slack(
    order: Rows,
    post_of: Rows,
    queue: npt.NDArray[np.int32],
    on_connection: Rows,
    stream_us: Floats,
    connection_us: Floats,
    kinds: npt.NDArray[np.int8],
    start: Floats,
    end: Floats,
    effect: Floats,
    queues: int,
    total: float,
) -> Floats:
    """Go back from the end. A task's slack is the least over all tasks that follow it, of their own
    slack and the gap between the two.
    """
    # Invariant: when a row's turn comes, all rows that follow it had theirs, so `slack[row]` is the
    # least that its wait and its connection allow, and `follow[q]` the least that its stream does:
    # by how much the stream may be later at the end of the row that comes next in this loop.
    slack = np.full(len(order), np.inf)
    follow = np.full(queues, np.inf)
    for k in range(len(order) - 1, -1, -1):
        row = order[k]
        q = queue[row]
        free = min(follow[q], total - end[row])  # how much later the stream may be done with it
        if kinds[row] == WAIT:
            slack[row] = free
            # Post and stream both lead to a wait; the one that was there early may be later by
            # more.
            post = post_of[row]
            ready = max(start[row], effect[post])
            slack[post] = min(slack[post], free + (ready - effect[post]))
            follow[q] = free + (ready - start[row])
            continue
        late = min(slack[row], total - effect[row])  # how much later it may take effect
        if on_connection[row] >= 0:
            other = on_connection[row]
            slack[other] = min(slack[other], late + connection_us[row])
        free = min(free, late + stream_us[row])
        # A post or a write that its connection sends takes effect apart from its stream.
        apart = kinds[row] == POST or effect[row] > end[row]
        slack[row] = late if apart else free
        follow[q] = free
    return slack
