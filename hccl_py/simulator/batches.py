"""The uncontended walk over batches: final clocks of very large programs, without expanding them.

Every (batch, stream) is a queue of vector instructions with one clock per lane. As long as all
lanes keep the same time one number stands for them (uniform.py). From there on a queue runs in
lock-step until a wait of it finds an empty cell in some lane; go round the queues while any moves.
A batch that depends on itself (a pipelined chain) stops there: the same clocks, cells and counters
then go on rank by rank. All add and compare the same numbers as the walk over the task view does,
so all give the same times to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hccl_py.cost import CostModel
from hccl_py.enums import POST, WAIT
from hccl_py.errors import DeadlockError, OrchestrationError
from hccl_py.program.kernels import kernel
from hccl_py.program.program import Program
from hccl_py.simulator.batch_code import compiled
from hccl_py.simulator.durations import Durations
from hccl_py.simulator.uniform import walk_uniform
from hccl_py.stragglers import EVEN, Slow
from hccl_py.topology.topology import Topology
from hccl_py.values import Floats, IntArray

__all__ = ["Clocks", "simulate_batches"]


@dataclass(frozen=True, eq=False)
class Clocks:
    """When every stream of every rank ends, shape [ranks, streams], and every RDMA connection;
    microseconds.

    `lockstep` is the share of tasks that whole batches did together.
    """

    end_us: Floats
    wire_us: Floats
    lockstep: float

    @property
    def total_us(self) -> float:
        """When everything is done."""
        return float(max(self.end_us.max(initial=0.0), self.wire_us.max(initial=0.0)))


def simulate_batches(
    program: Program,
    topology: Topology | None,
    cost: CostModel,
    slow: Slow = EVEN,
    *,
    lockstep: bool = True,
) -> Clocks:
    """Time a program by its batches; `lockstep=False` goes rank by rank from the start.

    Raises DeadlockError where streams can never end, OrchestrationError for a post on a full cell
    and for one that nobody waits for.
    """
    code = compiled(program, Durations(program, topology, cost, slow))
    steps = program.task_count
    # An empty cell holds -1: times are never negative.
    state = _State(
        np.zeros(int(code.lane_first[-1])),
        np.full(program.cells, -1.0),
        np.zeros(len(program.transports) + 1),
    )
    counter = code.first[:-1].copy()
    done = 0
    if lockstep:
        shared = (code.first, code.lane_first, code.kind, code.columns, code.pool)
        done = _checked(walk_uniform(*shared, counter, *state.arrays()), program)
    if lockstep and done < steps:
        run: Callable[..., int] = _lockstep.sized(steps)
        done += _checked(run(*code.arrays(), counter, *state.arrays()), program)
    together = done / max(steps, 1)
    if done < steps:
        lanes = np.repeat(np.arange(len(counter)), np.diff(code.lane_first))
        finish: Callable[..., int] = _by_rank.sized(steps)
        done += _checked(finish(*code.arrays(), counter[lanes], lanes, *state.arrays()), program)
    if done < steps:
        raise DeadlockError(
            f"Deadlock: {done} of {steps} tasks done, no stream can go on.",
            "Record it with fewer ranks and look at program.linked.report(program).",
        )
    if (state.cell >= 0).any():
        raise OrchestrationError(
            f"Unmatched post: nobody waits for cell {int(np.argmax(state.cell >= 0))} of "
            f"{program.executor}.",
            "Record it with fewer ranks and call program.linked.check(program).",
            finding="UNMATCHED_POST",
        )
    end = np.zeros((program.ranks, program.streams))
    for queue, (ranks, stream) in enumerate(code.queues):
        end[ranks, stream] = state.clock[code.lane_first[queue] : code.lane_first[queue + 1]]
    return Clocks(end, state.wire[:-1], together)


@dataclass(frozen=True, eq=False)
class _State:
    clock: Floats
    cell: Floats
    wire: Floats

    def arrays(self) -> tuple[Floats, Floats, Floats]:
        return self.clock, self.cell, self.wire


def _checked(done: int, program: Program) -> int:
    if done < 0:
        raise OrchestrationError(
            f"Notify overrun: cell {-done - 1} of {program.executor} is posted while still set.",
            "Record it with fewer ranks and call program.linked.check(program).",
            finding="NOTIFY_OVERRUN",
        )
    return done


@kernel
def _lockstep(
    first: IntArray,
    lane_first: IntArray,
    kinds: npt.NDArray[np.int8],
    columns: IntArray,
    formulas: IntArray,
    ints: IntArray,
    floats: Floats,
    counter: IntArray,
    clock: Floats,
    cell: Floats,
    wire: Floats,
) -> int:
    """Advance whole queues while every cell of a wait is full.

    Return the tasks done, or -1 - cell of an overrun.
    """

    def evaluate(into: IntArray, c: int, lanes: int) -> None:
        # The formula in locals: the stores below could alias it otherwise.
        base, step, add, mod, table = formulas[c]
        for lane in range(lanes):
            v = ints[base + lane * step] + add
            if mod > 0 and v >= mod:
                v -= mod
            into[lane] = v if table < 0 else ints[table + v]

    queues = len(first) - 1
    widest = 1
    for q in range(queues):
        widest = max(widest, lane_first[q + 1] - lane_first[q])
    cells = np.empty(widest, np.int64)
    ends = np.empty(widest, np.int64)
    index = np.empty(widest, np.int64)
    done = 0
    moved = True
    while moved:
        moved = False
        for q in range(queues):
            lanes = lane_first[q + 1] - lane_first[q]
            now = clock[lane_first[q] : lane_first[q + 1]]
            while counter[q] < first[q + 1]:
                i = counter[q]
                kind = kinds[i]
                c, w, c_stream, at_stream, c_after, at_after = columns[i]
                if kind in (WAIT, POST):
                    evaluate(cells, c, lanes)
                if kind == WAIT:
                    empty = 0
                    for lane in range(lanes):
                        empty += cell[cells[lane]] < 0
                    if empty:
                        break
                    for lane in range(lanes):
                        now[lane] = max(now[lane], cell[cells[lane]])
                        cell[cells[lane]] = -1.0
                else:
                    if formulas[c_stream, 1] == 0:
                        now += floats[at_stream]
                    else:
                        evaluate(index, c_stream, lanes)
                        for lane in range(lanes):
                            now[lane] += floats[at_stream + index[lane]]
                    if kind == POST or w >= 0:
                        evaluate(index, c_after, lanes)
                    if w >= 0:
                        evaluate(ends, w, lanes)
                    if kind == POST:
                        for lane in range(lanes):
                            t = now[lane]
                            if w >= 0 and ends[lane] >= 0:
                                t = max(t, wire[ends[lane]])
                            t += floats[at_after + index[lane]]
                            if cell[cells[lane]] >= 0:
                                return -1 - int(cells[lane])
                            cell[cells[lane]] = t
                    elif w >= 0:
                        for lane in range(lanes):
                            e = ends[lane]
                            wire[e] = max(wire[e], now[lane]) + floats[at_after + index[lane]]
                counter[q] = i + 1
                done += lanes
                moved = True
    return int(done)


@kernel
def _by_rank(
    first: IntArray,
    lane_first: IntArray,
    kinds: npt.NDArray[np.int8],
    columns: IntArray,
    formulas: IntArray,
    ints: IntArray,
    floats: Floats,
    counter: IntArray,
    queue_of: IntArray,
    clock: Floats,
    cell: Floats,
    wire: Floats,
) -> int:
    """Go on rank by rank from any state; `counter` is per lane.

    Return the tasks done, or -1 - cell of an overrun.
    """

    def value(c: int, lane: int) -> int:
        base, step, add, mod, table = formulas[c]
        v = ints[base + lane * step] + add
        if mod > 0 and v >= mod:
            v -= mod
        return int(v) if table < 0 else int(ints[table + v])

    lanes = len(queue_of)
    waiter = np.full(len(cell), -1, np.int64)
    stack = np.empty(lanes + len(cell) + 1, np.int64)
    for n in range(lanes):
        stack[n] = lanes - 1 - n
    height, done = lanes, 0
    while height > 0:
        height -= 1
        n = stack[height]
        q = queue_of[n]
        lane = n - lane_first[q]
        t = clock[n]
        while counter[n] < first[q + 1]:
            i = counter[n]
            c, w, c_stream, at_stream, c_after, at_after = columns[i]
            if kinds[i] == WAIT:
                at = value(c, lane)
                if cell[at] < 0:
                    waiter[at] = n
                    break
                t = max(t, cell[at])
                cell[at] = -1.0
            else:
                t += floats[at_stream + value(c_stream, lane)]
                arrival = t
                if kinds[i] == POST:
                    e = value(w, lane) if w >= 0 else -1
                    if e >= 0:
                        arrival = max(t, wire[e])
                    arrival += floats[at_after + value(c_after, lane)]
                    at = value(c, lane)
                    if cell[at] >= 0:
                        return -1 - at
                    cell[at] = arrival
                    if waiter[at] >= 0:
                        stack[height] = waiter[at]
                        height += 1
                        waiter[at] = -1
                elif w >= 0:
                    e = value(w, lane)
                    wire[e] = max(wire[e], t) + floats[at_after + value(c_after, lane)]
            counter[n] = i + 1
            done += 1
        clock[n] = t
    return done
