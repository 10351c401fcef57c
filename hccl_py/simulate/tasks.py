"""The uncontended walk over the task view: start and end of every task."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hccl_py.enums import LinkKind, TaskKind
from hccl_py.program.kernels import kernel
from hccl_py.program.program import Program
from hccl_py.simulate.cost import LOCAL, CostModel

__all__ = ["Timeline", "simulate_tasks"]

Floats = npt.NDArray[np.float64]

_POST = int(TaskKind.NOTIFY_POST)
_WAIT = int(TaskKind.NOTIFY_WAIT)


@dataclass(frozen=True, eq=False)
class Timeline:
    """Microseconds, one value per task row: when it starts and ends on its stream, and when it
    takes effect.

    `effect_us` differs from `end_us` for posts (their latency) and RDMA writes (their time on the
    wire).
    """

    start_us: Floats
    end_us: Floats
    effect_us: Floats

    @property
    def total_us(self) -> float:
        """When everything is done."""
        return float(max(self.end_us.max(initial=0.0), self.effect_us.max(initial=0.0)))


def simulate_tasks(program: Program, cost: CostModel) -> Timeline:
    """Time every task alone on its link; raises as `Linked.check` does for programs that cannot
    end.
    """
    tasks, linked = program.tasks, program.linked
    linked.check(program)
    kind = tasks.kind
    is_data, is_post = kind <= TaskKind.RDMA_WRITE_REDUCE, kind == TaskKind.NOTIFY_POST
    link = np.full(len(tasks), LOCAL, np.int8)
    remote = tasks.end >= 0
    link[remote] = program.transports.kind[tasks.end[remote]]
    table = cost.durations()
    on_stream = np.where(
        is_data, table.on_stream(kind, link, tasks.size), tasks.table.duration_us[tasks.instruction]
    )
    after = np.where(is_data, table.on_wire(kind, link, tasks.size), 0.0)
    notify = np.where(remote, tasks.cell % program.transports.stride, -1)
    after[is_post] = table.of_post(link[is_post], notify[is_post])
    wire = np.where((link == LinkKind.RDMA) & (is_post | (after > 0)), tasks.end, -1)
    queue = tasks.rank * np.int32(program.streams) + tasks.stream
    run = _walk.sized(len(tasks))
    start, end, effect = run(
        linked.order,
        linked.post_of,
        queue,
        kind,
        on_stream,
        after,
        wire,
        program.ranks * program.streams,
        len(program.transports),
    )
    return Timeline(start, end, effect)


@kernel
def _walk(
    order: npt.NDArray[np.int32],
    post_of: npt.NDArray[np.int32],
    queue: npt.NDArray[np.int32],
    kinds: npt.NDArray[np.int8],
    on_stream: Floats,
    after: Floats,
    wire: npt.NDArray[np.int64],
    queues: int,
    ends: int,
) -> tuple[Floats, Floats, Floats]:
    """One pass in topological order; engines only add durations and take maxima."""
    clock = np.zeros(queues)
    busy = np.zeros(ends + 1)  # when each RDMA connection has delivered everything
    start = np.empty(len(order))
    end = np.empty(len(order))
    effect = np.empty(len(order))
    for row in order:
        q = queue[row]
        t = clock[q]
        start[row] = t
        if kinds[row] == _WAIT:
            t = max(t, effect[post_of[row]])
            effect[row] = t
        elif kinds[row] == _POST:
            v = t + after[row]
            w = wire[row]
            if w >= 0:
                v = max(v, busy[w])
                busy[w] = v
            effect[row] = v
        else:
            t += on_stream[row]
            effect[row] = t
            w = wire[row]
            if w >= 0:
                busy[w] = max(busy[w], t) + after[row]
                effect[row] = busy[w]
        end[row] = t
        clock[q] = t
    return start, end, effect
