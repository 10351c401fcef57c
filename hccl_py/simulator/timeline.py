"""Timelines: the start and the end of every task of a program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from hccl_py.clocks.engines import call_us, launch_us
from hccl_py.clocks.links import Links
from hccl_py.program.program import Program
from hccl_py.values import Floats, IntArray

Walk: TypeAlias = Literal["tasks", "batches", "classes"]
"""Engines, by the unit that each one times."""

if TYPE_CHECKING:
    from hccl_py.simulator.analysis import CriticalPath, LinkUse, StreamUsage, Waits


@dataclass(frozen=True, eq=False)
class Timeline:
    """Microseconds, one value per task row: when it starts and ends on its stream, and when it
    takes effect.

    `effect_us` differs from `end_us` for posts (their latency) and RDMA writes (their time on the
    connection). `behind` is the row of the RDMA write that a write or post on the same connection
    comes behind, -1 for none. `links` says what the times were computed with. Where every flow was
    timed alone, `busiest_link_us` is the time that the busiest link needs for all of its
    bytes, where that is longer; else 0.
    """

    program: Program
    links: Links
    start_us: Floats
    end_us: Floats
    effect_us: Floats
    behind: npt.NDArray[np.int32]
    busiest_link_us: float = 0.0

    @property
    def walk(self) -> Walk:
        """The engine that found the total."""
        return "tasks"

    @property
    def makespan_us(self) -> float:
        """The end of all tasks and their effects."""
        return float(max(self.end_us.max(initial=0.0), self.effect_us.max(initial=0.0)))

    @property
    def floor_us(self) -> float:
        """The least time of the program's calls on their engine."""
        return call_us(self.program, self.links.topology, self.links.cost)

    @property
    def total_us(self) -> float:
        """The time of the program: no less than its calls take at least, or its busiest link."""
        return max(self.makespan_us, self.floor_us, self.busiest_link_us)

    @property
    def launch_us(self) -> float:
        """The time of the launch, before all tasks."""
        return launch_us(self.program, self.links.topology, self.links.cost)

    def _repr_html_(self) -> str:
        """Return a picture and a table of each rank's time, for notebooks."""
        from hccl_py.simulator.page import timeline_html

        return timeline_html(self)

    def usage(self) -> StreamUsage:
        """Return the time that every stream is busy, waits and is idle."""
        from hccl_py.simulator.analysis import usage

        return usage(self)

    def waits(self) -> Waits:
        """Return the waits of ranks for each other."""
        from hccl_py.simulator.analysis import waits

        return waits(self)

    def overruns(self) -> IntArray:
        """Return the rows of posts that take effect while their notify is still set: there are none
        unless it counts posts.
        """
        from hccl_py.simulator.analysis import overruns

        return overruns(self)

    def link_use(self) -> LinkUse:
        """Return the bytes over every link; ParameterError without a topology."""
        from hccl_py.simulator.analysis import link_use

        return link_use(self)

    def critical_path(self) -> CriticalPath:
        """Return the tasks, from first to last, that make the program take as long as it does."""
        from hccl_py.simulator.analysis import critical_path

        return critical_path(self)

    def slack(self) -> Floats:
        """Return, for every task row, how many µs later it could take effect without a later end of
        the program.
        """
        from hccl_py.simulator.analysis import slack

        return slack(self)


class LargeTimeline(Timeline):
    """The timeline of a large program, whose total is known without its tasks: `by_tasks` times
    these when one of their columns is first read.
    """

    def __init__(
        self,
        program: Program,
        links: Links,
        walk: Walk,
        makespan_us: float,
        by_tasks: Callable[[], Timeline],
        busiest_link_us: float = 0.0,
    ) -> None:
        known = {"program": program, "links": links, "_by_tasks": by_tasks}
        known |= {"_walk": walk, "_makespan_us": makespan_us, "busiest_link_us": busiest_link_us}
        for name, value in known.items():
            object.__setattr__(self, name, value)

    _walk: Walk
    _makespan_us: float
    _by_tasks: Callable[[], Timeline]

    @property
    def walk(self) -> Walk:
        """The engine that found the total."""
        return self._walk

    @property
    def makespan_us(self) -> float:
        """The end of all tasks and their effects."""
        return self._makespan_us

    @cached_property
    def _expanded(self) -> Timeline:
        return self._by_tasks()

    @property
    def start_us(self) -> Floats:
        """The start of every task."""
        return self._expanded.start_us

    @property
    def end_us(self) -> Floats:
        """The end of every task on its stream."""
        return self._expanded.end_us

    @property
    def effect_us(self) -> Floats:
        """The time at which every task takes effect."""
        return self._expanded.effect_us

    @property
    def behind(self) -> npt.NDArray[np.int32]:
        """The RDMA write before every write or post on its connection."""
        return self._expanded.behind
