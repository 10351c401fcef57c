"""The parts of an uncontended time: what a program loses against the lower bound.

The same program is timed again and again while one sort of cost after the other is taken away:
first those of a call and its tasks, then local copies, reductions, and α. What each saves is its
part. The bytes remain: those of the busiest link, of which the lower bound says how many any
algorithm needs, and the time that links wait for steps before them. The parts add up to the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hccl_py.clocks.cost import LINKS, CostModel, Engines, Protocols
from hccl_py.program.program import Program
from hccl_py.simulator.bounds import Bound
from hccl_py.topology.topology import Topology
from hccl_py.tuning.recording import uncontended_us


class TimePart(NamedTuple):
    """Microseconds of a time, and what they are for."""

    what: str
    us: float


NEEDED = "bytes that any algorithm moves"
"""The part of the lower bound."""


def time_parts(
    program: Program, topology: Topology, cost: CostModel, bound: Bound
) -> list[TimePart]:
    """Return the parts of a program's time, the largest first, without those of nothing."""
    simulated, busiest = uncontended_us(program, topology, cost)
    total, found = max(simulated, busiest), []
    for what, cheaper in _without(cost):
        simulated, busiest = uncontended_us(program, topology, cheaper)
        left = min(max(simulated, busiest), total)
        found.append(TimePart(what, total - left))
        total = left
    needed = min(bound.bandwidth_us, busiest)
    found += [
        TimePart("links that wait for steps before them, one level for the other", total - busiest),
        TimePart("bytes of the busiest link beyond those", busiest - needed),
        TimePart(NEEDED, needed),
    ]
    least = 1e-9 * sum(part.us for part in found)
    return sorted((part for part in found if part.us > least), key=lambda part: -part.us)


def _without(cost: CostModel) -> Iterator[tuple[str, CostModel]]:
    """Yield the model with ever fewer costs, and the name of those that it lost last."""
    tasks = dict.fromkeys(("notify_us", "task_us", "post_us", "wait_us"), 0.0)
    free = {"local_notify_us": None, "engines": Engines(), "protocols": Protocols(), "jitter": 0.0}
    cost = cost.model_copy(update=tasks | free)
    yield "the start of the call and of its tasks, notifies", cost
    cost = cost.model_copy(update={"copy_gbps": None, "memory_gbps": None})
    yield "local copies, such as between user memory and CCL buffers", cost
    cost = cost.model_copy(update={"reduce_gbps": None})
    yield "reductions", cost
    plain: dict[str, object] = {"alpha_us": 0.0, "far_alpha_us": None, "start_us": 0.0}
    links: dict[str, object] = {
        name: getattr(cost, name).model_copy(update=plain) for name in LINKS
    }
    yield "α of steps one after the other", cost.model_copy(update={"hop_us": 0.0, **links})
