"""One door to the simulators: `simulate` picks the engine that a program's size allows."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Literal, get_args

from hccl_py.clocks.cost import CostModel
from hccl_py.clocks.links import Links
from hccl_py.clocks.stragglers import EVEN, Stragglers
from hccl_py.errors import ParameterError, did_you_mean
from hccl_py.program.program import Program
from hccl_py.simulator.batches import simulate_batches
from hccl_py.simulator.contended import Contention
from hccl_py.simulator.load import busiest_us
from hccl_py.simulator.tasks import simulate_tasks
from hccl_py.simulator.timeline import LargeTimeline, Timeline, Walk
from hccl_py.topology.topology import Topology

Network = Literal["uncontended", "contended"]

NETWORKS: tuple[Network, ...] = get_args(Network)
NOTIFIES = ("one-bit", "counting")

ROUNDING = 1e-9
"""The share of a time by which two ways to add up the same parts may differ."""

FEW_TASKS = 300_000
"""Programs of up to so many tasks are timed task by task, which takes well under a second."""


def simulate(
    program: Program,
    topology: Topology,
    cost: CostModel | None = None,
    *,
    network: Network = "uncontended",
    slow: Stragglers = EVEN,
    notifies: Literal["one-bit", "counting"] = "one-bit",
    expand: bool = False,
) -> Timeline:
    """Return when every task of a program starts and ends.

    `cost` is the model of the topology's product where none is given. `uncontended` times every
    task alone on its link, and the whole takes no less than its busiest link needs; with
    `contended` those that overlap share the links of their routes, max-min fair. A notify is what
    the program says, mostly one bit; where it is `counting` posts, programs that post too early
    have times, too, and `Timeline.overruns` says which posts those are.

    The total of a program of more than 300 000 tasks comes from its batches or from ranks that
    stand for all alike, as `Timeline.walk` says; its tasks are timed when one of their columns is
    first read, or at once with `expand`.

    Raises DeadlockError and OrchestrationError for programs that cannot end, ParameterError for
    ranks and links in `slow` that do not exist, and for a topology that has another number of
    ranks.
    """
    if notifies not in NOTIFIES:
        hint = did_you_mean(str(notifies), NOTIFIES) or "Take one-bit or counting."
        raise ParameterError(f"notifies is {notifies!r}.", hint)
    if notifies == "counting":
        program = replace(program, counts_posts=True)
    return Simulation(program, topology, cost, slow, network, expand=expand).timeline()


def _check(program: Program, topology: Topology, network: str) -> None:
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


class Simulation:
    """A program on a machine, and the engine that times it.

    Small programs are timed task by task, and so are those whose notifies count posts, and those
    whose tasks may share links; of the latter one rank of each class where ranks are alike. All
    others are timed by batches. `expand` asks for the tasks in any case.
    """

    def __init__(
        self,
        program: Program,
        topology: Topology,
        cost: CostModel | None,
        slow: Stragglers,
        network: Network,
        *,
        expand: bool = False,
    ) -> None:
        _check(program, topology, network)
        self.program = program
        self._machine = topology, cost or CostModel.of(topology.product.name), slow
        self._is_contended = network == "contended"
        self._expand = expand or program.counts_posts or program.task_count <= FEW_TASKS

    @cached_property
    def walk(self) -> Walk:
        """The engine; finding it may time the representatives of classes."""
        if self._expand:
            return "tasks"
        if not self._is_contended or not self._contention.shares_links:
            return "batches"
        return "tasks" if self._contention.by_classes is None else "classes"

    def timeline(self) -> Timeline:
        """Time the program by its engine."""
        if self.walk == "tasks":
            return self._by_tasks()
        if self.walk == "classes":
            assert self._contention.by_classes is not None
            makespan_us = self._contention.by_classes.makespan_us
        else:
            makespan_us = simulate_batches(self.program, *self._machine).makespan_us
        links = Links.of(self.program, *self._machine)
        beyond_us = self._link_beyond(makespan_us)
        return LargeTimeline(self.program, links, self.walk, makespan_us, self._by_tasks, beyond_us)

    @cached_property
    def _contention(self) -> Contention:
        return Contention(self.program, *self._machine)

    def _by_tasks(self) -> Timeline:
        if self._is_contended:
            return self._contention.timeline()
        timeline = simulate_tasks(self.program, *self._machine)
        return replace(timeline, busiest_link_us=self._link_beyond(timeline.makespan_us))

    def _link_beyond(self, makespan_us: float) -> float:
        """Return the time of the busiest link where it is longer, beyond rounding; else 0."""
        if self._is_contended:
            return 0.0
        link_us = busiest_us(self.program, *self._machine)
        return link_us if link_us > makespan_us * (1 + ROUNDING) else 0.0
