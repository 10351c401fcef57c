"""Points: one call on one machine each, and how long it would take.

A point holds everything that its outcome depends on, so that processes on other machines can time
it, and its key tells whether that has been done before. The environment has no say.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from hccl_py.call.call_spec import CallSpec, ClusterSpec
from hccl_py.call.config import Config
from hccl_py.clocks.cost import COSTS, DEFAULT_COST, CostModel
from hccl_py.clocks.stragglers import Stragglers
from hccl_py.communicator.planning import Planner, idle
from hccl_py.errors import HcclError, NotSupportedError, ParameterError
from hccl_py.orchestration.allowance import Allowance, TooMuchError
from hccl_py.plugins.authors import author_class
from hccl_py.plugins.discovery import installed_executors
from hccl_py.plugins.executor import choices_of
from hccl_py.program.program import Program
from hccl_py.selection.tags import GROUP_NAME
from hccl_py.simulator.bounds import MachineLimits
from hccl_py.simulator.contended import simulate_contended
from hccl_py.topology import Topology
from hccl_py.tuning.recording import recorded, uncontended_us

_FOR_PEOPLE = {"cost": {"name", "sources", "uncertain"}}
_NEWER = {"device", "wire", "zero_copy"}
_NEWER_COSTS = {
    "alpha_by",
    "inline_reductions",
    "jitter",
    "jitter_seed",
    "joined_tasks",
    "local_notify_us",
    "memory_users",
    "post_us",
    "protocols",
    "shared_ports",
    "wait_us",
}


class Point(BaseModel):
    """A call to time, without counts of its own and not in place; how it runs; the cost model.

    `executor` is a name, or `module:Class` of the current folder; without it HCCL's rules choose.
    `levels` has algorithm names for the levels that the executor leaves open.
    `slow` is as `--slow` spells it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    call: CallSpec
    executor: str | None = None
    levels: dict[str, str] = {}
    cost: CostModel
    network: Literal["uncontended", "contended"] = "uncontended"
    slow: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _check_call(cls, given: Any) -> Any:
        if isinstance(given, dict) and "op" in given:
            raise ParameterError(
                "A point takes its call as one value.",
                "Write Point(call=CallSpec(op, bytes, cluster=ClusterSpec(ranks=...)), cost=...).",
            )
        return given

    @model_validator(mode="after")
    def _check_amounts(self) -> Point:
        if self.call.bytes < 0:
            raise ParameterError(f"A point has {self.call.bytes} bytes.", "Give 0 or more.")
        if self.call.counts is not None or self.call.in_place:
            raise ParameterError(
                "A point has the usual amounts, and is not in place.",
                "Leave counts and in_place out of its call.",
            )
        return self

    def _asks_rules(self) -> bool:
        """Whether the outcome depends on HCCL's rules: they choose the executor, or its levels."""
        if self.executor is None:
            return True
        return not self.levels and _has_open_levels(self.executor)

    @property
    def key(self) -> str:
        """A hash of all that the outcome depends on, the contents of named files included."""
        values = PointRow.of(self).model_dump(mode="json", exclude=_FOR_PEOPLE)
        values["config"] = _keyed(values["config"])
        values["cost"] = keyed_cost(values["cost"])
        if not self._asks_rules():
            del values["config"]["ruleset"]
        values["files"] = self.call.cluster.digests()
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:32]


def _has_open_levels(name: str) -> bool:
    found = installed_executors().executors.get(name)
    return found is not None and any(len(ws) > 1 for ws in choices_of(found.executor).values())


def _keyed(config: dict[str, Any]) -> dict[str, Any]:
    """Return what a key has of settings: those that are newer than keys only where they are set."""
    usual = Config().model_dump(mode="json")
    found = {n: v for n, v in config.items() if n not in _NEWER or v != usual[n]}
    roce = bool(config["intra_roce_enable"])  # None and False make the same links
    return found | {"intra_roce_enable": roce}


def keyed_cost(cost: dict[str, Any]) -> dict[str, Any]:
    """Return what keys and tables have of a cost model: what is newer than they are only where it
    is stated.
    """
    usual = COSTS[DEFAULT_COST].model_dump(mode="json")
    return {n: v for n, v in cost.items() if n not in _NEWER_COSTS or v != usual[n]}


class PointRow(BaseModel):
    """A point as files of sweeps have it: a column for each member."""

    op: str
    bytes: int
    dtype: str
    reduce_op: str | None
    root: int | None
    topology: str | None
    ranks: int | None
    servers: int | None
    devices: int | None
    superpods: int | None
    rank_table: str | None
    config: Config
    executor: str | None
    levels: dict[str, str]
    cost: CostModel
    network: Literal["uncontended", "contended"]
    slow: tuple[str, ...]

    @staticmethod
    def of(point: Point) -> PointRow:
        """Return the row of a point."""
        members = dict(point) | vars(point.call) | vars(point.call.cluster)
        return PointRow.model_validate(members)


