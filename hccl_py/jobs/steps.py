"""The steps of a job: kernels, events and collectives in the order of issue."""

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
    """A communicator, and the job's number of each of its ranks."""

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
    """The recording of an event."""

    stream: int
    ranks: IntArray
    line: str
    event: Event


@dataclass(frozen=True, eq=False)
class Wait:
    """The wait of a stream for an event."""

    stream: int
    ranks: IntArray
    line: str
    event: Event


@dataclass(frozen=True, eq=False)
class Communicate:
    """One call of a communicator, or of several that share no rank; `ranks` issue it."""

    stream: int
    ranks: IntArray
    line: str
    label: str
    parts: tuple[tuple[JobGroup, Plan], ...]


Step: TypeAlias = Compute | Record | Wait | Communicate
