"""Points: one call on one machine each, and its simulated time.

A point holds everything that its outcome depends on, so that processes on other machines can time
it, and its key identifies it in files of sweeps. The environment has no influence.
"""

from __future__ import annotations

import hashlib
import json
import time
from functools import lru_cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import to_jsonable_python

from hccl_py.call.call_spec import CallSpec, ClusterSpec
from hccl_py.call.config import GROUP_NAME, Config
from hccl_py.clocks.cost import LINKS, CostModel, LinkCost
from hccl_py.clocks.stragglers import Stragglers
from hccl_py.communicator.planning import Planner, idle
from hccl_py.errors import HcclError, NotSupportedError, ParameterError
from hccl_py.orchestration.allowance import Allowance, TooMuchError
from hccl_py.plugins.authors import author_class
from hccl_py.plugins.discovery import installed_executors
from hccl_py.program.program import Program
from hccl_py.simulator.bounds import MachineLimits
from hccl_py.simulator.contended import simulate_contended
from hccl_py.simulator.load import busiest_us
from hccl_py.topology import Topology
from hccl_py.tuning.recording import recorded, rounded_us, uncontended_us

CHEAP_TASKS = 100_000
"""Programs of so many tasks are timed even where they cannot win, so that curves are whole."""

BEATEN = "Their busiest links alone need longer than the choice of HCCL's rules takes."
"""The error of a candidate that cannot win."""

_FOR_PEOPLE = {"cost": {"name", "sources", "uncertain", "measured"}}
_OF_LINKS = {"alpha_us", "gbps", "ports"}
_NEWER = {"device", "new_selector", "wire", "zero_copy"}
_NEWER_COSTS = {
    "alpha_by",
    "engines",
    "inline_gbps",
    "inline_reductions",
    "jitter",
    "jitter_seed",
    "joined_tasks",
    "local_notify_us",
    "measured",
    "memory_users",
    "post_us",
    "protocols",
    "shared_ports",
    "wait_us",
}


class Point(BaseModel):
    """A call to time, without counts and not in place, its executor, and the cost model.

    `executor` is a name, or `module:Class` of the current folder; without one HCCL's rules choose.
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
        """True if the outcome depends on HCCL's rules: they choose the executor, or its levels."""
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
    return found is not None and any(len(ws) > 1 for ws in found.choices.values())


def _keyed(config: dict[str, Any]) -> dict[str, Any]:
    """Return the settings for a key: those that are newer than keys only where they are set."""
    usual = to_jsonable_python(Config())
    found = {n: v for n, v in config.items() if n not in _NEWER or v != usual[n]}
    roce = bool(config["intra_roce_enable"])  # None and False make the same links
    return found | {"intra_roce_enable": roce}


