"""What `hccl-py simulate` does and shows: record, walk, and say what the time goes into."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hccl_py.cli.call import Request, check_tasks, data_size, spell_topology
from hccl_py.cli.options import Call, TimeModel
from hccl_py.cli.output import spell_levels
from hccl_py.cli.summary import HEAD, Summary, spell_count
from hccl_py.cli.time_model import Model, checked_model
from hccl_py.planning import Plan
from hccl_py.program.program import Program
from hccl_py.simulator import Timeline, simulate, simulate_batches
from hccl_py.simulator.bounds import lower_bound
from hccl_py.topology import Topology

__all__ = ["Simulation"]

FEW_TASKS = 300_000
"""Programs up to here are walked task by task, which takes well under a second."""


@dataclass(frozen=True)
class Simulation:
    """A call with its times; `walked` says what they were found by."""

    request: Request
    model: Model
    plan: Plan
    walked: Walked
    record_s: float
    lower_bound_us: float

    @staticmethod
    def of(call: Call, options: TimeModel, report: bool) -> Simulation:
        """Record the call and time it; `report` asks for the tasks of large programs, too."""
        request = Request(call)
        model = checked_model(options, request.topology)
        with request.comm:
            start = time.perf_counter()
            plan = request.plan(request.op(request.minbytes))
            record_s = time.perf_counter() - start
            walked = _walk(plan.program, model, request.topology, report)
        bound = lower_bound(plan.op, request.topology, model.cost)
        return Simulation(request, model, plan, walked, record_s, bound.time_us)

    @property
    def algbw_gbps(self) -> float:
        """10^9 bytes of data size per second."""
        size, total = data_size(self.request, self.plan.op), self.walked.total_us
        return size / total * 1e-3 if total else 0.0

    @property
    def busbw_gbps(self) -> float:
        """The same, times what each link carries per byte of data size."""
        return self.algbw_gbps * self.request.operator.bus_factor(self.plan.program.ranks)

    def document(self, report: bool) -> dict[str, Any]:
        """Return the JSON document."""
        op, program, selection = self.plan.op, self.plan.program, self.plan.selection
        found: dict[str, Any] = {
            "schema": "hccl-py.simulate/1",
            "op": op.name,
            "ranks": program.ranks,
            "topology": self.request.topology.description,
            "bytes": data_size(self.request, op),
            "count": op.count,
            "dtype": op.dtype.value,
            "reduce_op": None if op.reduce is None else op.reduce.spelling,
            "mode": op.mode.value,
            "executor": selection.executor,
            "algorithm": dict(selection.algorithm),
            "rounds": program.rounds,
            "tasks": program.task_count,
            **self.model.document(),
            "walk": self.walked.walk,
            "simulated_us": self.walked.total_us,
            "algbw_gbps": self.algbw_gbps,
            "busbw_gbps": self.busbw_gbps,
            "lower_bound_us": self.lower_bound_us,
            "record_s": self.record_s,
            "link_s": self.walked.link_s,
            "simulate_s": self.walked.simulate_s,
            "peak_rss_mb": _peak_rss_mb(),
        }
        if report and self.walked.timeline is not None:
            found["report"] = Summary(self.walked.timeline).document()
        return found

    def lines(self) -> Iterator[str]:
        """Yield what people read, line by line."""
        program, selection, walked = self.plan.program, self.plan.selection, self.walked
        yield self.request.describe(self.plan.op)
        yield spell_topology(self.request.topology)
        yield f"{selection.executor}, {spell_levels(selection.algorithm)}"
        yield f"cost model {self.model.cost.name}, {self.model.conditions}"
        tasks, rounds = (
            spell_count(program.task_count, "task"),
            spell_count(program.rounds, "round"),
        )
        yield (
            f"{tasks} in {rounds}: recorded in {self.record_s:.3f} s, "
            f"simulated in {walked.link_s + walked.simulate_s:.3f} s by {walked.walk}"
        )
        yield ""
        yield f"{'time':{HEAD}}{walked.total_us:.2f} us of model time"
        bandwidth = f"{self.algbw_gbps:.5g} GB/s, on the bus {self.busbw_gbps:.5g} GB/s"
        yield f"{'bandwidth':{HEAD}}{bandwidth}"
        yield f"{'lower bound':{HEAD}}{self.lower_bound_us:.2f} us{self._distance()}"
        yield ""
        if walked.timeline is None:
            yield "--report says what the time goes into."
        else:
            yield from Summary(walked.timeline).lines()

    def _distance(self) -> str:
        if not self.lower_bound_us:
            return ""
        return f": the program takes {self.walked.total_us / self.lower_bound_us:.4g} times as long"


@dataclass(frozen=True)
class Walked:
    """The time of a program, and how it was found: by `batches`, or by `tasks`, which have a
    timeline.

    `link_s` is what expanding the tasks and linking posts to waits took.
    """

    walk: str
    total_us: float
    link_s: float
    simulate_s: float
    timeline: Timeline | None = None


def _walk(program: Program, model: Model, topology: Topology, report: bool) -> Walked:
    """Time a program: task by task where it is small, where links are shared, or for a report."""
    start = time.perf_counter()
    if program.task_count > FEW_TASKS and model.network == "uncontended" and not report:
        clocks = simulate_batches(program, topology, model.cost, model.slow)
        return Walked("batches", clocks.total_us, 0.0, time.perf_counter() - start)
    check_tasks(program)
    program.linked.check(program)
    linked = time.perf_counter()
    timeline = simulate(program, topology, model.cost, network=model.network, slow=model.slow)
    done = time.perf_counter()
    return Walked("tasks", timeline.total_us, linked - start, done - linked, timeline)


def _peak_rss_mb() -> float:
    """Return the most memory that this process had, in 2^20 bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / ((1 << 20) if sys.platform == "darwin" else 1 << 10)
