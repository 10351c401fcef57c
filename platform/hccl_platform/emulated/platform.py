"""The emulated platform: all ranks in this process, their memory in numpy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hccl_py.call.config import Config
from hccl_py.plugins.platforms import Check, Group, Schedule
from hccl_py.topology.topology import Topology

if TYPE_CHECKING:
    from hccl_platform.emulated.session import EmulatedSession


class EmulatedPlatform:
    """Runs programs on the CPU: as fast as possible, or in the interleaving of a schedule.

    A wait that can never end is an error at once. HCCL_EXEC_TIMEOUT bounds, on the clock of this
    machine, the waits of a scheduled run; without a schedule tasks run in an order without waits.
    Modules are imported on first use: processes of other platforms do not wait for them.
    """

    name = "emulated"
    clock = "wall"

    def checks(self) -> Sequence[Check]:
        return ()  # it needs no more than hccl-py itself

    def open(
        self, topology: Topology, config: Config, schedule: Schedule | None, group: Group
    ) -> EmulatedSession:
        from hccl_platform.emulated.scheduler import WaitLimit
        from hccl_platform.emulated.session import EmulatedSession
        from hccl_platform.emulated.turns import check_slow

        if schedule is not None:
            check_slow(topology, schedule.slow)
        waits = WaitLimit(config.wait_seconds(topology.product))
        return EmulatedSession(
            topology.size, config.ccl_bytes, schedule, topology=topology, waits=waits
        )
