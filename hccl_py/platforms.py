"""What a platform is: it opens a session for a topology, allocates, and runs programs on real data.

Platforms are found by the entry point group `hccl_py.platforms`; a package lists its own in a
`PLATFORMS` tuple.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Protocol

import numpy.typing as npt

from hccl_py.config import Config
from hccl_py.program.program import Program
from hccl_py.resources import ResourceResponse
from hccl_py.stragglers import EVEN, Stragglers
from hccl_py.topology.topology import Topology

__all__ = ["Adversary", "Chooser", "Platform", "Replayed", "Schedule", "Seeded", "Session"]


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


class Chooser(Protocol):
    """Makes every choice of a run."""

    def choose(self, options: int) -> int:
        """Return a number from 0 to options - 1."""


class Seeded:
    """Chooses at random; the same seed makes the same choices. `choices` keeps them."""

    def __init__(self, seed: int) -> None:
        self.choices: list[int] = []
        self._random = random.Random(seed)

    def choose(self, options: int) -> int:
        """Draw a number and keep it."""
        choice = int(self._random.random() * options)
        self.choices.append(choice)
        return choice


class Replayed:
    """Makes listed choices; one beyond the options wraps around, and where the list ends all are 0.

    So every list is a legal interleaving, and one that is cut short or has numbers lowered is too:
    that is what lets a failing interleaving be shortened.
    """

    def __init__(self, choices: Sequence[int]) -> None:
        self._choices = iter(choices)

    def choose(self, options: int) -> int:
        """Return the next choice of the list."""
        return next(self._choices, 0) % options


@dataclass(frozen=True)
class Schedule:
    """An interleaving of asynchronous streams: the same seed gives the same one.

    `choices` lists the first choices of the run instead, and those after the last are 0; then the
    seed says nothing. 0 lets the first stream that can go on take one task. What is `slow` gets as
    many times fewer turns as its factors say.
    """

    seed: int = 0
    adversary: Adversary = Adversary.RANDOM
    choices: tuple[int, ...] | None = None
    slow: Stragglers = EVEN

    def chooser(self) -> Chooser:
        """Return who makes the choices of one run."""
        return Seeded(self.seed) if self.choices is None else Replayed(self.choices)

    def among(self, members: Sequence[int]) -> Schedule:
        """Return the schedule of a group of some ranks, numbered from 0 in the order given."""
        return replace(self, slow=self.slow.among(members))


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

    def open(self, topology: Topology, config: Config, schedule: Schedule | None) -> Session:
        """Open a session with buffers of `config.ccl_bytes`, in which no wait for a notify takes
        longer than `config.wait_seconds(topology.product)`; `schedule` asks for a certain
        interleaving, where the platform can choose.
        """
