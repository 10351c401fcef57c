"""The uncontended simulation by batches: final clocks of very large programs, never expanded.

Every (batch, stream) is a queue of vector instructions with one clock per lane. As long as all
lanes keep the same time one number stands for them (uniform.py). From there on a queue runs in
lock-step until a wait of it finds an empty cell in some lane; go round the queues while any moves.
A batch that depends on itself (a pipelined chain) stops there: the same clocks, cells and counters
then go on rank by rank. All add and compare the numbers that the simulation by tasks does, so all
give the same times to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hccl_py.cost import CostModel
from hccl_py.errors import DeadlockError, OrchestrationError
from hccl_py.program.describe import notify_name
from hccl_py.program.program import Program
from hccl_py.simulator.batches.code import compiled
from hccl_py.simulator.batches.kernels import State, in_lockstep, rank_by_rank
from hccl_py.simulator.batches.uniform import advance_uniform
from hccl_py.simulator.durations import Durations
from hccl_py.stragglers import EVEN, Stragglers
from hccl_py.topology.topology import Topology
from hccl_py.values import Floats

__all__ = ["Clocks", "simulate_batches"]


@dataclass(frozen=True, eq=False)
class Clocks:
    """When every stream of every rank ends, shape [ranks, streams], and every RDMA connection;
    microseconds.

    `lockstep` is the share of tasks that whole batches did together.
    """

    end_us: Floats
    connection_us: Floats
    lockstep: float

    @property
    def total_us(self) -> float:
        """When everything is done."""
        return float(max(self.end_us.max(initial=0.0), self.connection_us.max(initial=0.0)))


def simulate_batches(
    program: Program,
    topology: Topology | None,
    cost: CostModel,
    slow: Stragglers = EVEN,
    *,
    lockstep: bool = True,
) -> Clocks:
    """Time a program by its batches; `lockstep=False` goes rank by rank from the start.

    Raises DeadlockError where streams can never end, OrchestrationError for a post on a full cell
    and for one that nobody waits for.
    """
    queues, code = compiled(program, Durations(program, topology, cost, slow))
    steps = program.task_count
    state = State(
        np.zeros(int(code.lane_first[-1])),
        np.full(program.cells, -1.0),
        np.zeros(len(program.transports) + 1),
    )
    counter = code.first[:-1].copy()
    lanes = np.diff(code.lane_first)
    done = 0
    if lockstep:
        done = _checked(advance_uniform(code, counter, state), program)
    if lockstep and done < steps:
        room = np.empty((3, int(lanes.max())), np.int64)
        done += _checked(in_lockstep.sized(steps)(code, counter, state, room), program)
    together = done / max(steps, 1)
    if done < steps:
        queue_of = np.repeat(np.arange(len(counter)), lanes)
        waiter = np.full(program.cells, -1)
        stack = np.empty(len(queue_of) + program.cells + 1, np.int64)
        finish = rank_by_rank.sized(steps)
        done += _checked(finish(code, counter[queue_of], queue_of, state, waiter, stack), program)
    if done < steps:
        raise DeadlockError(
            f"Deadlock: {done} of {steps} tasks done, no stream can go on.",
            "Record it with fewer ranks and look at program.linked.report(program).",
        )
    for cell in np.flatnonzero(state.cell >= 0)[:1].tolist():
        raise OrchestrationError(
            f"Unmatched post: nobody waits for {_notify(program, cell)}.",
            "Record it with fewer ranks and call program.linked.check(program).",
            finding="UNMATCHED_POST",
        )
    end = np.zeros((program.ranks, program.streams))
    for queue, (ranks, stream) in enumerate(queues):
        end[ranks, stream] = state.clock[code.lane_first[queue] : code.lane_first[queue + 1]]
    return Clocks(end, state.connection[:-1], together)


def _checked(done: int, program: Program) -> int:
    if done < 0:
        raise OrchestrationError(
            f"Notify overrun: {_notify(program, -done - 1)} is posted while it is still set.",
            "Record it with fewer ranks and call program.linked.check(program).",
            finding="NOTIFY_OVERRUN",
        )
    return done


def _notify(program: Program, cell: int) -> str:
    """Return the notify of a cell and whose it is: `Ack of rank 1 from rank 0`."""
    transports, name = program.transports, notify_name(program, cell)
    if cell >= transports.cells:
        rank = (cell - transports.cells) // len(program.local_notifies.slots)
        return f"{name} of rank {rank}"
    end = cell // transports.stride
    return f"{name} of rank {transports.rank[end]} from rank {transports.peer[end]}"
