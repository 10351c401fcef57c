"""How `hccl-py simulate` times a call: task by task, by batches, or by passes."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hccl_py.call.op_param import OpParam
from hccl_py.cli.call import check_tasks
from hccl_py.cli.request import Request
from hccl_py.cli.time_model import Model
from hccl_py.communicator.planning import Plan
from hccl_py.errors import ParameterError, did_you_mean
from hccl_py.program.program import Program
from hccl_py.simulator.batches import simulate_batches
from hccl_py.simulator.bounds import lower_bound
from hccl_py.simulator.contended import Contention
from hccl_py.simulator.entry import NOTIFIES, simulate
from hccl_py.simulator.timeline import Timeline
from hccl_py.topology import Topology

if TYPE_CHECKING:
    from hccl_py.importers.contract import Repetition

FEW_TASKS = 300_000
"""Programs up to here are simulated task by task, which takes well under a second."""


def counts_posts(notifies: str) -> bool:
    """Whether notifies count posts; ParameterError where they are of no known kind."""
    if notifies not in NOTIFIES:
        hint = did_you_mean(notifies, NOTIFIES)
        raise ParameterError(f"--notifies {notifies!r} is unknown.", hint)
    return notifies == "counting"


@dataclass(frozen=True)
class Times:
    """How long a program takes, and how that was computed: by `batches`, by `tasks`, which have a
    timeline, by `classes` of ranks that do the same, or by the `passes` that it takes to a steady
    state.

    `link_s` is what expanding the tasks and matching posts and waits took. `overruns` is how many
    posts came too early, where notifies of one bit count them; otherwise there can be none.
    """

    walk: str
    total_us: float
    link_s: float
    simulate_s: float
    timeline: Timeline | None = None
    overruns: int | None = None
    repeated: Any | None = None


@dataclass(frozen=True)
class Simulated:
    """A call at one size with its times."""

    request: Request
    model: Model
    plan: Plan
    times: Times
    record_s: float
    lower_bound_us: float

    @property
    def is_large(self) -> bool:
        """Whether all of its tasks are timed only where that is asked for."""
        return self.plan.program.task_count > FEW_TASKS

    @property
    def algbw_gbps(self) -> float:
        """10^9 bytes of data size per second."""
        size, total = self.request.data_size(self.plan.op), self.times.total_us
        return size / total * 1e-3 if total else 0.0

    @property
    def busbw_gbps(self) -> float:
        """The same, times what each link carries per byte of data size."""
        return self.algbw_gbps * self.request.operator.bus_factor(self.plan.program.ranks)

    @property
    def times_bound(self) -> float | None:
        """How many times the lower bound it takes; None where that is 0."""
        return self.times.total_us / self.lower_bound_us if self.lower_bound_us else None


def simulated(request: Request, model: Model, size: int, whole: bool, counts: bool) -> Simulated:
    """Record a call and time it; `whole` asks for the tasks of large programs, too."""
    start = time.perf_counter()
    op = request.op(size)
    repetition = None if whole or counts else request.repetition(op)
    if repetition is not None:
        return _repeated(request, model, op, repetition)
    plan = request.plan(op)
    record_s = time.perf_counter() - start
    times = _timed(plan.program, model, request.topology, whole, counts)
    bound = lower_bound(plan.op, request.topology, model.cost)
    return Simulated(request, model, plan, times, record_s, bound.time_us)


def _repeated(request: Request, model: Model, op: OpParam, repetition: Repetition) -> Simulated:
    """Time a call of very many passes by those that it takes to a steady state."""
    start = time.perf_counter()

    def simulated(program: Program) -> Timeline:
        return simulate(
            program, request.topology, model.cost, network=model.network, slow=model.slow
        )

    shares = model.network == "contended"
    found = repetition.timed(simulated, shares_links=shares)
    spent = time.perf_counter() - start
    times = Times("passes", found.total_us, 0.0, spent, repeated=found)
    bound = lower_bound(op, request.topology, model.cost)
    plan = Plan(op, request.select(op), found.program)
    return Simulated(request, model, plan, times, 0.0, bound.time_us)


def _timed(program: Program, model: Model, topology: Topology, whole: bool, counts: bool) -> Times:
    """Time a program: task by task where it is small, where tasks may share links, where notifies
    count posts, or where the `whole` is asked for. `counts` lets those of one bit count, too.
    """
    counts &= not program.counts_posts
    if counts:
        program = replace(program, counts_posts=True)
    start = time.perf_counter()
    needs_tasks = program.task_count <= FEW_TASKS or whole or program.counts_posts
    contention = None
    if not needs_tasks and model.network == "contended":
        contention = Contention(program, topology, model.cost, model.slow)
        needs_tasks = contention.shares_links
        if contention.by_classes is not None:
            total_us = contention.by_classes.total_us
            return Times("classes", total_us, 0.0, time.perf_counter() - start)
    if not needs_tasks:
        clocks = simulate_batches(program, topology, model.cost, model.slow)
        return Times("batches", clocks.total_us, 0.0, time.perf_counter() - start)
    check_tasks(program)
    program.linked.check(program, once=True)
    linked = time.perf_counter()
    if contention is not None:
        timeline = contention.timeline()
    else:
        timeline = simulate(program, topology, model.cost, network=model.network, slow=model.slow)
    done = time.perf_counter()
    early = len(timeline.overruns()) if counts else None
    return Times("tasks", timeline.total_us, linked - start, done - linked, timeline, early)
