"""When every task of a program starts and ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hccl_py.clocks.links import Links
from hccl_py.program.program import Program
from hccl_py.values import Floats, IntArray

if TYPE_CHECKING:
    from hccl_py.simulator.analysis import CriticalPath, LinkUse, StreamUsage, Waits


@dataclass(frozen=True, eq=False)
class Timeline:
    """Microseconds, one value per task row: when it starts and ends on its stream, and when it
    takes effect.

    `effect_us` differs from `end_us` for posts (their latency) and RDMA writes (their time on the
    connection). `behind` is the row of the RDMA write that a write or post on the same connection
    comes behind, -1 for none. `links` says what the times were computed with.
    """

    program: Program
    links: Links
    start_us: Floats
    end_us: Floats
    effect_us: Floats
    behind: npt.NDArray[np.int32]

    @property
    def total_us(self) -> float:
        """When everything is done."""
        return float(max(self.end_us.max(initial=0.0), self.effect_us.max(initial=0.0)))

    @property
    def launch_us(self) -> float:
        """What the launch takes, before all tasks."""
        return self.links.cost.protocols.of(self.program.protocol).launch_us

    def _repr_html_(self) -> str:
        """Return a table of what every rank does with the time, for notebooks."""
        from hccl_py.simulator.page import timeline_html

        return timeline_html(self)

    def usage(self) -> StreamUsage:
        """Return how long every stream is busy, waits and is idle."""
        from hccl_py.simulator.analysis import usage

        return usage(self)

    def waits(self) -> Waits:
        """Return who waits for whom, and how long."""
        from hccl_py.simulator.analysis import waits

        return waits(self)

    def overruns(self) -> IntArray:
        """Return the rows of posts that take effect while their notify is still set: there are none
        unless it counts posts.
        """
        from hccl_py.simulator.analysis import overruns

        return overruns(self)

    def link_use(self) -> LinkUse:
        """Return what every link carries; ParameterError without a topology."""
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
