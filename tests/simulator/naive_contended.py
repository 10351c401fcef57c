"""Contended times by definition: every rate anew at every event, every actor a generator.

Streams and RDMA connections are Python generators that yield what they wait for. Rates grow step by
step for all flows alike until something stops them, as textbooks say. Times of tasks alone, routes
and capacities are those of `naive_costs` and `naive_routes`.
"""

import math
from collections import Counter, deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import partial

from hccl_py.enums import TaskKind
from hccl_py.program.matching import queues_of
from hccl_py.program.program import Program
from hccl_py.simulator import CostModel, Stragglers
from hccl_py.topology import Topology
from tests.simulator.naive_costs import NaiveCosts
from tests.simulator.naive_routes import Link

TINY = 1e-10


@dataclass(eq=False)
class Flow:
    """Bytes on their way, by the links with the share of them that each carries; `full` is the rate
    that it has alone, in bytes a µs.
    """

    route: dict[Link, float]
    left: float
    full: float
    rate: float = 0.0


Waiting = Flow | Callable[[], bool] | float
Actor = Generator[Waiting, float, None]


@dataclass
class Naive:
    """A program's times; `peaks` has the largest use of every link, as a share of its capacity."""

    start: list[float]
    end: list[float]
    effect: list[float]
    peaks: dict[Link, float] = field(default_factory=dict)


class _Walk:
    def __init__(
        self, program: Program, topology: Topology, cost: CostModel, slow: Stragglers
    ) -> None:
        self.program = program
        self.tasks = program.tasks
        self.costs = NaiveCosts(program, topology, cost, slow)
        nothing = [math.nan] * len(program.tasks)
        self.found = Naive(list(nothing), list(nothing), list(nothing))
        self.sent: dict[int, deque[int]] = {}
        self.capacity: dict[Link, float] = {}

    def stream(self, rows: list[int]) -> Actor:
        found, tasks, costs = self.found, self.tasks, self.costs
        t = 0.0
        for row in rows:
            found.start[row] = t
            kind, connection = int(tasks.kind[row]), costs.connection[row]
            if kind == TaskKind.NOTIFY_WAIT:
                post = int(self.program.linked.post_of[row])
                yield partial(self.is_set, post)
                t = found.effect[row] = max(t, found.effect[post]) + costs.on_stream[row]
            elif kind == TaskKind.NOTIFY_POST and connection < 0:
                t += costs.on_stream[row]
                found.effect[row] = t + costs.after[row]
            elif kind == TaskKind.NOTIFY_POST or connection >= 0:
                t = yield t + costs.on_stream[row]
                found.end[row] = t
                self.sent[connection].append(row)
            elif tasks.size[row] and costs.on_stream[row] > 0 and kind != TaskKind.COMPUTE:
                task_us = costs.task_us[row]
                t = yield t + task_us
                t = yield self.flow(row, costs.on_stream[row] - task_us)
                found.effect[row] = t
            else:
                t += costs.on_stream[row]
                found.effect[row] = t
            found.end[row] = t
            t = yield t

    def is_set(self, post: int) -> bool:
        return not math.isnan(self.found.effect[post])

    def connection(self, sent: deque[int]) -> Actor:
        found, busy = self.found, 0.0
        while True:
            yield partial(bool, sent)
            row = sent.popleft()
            begin = max(busy, found.end[row])
            if self.tasks.kind[row] == TaskKind.NOTIFY_POST:
                found.effect[row] = begin + self.costs.after[row]
            else:
                yield begin
                found.effect[row] = busy = yield self.flow(row, self.costs.after[row])

    def flow(self, row: int, alone_us: float) -> Flow:
        size = float(self.tasks.size[row])
        if alone_us <= TINY:
            return Flow({}, 0.0, 1.0)
        route = self.costs.shares(row)
        self.capacity |= {link: self.costs.links.capacity(link) for link in route}
        return Flow(route, size, size / alone_us)


def naive_contended(
    program: Program, topology: Topology, cost: CostModel, slow: Stragglers | None = None
) -> Naive:
    """Simulate small programs."""
    walk = _Walk(program, topology, cost, slow or Stragglers())
    queues = queues_of(program)
    ends = sorted({connection for connection in walk.costs.connection if connection >= 0})
    walk.sent = {end: deque() for end in ends}
    actors: list[Actor] = [
        walk.stream(queues.rows[first:last].tolist())
        for first, last in zip(queues.first[:-1], queues.first[1:], strict=True)
    ]
    actors += [walk.connection(walk.sent[end]) for end in ends]
    _run(walk, actors)
    assert not any(map(math.isnan, walk.found.effect)), "something never ended"
    return walk.found


def _run(walk: _Walk, actors: list[Actor]) -> None:
    """Move the clock from event to event."""
    now = 0.0
    waiting: dict[Actor, Waiting] = {}
    for actor in actors:
        _step(waiting, actor, None)
    while True:
        while any(_go_on(waiting, actor, now) for actor in list(waiting)):
            pass
        flows = [what for what in waiting.values() if isinstance(what, Flow)]
        _find_rates(flows, walk.capacity)
        _note_peaks(walk, flows)
        times = [what for what in waiting.values() if isinstance(what, float)]
        times += [now + flow.left / flow.rate for flow in flows]
        if not times:
            return
        following = min(times)
        for flow in flows:
            flow.left -= flow.rate * (following - now)
            if flow.left <= TINY * flow.full * max(1.0, following):
                flow.left = 0.0
        now = following


def _step(waiting: dict[Actor, Waiting], actor: Actor, now: float | None) -> None:
    try:
        what = next(actor) if now is None else actor.send(now)
        waiting[actor] = what if isinstance(what, Flow) or callable(what) else float(what)
    except StopIteration:
        waiting.pop(actor, None)


def _go_on(waiting: dict[Actor, Waiting], actor: Actor, now: float) -> bool:
    """Let an actor go on if what it waits for is there."""
    what = waiting.get(actor)
    if isinstance(what, Flow):
        ready = what.left == 0.0
    elif isinstance(what, float):
        ready = what <= now * (1 + TINY)
    else:
        ready = what is not None and what()
    if ready:
        _step(waiting, actor, what if isinstance(what, float) else now)
    return ready


def _find_rates(flows: list[Flow], capacity: dict[Link, float]) -> None:
    """Let all rates grow alike; who reaches its own limit or a full link stops."""
    level, growing = 0.0, list(flows)
    for flow in flows:
        flow.rate = 0.0
    while growing:
        used, sharers = _used(flows), Counter[Link]()
        for flow in growing:
            sharers.update(flow.route)  # adds shares up
        rooms = {link: (capacity[link] - used[link]) / n for link, n in sharers.items()}
        more = min([flow.full - level for flow in growing] + list(rooms.values()))
        level += max(more, 0.0)
        for flow in growing:
            flow.rate = level
        full = {link for link, room in rooms.items() if room - more <= TINY * capacity[link]}
        growing = [
            flow
            for flow in growing
            if flow.full - level > TINY * flow.full and not full.intersection(flow.route)
        ]


def _note_peaks(walk: _Walk, flows: list[Flow]) -> None:
    for link, used in _used(flows).items():
        share = used / walk.capacity[link]
        walk.found.peaks[link] = max(walk.found.peaks.get(link, 0.0), share)


def _used(flows: list[Flow]) -> dict[Link, float]:
    """Return what flows take of each link."""
    used: dict[Link, float] = dict.fromkeys((link for flow in flows for link in flow.route), 0.0)
    for flow in flows:
        for link, share in flow.route.items():
            used[link] += flow.rate * share
    return used
