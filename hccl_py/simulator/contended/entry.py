"""From a program to the columns of the event loop, and back to a timeline."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from hccl_py.clocks.cost import CostModel
from hccl_py.clocks.durations import Durations
from hccl_py.clocks.stragglers import EVEN, Stragglers
from hccl_py.enums import TaskKind
from hccl_py.errors import DeadlockError, OrchestrationError
from hccl_py.program.kernels import reading
from hccl_py.program.matching import queues_of
from hccl_py.program.program import Program
from hccl_py.simulator.contended.chosen import Representatives
from hccl_py.simulator.contended.classes import classes_of
from hccl_py.simulator.contended.coupling import coupling
from hccl_py.simulator.contended.dirty import BLOCK
from hccl_py.simulator.contended.engine import run_events
from hccl_py.simulator.contended.paths import SharedLinks
from hccl_py.simulator.contended.state import Dirty, EngineState, FlowWork, Heap, Members, Sharing
from hccl_py.simulator.pairing import paired_in_time
from hccl_py.simulator.tasks import TaskCosts
from hccl_py.simulator.timeline import Timeline
from hccl_py.topology.topology import Topology
from hccl_py.values import IntArray

_MANY = 10_000
"""Flows from which it pays to look for ranks that do the same."""

_STEPS = 8
"""Loop steps that a task takes, about."""


def simulate_contended(
    program: Program, topology: Topology, cost: CostModel, slow: Stragglers = EVEN
) -> Timeline:
    """Time tasks that share the links of their routes, max-min fair.

    What shares nothing takes as long as in `simulate_tasks`; so does what takes no time alone.
    Raises as `Linked.check` does for programs that cannot end.
    """
    return Contention(program, topology, cost, slow).timeline()


class Contention:
    """The links that a program's tasks may have to share, as far as the batches say, which are not
    expanded: where there are none, contended times are the uncontended ones.
    """

    def __init__(
        self, program: Program, topology: Topology, cost: CostModel, slow: Stragglers = EVEN
    ) -> None:
        self.program = program
        self.durations = Durations(program, topology, cost, slow, shares_devices=False)
        self.shared = SharedLinks.of(program, self.durations)

    @property
    def shares_links(self) -> bool:
        """True if there are any."""
        return len(self.shared.capacity) > 0

    @cached_property
    def representatives(self) -> Representatives | None:
        """Ranks that stand for all that do the same; None where there are few flows, or hardly
        fewer such ranks than ranks.
        """
        if not self.shares_links or len(self.shared.users.entity) < _MANY:
            return None
        classes = classes_of(self.program, self.durations, self.shared)
        return None if classes is None else Representatives.of(self.program, self.shared, classes)

    @cached_property
    def by_classes(self) -> Timeline | None:
        """The times of representatives; None where there are none or the program cannot end."""
        chosen = self.representatives
        if chosen is None:
            return None
        try:
            chosen.program.linked.check(chosen.program, once=True)
        except (DeadlockError, OrchestrationError):  # the whole program says it of the right rank
            return None
        return _timed(chosen.program, self.durations, chosen.shared)

    def timeline(self) -> Timeline:
        """Time the program; raises as `simulate_contended` does."""
        if self.representatives is not None and self.by_classes is not None:
            return self.representatives.expanded(self.by_classes, self.program)
        self.program.linked.check(self.program, once=True)
        return paired_in_time(
            self.program, lambda paired: _timed(paired, self.durations, self.shared)
        )


def _timed(program: Program, durations: Durations, shared: SharedLinks) -> Timeline:
    work = _work(program, durations, shared)
    queues, entities = len(work.first) - 1, len(shared.hops)
    state = _state(work, queues, entities)
    flows, members = _sharing(shared), _members(shared)
    run = run_events.sized(_STEPS * len(work.rows))
    slots, weighs = len(members.owner), len(shared.weight) > 0
    pairs = coupling(shared.first, shared.link, len(shared.capacity), slots, weighs=weighs)
    events, dirty = _heap(entities + len(shared.capacity)), _dirty(len(shared.capacity))
    run(work, state, flows, members, pairs, events, dirty, durations.launch_us)
    return Timeline(program, durations.links, state.start, state.end, state.effect, state.behind)


def _work(program: Program, durations: Durations, shared: SharedLinks) -> FlowWork:
    tasks, queues = program.tasks, queues_of(program)
    costs = TaskCosts.of(program, durations)
    waits = np.flatnonzero(tasks.kind == TaskKind.NOTIFY_WAIT).astype(np.int32)
    wait_of = np.full(len(tasks), -1, np.int32)
    wait_of[program.linked.post_of[waits]] = waits
    moves = np.where(costs.connection >= 0, costs.after > 0, costs.on_stream > costs.task_us)
    work = FlowWork(
        first=queues.first,
        rows=queues.rows,
        task_us=costs.task_us,
        kind=tasks.kind,
        queue=costs.queue,
        post_of=program.linked.post_of,
        wait_of=wait_of,
        size=tasks.size,
        on_stream=costs.on_stream,
        after=costs.after,
        connection=costs.connection,
        route=np.where(moves, shared.of_rows(program), np.int32(-1)),
    )
    columns: list[Any] = [reading(column) for column in tuple[Any, ...](work)]
    return FlowWork(*columns)


def _state(work: FlowWork, queues: int, entities: int) -> EngineState:
    rows, connections = len(work.rows), entities - queues
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
        flowing=np.zeros(entities, np.int32),
        begun=np.zeros(entities, np.int32),
        counts=np.zeros(1, np.int64),
    )


def _sharing(shared: SharedLinks) -> Sharing:
    entities, links = len(shared.hops), len(shared.capacity)
    most = int(shared.flows.max(initial=0))
    return Sharing(
        route_first=reading(np.append(shared.first, shared.first[-1])),
        link=reading(shared.link.view(np.uint32)),
        weight=reading(shared.weight),
        slot_first=reading(_begins(shared.hops)),
        bottleneck=np.full(entities, -1, np.int32),
        hop=np.zeros(entities, np.int64),
        hops=np.zeros(entities, np.int32),
        full=np.zeros(entities),
        left=np.zeros(entities),
        since=np.zeros(entities),
        was_slowed=np.zeros(entities, np.int8),
        capacity=reading(shared.capacity),
        room=shared.capacity.copy(),
        level=np.zeros(links),
        most=np.zeros(links),
        moved=np.zeros(links),
        as_of=np.zeros(links),
        is_touched=np.zeros(links, np.int8),
        fresh=np.zeros(entities, np.int32),
        touched=np.zeros(links, np.int32),
        faster=np.zeros(most, np.int32),
        faster_rate=np.zeros(most),
        counts=np.zeros(2, np.int64),
    )


def _members(shared: SharedLinks) -> Members:
    entities, links = len(shared.hops), len(shared.capacity)
    owner = np.repeat(np.arange(entities, dtype=np.uint32), shared.hops)
    return Members(
        first=reading(_begins(shared.flows)),
        slot=np.zeros(int(shared.flows.sum()), np.uint32),
        flows=np.zeros(links, np.int32),
        size=np.zeros(links, np.int32),
        weight=np.zeros(links if len(shared.weight) else 0),
        load=np.zeros(links if len(shared.weight) else 0),
        bottleneck=np.zeros(int(shared.flows.sum()), np.int32),
        least=np.zeros(links),
        soonest=np.zeros(links),
        place=np.zeros(len(owner), np.int32),
        owner=reading(owner),
        own=np.zeros(len(owner) if len(shared.weight) else 0),
        due=np.zeros(entities),
    )


def _begins(counts: IntArray) -> IntArray:
    """Return the places at which lists of these lengths begin, and the end of the last one."""
    return np.concatenate([[0], np.cumsum(counts)])


def _dirty(links: int) -> Dirty:
    by_level = np.arange(links, dtype=np.uint32)
    return Dirty(
        is_dirty=np.zeros(links, np.int8),
        noted=np.zeros(links, np.uint32),
        link=by_level,
        place=by_level.astype(np.int32),
        block=np.zeros((links >> BLOCK) + 1, np.int32),
        counts=np.zeros(4, np.int64),
    )


def _heap(things: int) -> Heap:
    item, place = np.zeros(things, np.int32), np.full(things, -1, np.int32)
    return Heap(np.zeros(things), item, place, np.zeros(1, np.int64))