class Outcome(BaseModel):
    """How long a point takes by the simulator, and how long finding that out took.

    `bytes` is the data size that the call really has. `busiest_us` is what the busiest link of its
    program needs; an uncontended `simulated_us` may be less, `time_us` is not. `lower_bound_us` is
    what no algorithm beats on this machine. `error` is one sentence; then there are no times.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    bytes: int = 0
    executor: str = ""
    algorithm: dict[str, str] = {}
    simulated_us: float | None = None
    algbw_gbps: float | None = None
    busbw_gbps: float | None = None
    busiest_us: float = 0.0
    lower_bound_us: float | None = None
    tasks: int = 0
    rounds: int = 0
    record_s: float = 0.0
    simulate_s: float = 0.0
    error: str | None = None

    @property
    def time_us(self) -> float:
        """The simulated time, or what the busiest link needs where that is more."""
        if self.simulated_us is None:
            raise ValueError(f"there is no time: {self.error}")
        return max(self.simulated_us, self.busiest_us)


@dataclass(frozen=True)
class Effort:
    """How much may be done for one outcome: instructions to record, and tasks to simulate where
    links are shared; None: any. Counts, so that what is left out does not depend on the machine.
    """

    instructions: int | None = None
    shared_tasks: int | None = None


ANY_EFFORT = Effort()


def evaluate(point: Point, effort: Effort = ANY_EFFORT) -> Outcome:
    """Record and time one call.

    The outcome says what went wrong with the call, its executor or the machine, and where more
    effort would be needed than is allowed.
    """
    return evaluate_counting(point, Allowance(effort.instructions), effort.shared_tasks)


def evaluate_counting(
    point: Point, allowance: Allowance, shared_tasks: int | None = None
) -> Outcome:
    """Evaluate a point with an allowance, which counts what is recorded."""
    try:
        return _Evaluation(point, allowance, shared_tasks).outcome()
    except HcclError as error:
        message = " ".join(error.message.split())
    except MemoryError:
        message = "There is not enough memory for this."
    except TooMuchError:
        message = f"It records more than {_format_count(allowance.most or 0)} instructions."
    return Outcome(executor=point.executor or "", error=message)


class _Evaluation:
    """The timing of one point."""

    def __init__(self, point: Point, allowance: Allowance, shared_tasks: int | None) -> None:
        self.point, self.allowance, self.shared_tasks = point, allowance, shared_tasks
        call = point.call
        self.machine = _machine(call.cluster, call.config, point.cost, call.cluster.digests())
        self.topology = self.machine.topology
        self.operator = call.operator
        self.op = call.param(self.topology.size)

    def outcome(self) -> Outcome:
        """Record, simulate and bound."""
        began = time.perf_counter()
        executor = _executor(self.point.executor)
        plan = recorded(self._planner(), self.op, executor, self.point.levels)
        simulating = time.perf_counter()
        self._check(plan.program)
        simulated, busiest = self._simulate(plan.program)
        ended = time.perf_counter()
        spent = max(simulated, busiest)
        ranks = self.topology.size
        size = self.operator.data_size(self.op, ranks)
        algbw = size / spent * 1e-3 if spent else 0.0
        return Outcome(
            bytes=size,
            executor=plan.selection.executor,
            algorithm=dict(plan.selection.algorithm),
            simulated_us=simulated,
            busiest_us=busiest,
            algbw_gbps=algbw,
            busbw_gbps=algbw * self.operator.bus_factor(ranks),
            lower_bound_us=self._bound(),
            tasks=plan.program.task_count,
            rounds=plan.program.rounds,
            record_s=simulating - began,
            simulate_s=ended - simulating,
        )

    def _planner(self) -> Planner:
        config, registry = self.point.call.config, installed_executors()
        return Planner(self.topology, config, registry, GROUP_NAME, allowance=self.allowance)

    def _check(self, program: Program) -> None:
        most = self.shared_tasks
        shared = self.point.network == "contended"
        if shared and most is not None and program.task_count > most:
            count, limit = _format_count(program.task_count), _format_count(most)
            raise NotSupportedError(f"{count} tasks that share links are more than {limit}.")

    def _simulate(self, program: Program) -> tuple[float, float]:
        """Return the simulated time, and what the busiest link needs where flows do not share."""
        given = program, self.topology, self.point.cost, Stragglers.parse(self.point.slow)
        if self.point.network == "contended":
            return simulate_contended(*given).total_us, 0.0
        return uncontended_us(*given)

    def _bound(self) -> float:
        return 0.0 if idle(self.op) else self.machine.limits.bound(self.op).time_us


def _executor(name: str | None) -> Any:
    """Return what planners take: a name, or an author's class."""
    return name if name is None or ":" not in name else author_class(name, "executor")


class _Machine:
    """A topology and what it lets through, for all points of one process that share it."""

    def __init__(self, topology: Topology, cost: CostModel) -> None:
        self.topology, self._cost = topology, cost

    @cached_property
    def limits(self) -> MachineLimits:
        """What it lets through."""
        return MachineLimits.of(self.topology, self._cost)


@lru_cache(maxsize=8)
def _machine(
    cluster: ClusterSpec, config: Config, cost: CostModel, files: tuple[str, ...]
) -> _Machine:
    """Return a machine; `files` are digests of the files that the cluster names."""
    return _Machine(cluster.build(config), cost)


def _format_count(count: int) -> str:
    return f"{count:,}".replace(",", " ")
