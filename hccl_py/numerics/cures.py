"""Cures: settings under which two calls get the same bits, and what they cost by the model.

HCCL_DETERMINISTIC comes first, then HCCL_ALGO with one algorithm between servers, then every
executor that suits both calls. Each is planned and proved like the calls themselves; the cost is
the time of both calls under it beside the time that they take now.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from hccl_py.call.algo import ALGORITHMS
from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.clocks.cost import CostModel
from hccl_py.communicator.planning import Plan, Planner
from hccl_py.errors import HcclError
from hccl_py.numerics.element_trees import trees_of
from hccl_py.numerics.sameness import Bits, same_trees
from hccl_py.plugins.discovery import Registry
from hccl_py.simulator.entry import simulate
from hccl_py.topology.topology import Topology
from hccl_py.tuning.candidates import Candidate, candidates

MOST_TASKS = 2_000_000
"""Tasks of a program that is looked at as a cure."""


@dataclass(frozen=True)
class Cure:
    """A setting, the verdict under it (None: `problem` says why there is none), the executors that
    run then, the model times of both calls, and how much longer they take than now, as a ratio.
    """

    setting: str
    bits: Bits | None
    executors: tuple[str, ...] = ()
    times_us: tuple[float, ...] = ()
    ratio: float = 0.0
    problem: str = ""


@dataclass(frozen=True)
class Machine:
    """The place of two calls and what plans them: a topology, settings, executors, a cost model."""

    topology: Topology
    config: Config
    registry: Registry
    cost: CostModel | None = None

    def planner(self, **changes: str) -> Planner:
        """Return a planner under other settings."""
        config = replace(self.config, strict=False, **changes)  # type: ignore[arg-type]
        return Planner(self.topology, config, self.registry, "numerics")

    def time_us(self, plan: Plan) -> float:
        """Return the model time of a call."""
        return simulate(plan.program, self.topology, self.cost).total_us


def cures_of(
    machine: Machine, ops: Sequence[OpParam], now: Sequence[Plan], shift: int = 0
) -> list[Cure]:
    """Return the settings tried for two calls: cures first, the cheapest at the front, then those
    that do not help, in the order in which they were tried.
    """
    base = sum(machine.time_us(plan) for plan in now)
    found = [
        _tried(machine, setting, plan, ops, base, shift)
        for setting, plan in _settings(machine, ops)
    ]
    helps = [cure for cure in found if cure.bits is Bits.SAME]
    return sorted(helps, key=lambda cure: cure.ratio) + [c for c in found if c not in helps]


def _settings(
    machine: Machine, ops: Sequence[OpParam]
) -> Iterator[tuple[str, Callable[[OpParam], Plan]]]:
    for word in ("true", "strict"):
        planner = machine.planner(deterministic=word)
        yield f"HCCL_DETERMINISTIC={word}", partial(planner.plan, executor=None)
    for word in _words(machine):
        text = f"level0:NA;level1:{word}"
        yield f"HCCL_ALGO={text}", partial(machine.planner(algo=text).plan, executor=None)
    planner = machine.planner()
    for one in _executors(machine, ops):
        plan = partial(planner.plan, executor=one.executor, levels=one.levels)
        yield f"executor {one.name}", plan


def _words(machine: Machine) -> list[str]:
    """Return algorithms between servers, where there are several servers."""
    several = len(machine.topology.servers) > 1
    return [word for word in ALGORITHMS if word not in ("null", "NA", "pairwise")] * several


def _executors(machine: Machine, ops: Sequence[OpParam]) -> list[Candidate]:
    """Return the executors that suit both calls, each with each choice on its open levels."""
    found = []
    for op in ops:
        some = candidates(op, machine.topology, machine.config, machine.registry)
        found.append({one.name: one for one in some})
    return [one for name, one in found[0].items() if all(name in other for other in found)]


def _tried(
    machine: Machine,
    setting: str,
    plan_of: Callable[[OpParam], Plan],
    ops: Sequence[OpParam],
    base: float,
    shift: int,
) -> Cure:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plans = [plan_of(op) for op in ops]
        tasks = max(plan.program.task_count for plan in plans)
        if tasks > MOST_TASKS:
            return Cure(setting, None, problem=f"not looked at: it takes {tasks} tasks")
        one, other = (trees_of(plan.program, is_trusted=True) for plan in plans)
        bits = same_trees(one, other, shift=shift).bits
        times = tuple(machine.time_us(plan) for plan in plans)
    except HcclError as error:
        return Cure(setting, None, problem=error.message)
    executors = tuple(plan.selection.executor for plan in plans)
    return Cure(setting, bits, executors, times, sum(times) / base if base else 1.0)
