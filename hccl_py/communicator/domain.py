"""The parts of a communicator, made from its arguments."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hccl_py.call.config import GROUP_NAME, Config
from hccl_py.communicator.collectives import index_of
from hccl_py.communicator.planning import ExecutorChooser
from hccl_py.errors import ParameterError
from hccl_py.plugins.discovery import Registry, check_platform, find_platform, installed_executors
from hccl_py.plugins.executor import Executor
from hccl_py.plugins.platforms import Group, Platform, Schedule
from hccl_py.topology import Topology, topology_of

if TYPE_CHECKING:
    from hccl_py.clocks.cost import CostModel
    from hccl_py.communicator.communicator import Communicator
    from hccl_py.tuning.table import TuningTable


@dataclass(frozen=True)
class Domain:
    """The parts of a communicator. `name` is part of its tags, `group` the group that a session is
    opened for; `ranks` has the numbers of a group's members in its `parent`.
    """

    topology: Topology
    config: Config
    registry: Registry
    chooser: ExecutorChooser | None
    platform: Platform
    schedule: Schedule | None
    group: Group
    ranks: tuple[int, ...]
    name: str = GROUP_NAME
    parent: Communicator | None = None


def domain_of(
    topology: str | Topology,
    sizes: Mapping[str, int | None],
    config: Config,
    *,
    platform: str | Platform,
    schedule: Schedule | None,
    executors: Sequence[Executor | type[Executor]],
    selection: str | os.PathLike[str] | TuningTable,
    cost: CostModel | None,
) -> Domain:
    """Return the domain that a communicator's arguments describe, each checked; `sizes` has ranks,
    servers, devices and superpods.
    """
    if schedule is not None and not isinstance(schedule, Schedule):
        raise ParameterError(
            f"schedule is {schedule!r}.", "Give hccl_py.Schedule(seed, adversary)."
        )
    topology = _topology(topology, sizes)
    registry = _registry(executors)
    chooser = _chooser(selection, cost, config)
    found = _platform(platform)
    world = Group.world(topology.size)
    return Domain(topology, config, registry, chooser, found, schedule, world, world.world_ranks)


def _topology(topology: str | Topology, sizes: Mapping[str, int | None]) -> Topology:
    if isinstance(topology, str):
        whole = {k: None if n is None else index_of(n, k) for k, n in sizes.items()}
        return topology_of(**whole, preset=topology)
    if not isinstance(topology, Topology):
        raise ParameterError(f"topology is {topology!r}.", "Give a preset's name or a Topology.")
    if any(n is not None for n in sizes.values()):
        raise ParameterError(
            "A Topology already says how many ranks there are.",
            "Leave ranks, servers, devices and superpods out.",
        )
    return topology


def _registry(executors: Sequence[Executor | type[Executor]]) -> Registry:
    """Return the executors that are installed, and a communicator's own."""
    if not isinstance(executors, (list, tuple)):
        raise ParameterError(
            f"executors is {executors!r}.", "Give a list of executors, if only of one."
        )
    registry = installed_executors().copy()
    for executor in executors:
        registry.add(executor, "this communicator")
    return registry


def _platform(platform: str | Platform) -> Platform:
    if isinstance(platform, str):
        return find_platform(platform)
    if isinstance(platform, type) or not callable(getattr(platform, "open", None)):
        raise ParameterError(
            f"platform is {platform!r:.60}.",
            "Give the name of a platform, or an object that is one.",
        )
    check_platform(platform, "This communicator")
    return platform


def _chooser(
    selection: str | os.PathLike[str] | TuningTable, cost: CostModel | None, config: Config
) -> ExecutorChooser | None:
    """Return the chooser of executors in place of HCCL's rules; None for the rules."""
    if selection == "rules" and cost is None:
        return None
    from hccl_py.tuning.choose import chooser_of, format_selection

    found = chooser_of(selection, cost)
    if found is not None and config.strict:
        raise ParameterError(
            "Strict asks for what HCCL takes, "
            f"selection by {format_selection(selection)} does not.",
            "Leave --strict-hccl (strict) or --select (selection) out.",
        )
    return found
