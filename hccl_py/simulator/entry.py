"""One door to the simulators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from hccl_py.clocks.cost import CostModel
from hccl_py.clocks.stragglers import EVEN, Stragglers
from hccl_py.errors import ParameterError, did_you_mean
from hccl_py.program.program import Program
from hccl_py.simulator.contended import simulate_contended
from hccl_py.simulator.tasks import simulate_tasks
from hccl_py.simulator.timeline import Timeline
from hccl_py.topology.topology import Topology

Network = Literal["uncontended", "contended"]

NETWORKS: dict[Network, Callable[..., Timeline]] = {
    "uncontended": simulate_tasks,
    "contended": simulate_contended,
}
NOTIFIES = ("one-bit", "counting")


def simulate(
    program: Program,
    topology: Topology,
    cost: CostModel | None = None,
    *,
    network: Network = "uncontended",
    slow: Stragglers = EVEN,
    notifies: Literal["one-bit", "counting"] = "one-bit",
) -> Timeline:
    """Return when every task of a program starts and ends.

    `cost` is the model of the topology's product where none is given. `uncontended` times every
    task alone on its link; with `contended` those that overlap share the links of their routes,
    max-min fair. A notify is what the program says, mostly one bit; where it is `counting` posts,
    programs that post too early have times, too, and `Timeline.overruns` says which posts those
    are. Raises DeadlockError and OrchestrationError for programs that cannot end, ParameterError
    for ranks and links in `slow` that do not exist, and for a topology that has another number of
    ranks.
    """
    if network not in NETWORKS:
        hint = did_you_mean(str(network), NETWORKS) or "Take uncontended or contended."
        raise ParameterError(f"network is {network!r}.", hint)
    if not isinstance(topology, Topology):
        raise ParameterError(
            f"topology is {topology!r:.60}.",
            "Give what topology_of returns: the order is (program, topology, cost).",
        )
    if program.ranks != topology.size:
        raise ParameterError(
            f"The program has {program.ranks} ranks, the topology {topology.size}.",
            "Give the topology that it was recorded for.",
        )
    if notifies not in NOTIFIES:
        hint = did_you_mean(str(notifies), NOTIFIES) or "Take one-bit or counting."
        raise ParameterError(f"notifies is {notifies!r}.", hint)
    if notifies == "counting":
        program = replace(program, counts_posts=True)
    model = CostModel.of(topology.product.name) if cost is None else cost
    return NETWORKS[network](program, topology, model, slow)
