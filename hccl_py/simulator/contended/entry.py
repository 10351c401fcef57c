"""From a program to the columns of the event loop, and back to a timeline."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_py.cost import CostModel
from hccl_py.enums import TaskKind
from hccl_py.program.kernels import reading
from hccl_py.program.matching import queues_of
from hccl_py.program.program import Program
from hccl_py.simulator.contended.engine import EngineState, FlowWork, Heap, run_events
from hccl_py.simulator.contended.paths import TaskRoutes
from hccl_py.simulator.durations import Durations
from hccl_py.simulator.tasks import TaskCosts
from hccl_py.simulator.timeline import Timeline
from hccl_py.stragglers import EVEN, Stragglers
from hccl_py.topology.topology import Topology

__all__ = ["simulate_contended"]

_STEPS = 8
"""Loop steps that a task takes, about."""


def simulate_contended(
    program: Program, topology: Topology, cost: CostModel, slow: Stragglers = EVEN
) -> Timeline:
    """Time tasks that share the links of their routes, max-min fair.

    What shares nothing takes as long as in `simulate_tasks`; so does what takes no time alone.
    Raises as `Linked.check` does for programs that cannot end.
    """
    program.linked.check(program)
    durations = Durations(program, topology, cost, slow)
    work = _work(program, durations, slow)
    queues, entities = len(work.first) - 1, len(work.slot_first) - 1
    state = _state(work, queues, entities)
    run = run_events.sized(_STEPS * len(work.rows))
    run(work, state, _heap(entities), _heap(len(work.capacity)))
    return Timeline(program, durations.links, state.start, state.end, state.effect, state.behind)


def _work(program: Program, durations: Durations, slow: Stragglers) -> FlowWork:
    tasks, queues = program.tasks, queues_of(program)
    costs = TaskCosts.of(program, durations)
    paths = TaskRoutes.of(program, durations.links)
    task_us = durations.links.cost.task_us * slow.of_ranks(program.ranks)
    waits = np.flatnonzero(tasks.kind == TaskKind.NOTIFY_WAIT).astype(np.int32)
    wait_of = np.full(len(tasks), -1, np.int32)
    wait_of[program.linked.post_of[waits]] = waits
    moving = np.where(costs.connection >= 0, costs.after, costs.on_stream - task_us[tasks.rank])
    route = np.where(moving > 0, paths.of_row, np.int32(-1))
    longest = _longest_routes(program, costs, paths, route)
    work = FlowWork(
        first=queues.first,
        rows=queues.rows,
        task_us=np.repeat(task_us, program.streams),
        kind=tasks.kind,
        queue=costs.queue,
        post_of=program.linked.post_of,
        wait_of=wait_of,
        size=tasks.size,
        on_stream=costs.on_stream,
        after=costs.after,
        connection=costs.connection,
        route=route,
        route_first=np.append(paths.first, paths.first[-1]),
        link=paths.link,
        capacity=paths.capacity,
        slot_first=np.concatenate([[0], np.cumsum(longest)]),
        slot_owner=np.repeat(np.arange(len(longest), dtype=np.int32), longest),
    )
    columns: list[Any] = [reading(column) for column in tuple[Any, ...](work)]
    return FlowWork(*columns)


def _longest_routes(
    program: Program, costs: TaskCosts, paths: TaskRoutes, route: npt.NDArray[np.int32]
) -> npt.NDArray[np.int64]:
    """Return the hops of the longest route that every entity uses: queues, then connections."""
    queues = program.ranks * program.streams
    at = np.flatnonzero(route >= 0)
    entity = np.where(costs.connection[at] >= 0, queues + costs.connection[at], costs.queue[at])
    longest = np.zeros(queues + len(program.transports), np.int64)
    np.maximum.at(longest, entity, np.diff(paths.first)[route[at]])
    return longest


def _state(work: FlowWork, queues: int, entities: int) -> EngineState:
    rows, slots, links = len(work.rows), len(work.slot_owner), len(work.capacity)
    connections = entities - queues
    has_connections = bool((work.connection >= 0).any())
    return EngineState(
        start=np.full(rows, -1.0),
        end=np.full(rows, -1.0),
        effect=np.full(rows, -1.0),
        behind=np.full(rows, -1, np.int32),
        following=np.full(rows if has_connections else 0, -1, np.int32),
        counter=work.first[:-1].copy(),
        busy=np.zeros(connections),
        sent=np.full(connections, -1, np.int32),
        front=np.full(connections, -1, np.int32),
        back=np.full(connections, -1, np.int32),
        phase=np.zeros(entities, np.int8),
        row=np.zeros(entities, np.int32),
        route=np.zeros(entities, np.int32),
        full=np.zeros(entities),
        speed=np.zeros(entities),
        left=np.zeros(entities),
        since=np.zeros(entities),
        was_slowed=np.zeros(entities, np.int8),
        next_slot=np.full(slots, -1),
        previous_slot=np.full(slots, -1),
        first_slot=np.full(links, -1),
        flows=np.zeros(links, np.int32),
        demand=np.zeros(links),
        floor=np.full(1, np.inf),
        is_dirty=np.zeros(links, np.int8),
        is_binding=np.zeros(links, np.int8),
        room=np.zeros(links),
        sharers=np.zeros(links, np.int32),
        is_reached=np.zeros(entities, np.int8),
        is_open=np.zeros(entities, np.int8),
        found=np.zeros(entities),
        dirty=np.zeros(links, np.int32),
        started=np.zeros(entities, np.int32),
        reached=np.zeros(entities, np.int32),
        binding=np.zeros(links, np.int32),
        counts=np.zeros(4, np.int64),
    )


def _heap(things: int) -> Heap:
    item, place = np.zeros(things, np.int32), np.full(things, -1, np.int32)
    return Heap(np.zeros(things), item, place, np.zeros(1, np.int64))
