"""Settings of a program for the communicators behind its groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hccl_py.plugins.executor import Executor
from hccl_py.topology import Topology
from hccl_py.topology.presets import DEFAULT_PRESET


@dataclass(frozen=True)
class Settings:
    """Given as `pg_options` to init_process_group or new_group; what is None comes from HCCL's
    environment variables.

    `topology` is a preset's name, a generated network or a `Topology`: where the ranks of the world
    are said to be, which decides what is selected. `expansion_mode` says where tasks are made.
    `executor` maps names of ops to the executors that run them, `executors` adds classes that no
    installed package brings. `buffsize_mb` is in MB of 2^20 bytes. A new group has those of the
    world, unless it is given its own.
    """

    topology: str | Topology = DEFAULT_PRESET
    algo: str | None = None
    buffsize_mb: int | None = None
    deterministic: str | None = None
    expansion_mode: str | None = None
    executor: dict[str, str] | None = None
    executors: Sequence[Executor | type[Executor]] = ()
