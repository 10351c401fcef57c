"""What a platform is: it opens a session for a topology, allocates, and runs programs on real data.

Platforms are found by the entry point group `hccl_py.platforms`; a package lists its own in a
`PLATFORMS` tuple.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

import numpy.typing as npt

from hccl_py.program.program import Program
from hccl_py.resources import ResourceResponse
from hccl_py.topology.topology import Topology

__all__ = ["Adversary", "Platform", "Schedule", "Session"]


class Adversary(Enum):
    """Whom a schedule favours or starves; every choice is legal on hardware."""

    RANDOM = "random"
    """Any stream or wire that can go on, with equal chance."""
    LATE_WIRE = "late-wire"
    """RDMA delivers only when nothing else can go on."""
    EARLY_WIRE = "early-wire"
    """RDMA delivers before anything else goes on."""
    STARVED_STREAM = "starved-stream"
    """One stream, drawn from the seed, runs only when nothing else can."""
    SLOW_RANK = "slow-rank"
    """All streams of one rank, drawn from the seed, run only when nothing else can."""


@dataclass(frozen=True)
class Schedule:
    """An interleaving of asynchronous streams: the same seed gives the same one."""

    seed: int = 0
    adversary: Adversary = Adversary.RANDOM


class Session(Protocol):
    """Memory and resources of the ranks that this process owns."""

    @property
    def local_ranks(self) -> range:
        """The ranks whose inputs and outputs `run` takes."""

    def allocate(self, tag: str, program: Program) -> ResourceResponse:
        """Provide what the program declares, once per tag; later calls return the same response."""

    def expect(self, tag: str, program: Program, runs: int) -> None:
        """Announce how often a program will run, so that its first run may prepare for that."""

    def run(
        self,
        tag: str,
        program: Program,
        inputs: Sequence[npt.NDArray[Any]],
        outputs: Sequence[npt.NDArray[Any]],
    ) -> None:
        """Execute a program: flat contiguous arrays of the op's dtype, one per local rank; in place
        where they overlap.
        """

    def close(self) -> None:
        """Release everything; a closed session cannot run."""


class Platform(Protocol):
    """A place where programs run."""

    name: str
    clock: str
    """`wall` or `model`: what the times of a run mean."""

    def open(self, topology: Topology, ccl_bytes: int, schedule: Schedule | None) -> Session:
        """Open a session; `schedule` asks for a certain interleaving, where the platform can
        choose.
        """
