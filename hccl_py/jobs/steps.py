"""What is issued on the streams of a job, in the order in which it was said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from hccl_py.communicator.communicator import Communicator
from hccl_py.communicator.planning import Plan
from hccl_py.values import IntArray


class Event:
    """A point on a stream, one on every rank that records it.

    Any number of streams of the rank may wait for it, and waiting does not use it up.
    """


@dataclass(frozen=True, eq=False)
class JobGroup:
    """A communicator, and the ranks of the job that its ranks are."""

    communicator: Communicator
    members: IntArray


@dataclass(frozen=True, eq=False)
class Compute:
    """A kernel; `duration_us` has one value for each of `ranks`."""

    stream: int
    ranks: IntArray
    line: str
    label: str
    duration_us: npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Record:
    """An event is recorded."""

    stream: int
    ranks: IntArray
    line: str
    event: Event


@dataclass(frozen=True, eq=False)
class Wait:
    """The stream goes on when the event has happened."""

    stream: int
    ranks: IntArray
    line: str
    event: Event


@dataclass(frozen=True, eq=False)
class Run:
    """Collectives of communicators that share no rank, as far as they concern `ranks`."""

    stream: int
    ranks: IntArray
    line: str
    label: str
    parts: tuple[tuple[JobGroup, Plan], ...]


Step: TypeAlias = Compute | Record | Wait | Run