def keyed_cost(cost: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a cost model for keys and tables: those that are newer than they are
    only where they differ from the default.
    """
    links = {name: {"alpha_us": 0, "gbps": None} for name in LINKS}
    free = {"name": "", "reduce_gbps": None, "copy_gbps": None}
    usual = CostModel.model_validate(free | links).model_dump(mode="json")
    found = {n: v for n, v in cost.items() if n not in _NEWER_COSTS or v != usual[n]}
    return found | {name: _keyed_link(cost[name]) for name in LINKS if name in cost}


def _keyed_link(link: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a sort of links in the same way."""
    fields = LinkCost.model_fields
    return {n: v for n, v in link.items() if n in _OF_LINKS or v != fields[n].default}


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
    """The simulated time of a point in µs, and the seconds that recording and simulating took.

    `bytes` is the data size of the call, `busiest_us` the time of its busiest link; an uncontended
    `simulated_us` may be less, `time_us` is not. `lower_bound_us` is the least time of any
    algorithm on this machine. `error` is one sentence; then there are no times.
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
        """The simulated time, or that of the busiest link where that is longer."""
        if self.simulated_us is None:
            raise ValueError(f"there is no time: {self.error}")
        return max(self.simulated_us, self.busiest_us)


def evaluate(
    point: Point,
    allowance: Allowance | None = None,
    shared_tasks: int | None = None,
    limit_us: float | None = None,
) -> Outcome:
    """Record and time one call.

    The outcome has the error where the call, its executor or the machine fails, and where it takes
    more than is allowed: instructions to record, which the allowance counts, or tasks to simulate
    where links are shared. These are counts, so that outcomes do not depend on the machine. A large
    program whose busiest link needs more than `limit_us` is not simulated: its error is `BEATEN`.
    """
    allowance = allowance or Allowance()
    try:
        return _timed(point, allowance, shared_tasks, limit_us)
    except HcclError as error:
        message = " ".join(error.message.split())
    except MemoryError:
        message = "There is not enough memory for this."
    except TooMuchError:
        message = f"It records more than {_format_count(allowance.most or 0)} instructions."
    return Outcome(executor=point.executor or "", error=message)


def _timed(
    point: Point, allowance: Allowance, shared_tasks: int | None, limit_us: float | None
) -> Outcome:
    """Record, simulate and bound."""
    call, files = point.call, point.call.cluster.digests()
    topology = _topology(call.cluster, call.config, files)
    operator, op = call.operator, call.param(topology.size)
    began = time.perf_counter()
    planner = Planner(topology, call.config, installed_executors(), GROUP_NAME, allowance=allowance)
    plan = recorded(planner, op, _executor(point.executor), point.levels)
    if limit_us is not None and _is_beaten(point, plan.program, topology, limit_us):
        raise NotSupportedError(BEATEN)
    simulating = time.perf_counter()
    simulated, busiest = _simulated(point, plan.program, topology, shared_tasks)
    ended = time.perf_counter()
    spent = max(simulated, busiest)
    size = operator.data_size(op, topology.size)
    algbw, busbw = operator.bandwidths(size, spent, topology.size)
    bound = 0.0
    if not idle(op):
        bound = _limits(call.cluster, call.config, point.cost, files).bound(op).time_us
    return Outcome(
        bytes=size,
        executor=plan.selection.executor,
        algorithm=dict(plan.selection.algorithm),
        simulated_us=simulated,
        busiest_us=busiest,
        algbw_gbps=algbw,
        busbw_gbps=busbw,
        lower_bound_us=bound,
        tasks=plan.program.task_count,
        rounds=plan.program.rounds,
        record_s=simulating - began,
        simulate_s=ended - simulating,
    )


def _simulated(
    point: Point, program: Program, topology: Topology, most_tasks: int | None
) -> tuple[float, float]:
    """Return the simulated time, and the time of the busiest link where flows do not share."""
    given = program, topology, point.cost, Stragglers.parse(point.slow)
    if point.network != "contended":
        return uncontended_us(*given)
    if most_tasks is not None and program.task_count > most_tasks:
        count, limit = _format_count(program.task_count), _format_count(most_tasks)
        raise NotSupportedError(f"{count} tasks that share links are more than {limit}.")
    return simulate_contended(*given).total_us, 0.0


def _is_beaten(point: Point, program: Program, topology: Topology, limit_us: float) -> bool:
    """Return True if a large program takes longer than a limit, as its busiest link alone does.

    Jitter may make a link faster than its rate: then no link says how long a program takes at
    least.
    """
    if point.cost.jitter or program.task_count <= CHEAP_TASKS:
        return False
    least = busiest_us(program, topology, point.cost, Stragglers.parse(point.slow))
    return rounded_us(least) > rounded_us(limit_us)


def _executor(name: str | None) -> Any:
    """Return a name, or the class of an author, for planners."""
    return name if name is None or ":" not in name else author_class(name, "executor")


@lru_cache(maxsize=8)
def _topology(cluster: ClusterSpec, config: Config, files: tuple[str, ...]) -> Topology:
    """Build a topology; `files` are digests of the files that the cluster names."""
    return cluster.build(config)


@lru_cache(maxsize=8)
def _limits(
    cluster: ClusterSpec, config: Config, cost: CostModel, files: tuple[str, ...]
) -> MachineLimits:
    """Return the limits of the machine with this topology and these costs."""
    return MachineLimits.of(_topology(cluster, config, files), cost)


def _format_count(count: int) -> str:
    return f"{count:,}".replace(",", " ")
