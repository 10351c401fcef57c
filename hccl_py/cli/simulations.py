"""The timing of a call by `hccl-py simulate`: task by task, by batches, or by passes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hccl_py.call.op_param import OpParam
from hccl_py.cli.accuracy import TimeAccuracy
from hccl_py.cli.call import check_tasks
from hccl_py.cli.options import one_of
from hccl_py.cli.request import Model, Request
from hccl_py.communicator.planning import Plan
from hccl_py.errors import DeadlockError, HcclError
from hccl_py.program.program import Program
from hccl_py.simulator import entry
from hccl_py.simulator.bounds import lower_bound
from hccl_py.simulator.timeline import Timeline
from hccl_py.topology import Topology

if TYPE_CHECKING:
    from hccl_py.importers.contract import Repetition


def counts_posts(notifies: str) -> bool:
    """Return True if notifies are to count posts; ParameterError for an unknown kind."""
    return one_of("--notifies", notifies, {kind: kind == "counting" for kind in entry.NOTIFIES})


@dataclass(frozen=True)
class Times:
    """The time of a program, and the engine that found it: `Timeline.walk`, or `passes` where those
    up to a steady state stand for all. `makespan_us` is that of its tasks, which may be less than
    its calls take at least, or than `busiest_link_us`, which its busiest link needs.

    `timeline` is that of engines that time tasks. `link_s` is the time for expanding the tasks and
    matching posts and waits. `overruns` counts the posts that came too early, where notifies of one
    bit were let count posts; None elsewhere.
    """

    walk: str
    total_us: float
    makespan_us: float
    link_s: float
    simulate_s: float
    timeline: Timeline | None = None
    overruns: int | None = None
    repeated: Any | None = None
    busiest_link_us: float = 0.0

    @property
    def is_at_floor(self) -> bool:
        """True if the call takes the least time of any call, longer than its own tasks."""
        return max(self.makespan_us, self.busiest_link_us) < self.total_us

    @property
    def is_of_links(self) -> bool:
        """True if the time is that of the busiest link, longer than that of flows alone."""
        return self.makespan_us < self.total_us == self.busiest_link_us


@dataclass(frozen=True)
class Simulated:
    """A call at one size with its times."""

    request: Request
    model: Model
    plan: Plan
    times: Times
    record_s: float
    lower_bound_us: float

    @cached_property
    def accuracy(self) -> TimeAccuracy:
        """The accuracy of the time."""
        return TimeAccuracy.of(self.request, self.plan.program, self.plan.op, self.model)

    @property
    def is_large(self) -> bool:
        """True if its tasks are timed on request only."""
        return self.plan.program.task_count > entry.FEW_TASKS

    @cached_property
    def bandwidths(self) -> tuple[float, float]:
        """Algorithm and bus bandwidth in GB/s."""
        size, ranks = self.request.data_size(self.plan.op), self.plan.program.ranks
        return self.request.operator.bandwidths(size, self.times.total_us, ranks)

    @property
    def times_bound(self) -> float | None:
        """The time over the lower bound; None where that is 0."""
        return self.times.total_us / self.lower_bound_us if self.lower_bound_us else None


@dataclass(frozen=True)
class FailedSize:
    """A size at which a call has no time, and why."""

    bytes: int
    error: HcclError


def simulated_sizes(
    request: Request, model: Model, sizes: Iterable[int], counts: bool
) -> Iterator[Simulated | FailedSize]:
    """Yield the times of calls at several sizes; one that fails does not keep others from it."""
    for size in sizes:
        try:
            yield simulated(request, model, size, False, counts)
        except HcclError as error:
            yield FailedSize(size, error)


def simulated(request: Request, model: Model, size: int, whole: bool, counts: bool) -> Simulated:
    """Record a call and time it; `whole` asks for the tasks of large programs, too."""
    start = time.perf_counter()
    op = request.op(size)
    repetition = None if whole or counts else request.repetition(op)
    if repetition is not None:
        return _repeated(request, model, op, repetition)
    plan = request.plan(op)
    record_s = time.perf_counter() - start
    try:
        times = _timed(plan.program, model, request.topology, whole, counts)
    except DeadlockError as error:
        raise request.hang(op, error) from None
    bound_us = 0.0
    if plan.program.has_op:
        bound_us = lower_bound(plan.op, request.topology, model.cost).time_us
    return Simulated(request, model, plan, times, record_s, bound_us)


def _repeated(request: Request, model: Model, op: OpParam, repetition: Repetition) -> Simulated:
    """Time a call of very many passes by those up to a steady state."""
    start = time.perf_counter()

    def simulated(program: Program) -> Timeline:
        return entry.Simulation(
            program, request.topology, model.cost, model.slow, model.network, expand=True
        ).timeline()

    shares = model.network == "contended"
    found = repetition.timed(simulated, shares_links=shares)
    spent = time.perf_counter() - start
    times = Times("passes", found.total_us, found.total_us, 0.0, spent, repeated=found)
    bound_us = 0.0
    if found.program.has_op:
        bound_us = lower_bound(op, request.topology, model.cost).time_us
    plan = Plan(op, request.select(op), found.program)
    return Simulated(request, model, plan, times, 0.0, bound_us)


def _timed(program: Program, model: Model, topology: Topology, whole: bool, counts: bool) -> Times:
    """Time a program by the engine that `simulate` chooses; `whole` asks for its tasks, `counts`
    lets notifies of one bit count posts.
    """
    counts &= not program.counts_posts
    if counts:
        program = replace(program, counts_posts=True)
    start = time.perf_counter()
    simulation = entry.Simulation(
        program, topology, model.cost, model.slow, model.network, expand=whole
    )
    by_tasks, link_s = simulation.walk == "tasks", 0.0
    if by_tasks:
        check_tasks(program)
        begin = time.perf_counter()
        program.linked.check(program, once=True)
        link_s = time.perf_counter() - begin
    timeline = simulation.timeline()
    simulate_s = time.perf_counter() - start - link_s
    early = len(timeline.overruns()) if counts else None
    shown = timeline if by_tasks else None
    return Times(
        timeline.walk,
        timeline.total_us,
        timeline.makespan_us,
        link_s,
        simulate_s,
        shown,
        early,
        busiest_link_us=timeline.busiest_link_us,
    )
