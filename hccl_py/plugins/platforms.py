"""The contract of a platform: it opens a session for a topology, allocates, and runs programs on
data.

    Communicator ──open──► Session of a Group ──run──► Work ──wait──► the outputs are there

Platforms are found by the entry point group `hccl_py.platforms`; a package lists its own in a
`PLATFORMS` tuple. A process may own all ranks of a group, as on the emulated platform, or some.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from hccl_py.call.config import Config
from hccl_py.clocks.stragglers import EVEN, Stragglers
from hccl_py.communicator.device_arrays import DeviceArray
from hccl_py.enums import DataType, ReduceOp
from hccl_py.plugins.resources import ResourceResponse
from hccl_py.program.program import Program
from hccl_py.topology.topology import Topology
from hccl_py.values import Floats

__all__ = [
    "DONE",
    "Abortable",
    "Adversary",
    "Asynchronous",
    "Binding",
    "Check",
    "Chooser",
    "DiagnosticsProvider",
    "Fact",
    "Group",
    "MailboxMessage",
    "Mailboxes",
    "Messaging",
    "OnDevice",
    "PeerMonitor",
    "Platform",
    "ProcessPlatform",
    "Replayed",
    "Schedule",
    "Seeded",
    "Session",
    "Store",
    "TaskTimes",
    "Timed",
    "Work",
]


class Adversary(Enum):
    """Streams that a schedule favours or starves; every choice is legal on hardware."""

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
        """Return the chooser of one run."""
        return Seeded(self.seed) if self.choices is None else Replayed(self.choices)

    def among(self, members: Sequence[int]) -> Schedule:
        """Return the schedule of a group of some ranks, numbered from 0 in the order given."""
        return replace(self, slow=self.slow.among(members))


class Store(Protocol):
    """A store that the processes of one job share before they can communicate."""

    def set(self, key: str, value: bytes) -> None:
        """Keep a value for all processes."""

    def get(self, key: str, timeout_s: float) -> bytes:
        """Return the value of a key; wait until a process sets it, ExecTimeoutError after
        `timeout_s`.
        """


@runtime_checkable
class PeerMonitor(Protocol):
    """A store that also notices lost peers."""

    def look(self) -> None:
        """Raise PeerLostError if a peer will never come."""


@dataclass(frozen=True)
class Group:
    """The communicator group of a session: `world_ranks` has the world rank of each of its ranks.

    `name` is the same in every process and unique among a world and its groups: every process
    makes its groups in the same order.
    """

    name: str
    world_ranks: tuple[int, ...]

    @classmethod
    def world(cls, size: int, name: str = "world") -> Group:
        """Return the group of all ranks."""
        return cls(name, tuple(range(size)))

    def subset(self, members: Sequence[int], number: int) -> Group:
        """Return the `number`-th group that is made of some of these ranks."""
        ranks = tuple(self.world_ranks[member] for member in members)
        return Group(f"{self.name}/{number}", ranks)


class Work(Protocol):
    """A run that was started, and may have ended."""

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until the run has ended, and raise its error if it had one; ExecTimeoutError after
        `timeout_s`, while the run goes on. In an Asynchronous session, wait until tasks that the
        caller enqueues on its stream from now on come after the run.
        """

    def is_completed(self) -> bool:
        """True if the run has ended, with an error or without."""


class _Done:
    """The work of a run that ended before `run` returned."""

    def wait(self, timeout_s: float | None = None) -> None:
        """Return at once."""

    def is_completed(self) -> bool:
        return True


DONE: Work = _Done()
"""What `Session.run` returns where it comes back after the run."""


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
        stream: object = None,
    ) -> Work:
        """Execute a program: flat contiguous arrays of the op's dtype, one per local rank; in place
        where they overlap. `stream` is the caller's, in whose order the run takes its turn; what it
        may be, the platform says.
        """

    def gather(self, data: bytes) -> list[bytes]:
        """Return the data of every process of the group, in the order of their first ranks. All of
        them call it, between the same two runs.
        """

    def close(self) -> None:
        """Release everything; a closed session cannot run."""


class Platform(Protocol):
    """A place where programs run."""

    name: str
    clock: str
    """The meaning of a run's times: `wall` or `model`."""

    def open(
        self, topology: Topology, config: Config, schedule: Schedule | None, group: Group
    ) -> Session | None:
        """Open a session with buffers of `config.ccl_bytes`, in which no wait for a notify takes
        longer than `config.wait_seconds(topology.product)`; `schedule` asks for a certain
        interleaving, where the platform can choose. None where this process owns no rank of the
        group.
        """


@runtime_checkable
class Binding(Protocol):
    """A session that binds programs to arrays, for calls that are made again and again."""

    def bind(
        self,
        tag: str,
        program: Program,
        inputs: Sequence[npt.NDArray[Any]],
        outputs: Sequence[npt.NDArray[Any]],
    ) -> Callable[[], None]:
        """Return a function that does what `run` does with these arguments and comes back after the
        run. It may be called for as long as the arrays stay where they are.
        """


@runtime_checkable
class OnDevice(Protocol):
    """A session whose arrays lie in the memory of devices."""

    @property
    def likes(self) -> Sequence[DeviceArray]:
        """An example array for each local rank, in the memory where its inputs and outputs must
        lie.
        """

    @property
    def inline_reductions(self) -> frozenset[tuple[DataType, ReduceOp]] | None:
        """Reductions that the devices do while they copy, which programs may then use; None for all
        those of the product.
        """


@runtime_checkable
class Asynchronous(Protocol):
    """A session whose runs are enqueued on streams of devices, and go on after `run` returns."""

    def synchronize(self) -> None:
        """Wait until all runs have ended, and raise the error of one that failed."""


class TaskTimes(NamedTuple):
    """Times at which the tasks of a run began and ended on their streams, in microseconds: one
    value for each row of the task view.
    """

    start_us: Floats
    end_us: Floats


@runtime_checkable
class Timed(Protocol):
    """A session that can take the time of every task."""

    def time_tasks(
        self,
        tag: str,
        program: Program,
        inputs: Sequence[npt.NDArray[Any]],
        outputs: Sequence[npt.NDArray[Any]],
    ) -> TaskTimes:
        """Execute a program, as `run` does, and return when its tasks began and ended, after the
        run.
        """


@runtime_checkable
class Abortable(Protocol):
    """A session whose runs another thread can end."""

    def abort(self, error: BaseException) -> None:
        """End all runs with this error at all ranks."""


class MailboxMessage(Protocol):
    """A send or a receive of a Mailboxes: `peer` is the rank at the other end, and `error` says why
    it has failed, once it has ended.
    """

    peer: int | None
    error: BaseException | None


class Mailboxes(Protocol):
    """Messages between two ranks, apart from the runs of all. Data are bytes of a type, which both
    ranks name alike; `at_end` is called with the message when it has ended, in any thread.

    `error` has ended all of them.
    """

    error: BaseException | None

    def send(
        self,
        peer: int,
        tag: int,
        dtype: DataType,
        data: npt.NDArray[np.uint8],
        at_end: Callable[[Any], object],
    ) -> MailboxMessage:
        """Begin to send data, which stays as it is until the message has ended."""

    def receive(
        self,
        peer: int | None,
        tag: int,
        dtype: DataType,
        into: npt.NDArray[np.uint8],
        at_end: Callable[[Any], object],
    ) -> MailboxMessage:
        """Begin to receive the next message with a tag from a rank, with None from any."""

    def wait(self, message: Any, timeout_s: float | None = None) -> bool:
        """Wait until a message has ended, at most for so long; return whether it has."""

    def finish(self) -> None:
        """Wait until all messages have ended."""

    def fail(self, error: BaseException) -> None:
        """End all messages with an error, and the session of all ranks."""


@runtime_checkable
class Messaging(Protocol):
    """A session that may have messages besides runs."""

    def open_mailboxes(self) -> Mailboxes | None:
        """Return the messages of this process's rank; None where some ranks cannot be reached."""


@runtime_checkable
class ProcessPlatform(Protocol):
    """A platform with a process for every rank, which it can start and which may join by itself."""

    def launch(
        self,
        work: Callable[[], int],
        topology: Topology,
        config: Config,
        schedule: Schedule | None,
    ) -> int | None:
        """Run `work`, which returns an exit status, in new processes on this machine, one for every
        rank, and return the worst one. None, and nothing is run, where the processes of this job
        have been started already. NotSupportedError, once, for what no process could open.
        """

    def joined(
        self, rank: int, size: int, store: Store, connect_s: float, device: int | None = None
    ) -> Platform:
        """Return the platform of a process that knows its place: `rank` of `size` processes, which
        share a store and wait at most `connect_s` seconds for each other to open a session, with
        the number of its device, where the platform has one for every process. Without it, the
        launcher of the processes says so.
        """


class Fact(NamedTuple):
    """A fact about this machine, for `hccl-py doctor`: its name and value; `is_good`, whether it is
    as a platform needs it, or None where it is merely worth knowing; and a hint on what to do.
    """

    name: str
    value: str
    is_good: bool | None = None
    hint: str = ""


class Check(NamedTuple):
    """Looks for something that a platform needs, or with `is_needed` False can do without.

    `look` runs in a process of its own, so it may crash or hang: facts that it has found by then
    count, and its output is ignored. `is_hardware` checks look for the hardware that the platform
    is made for; a machine that has it is meant for that platform.
    """

    name: str
    look: Callable[[], Iterable[Fact]]
    is_needed: bool = True
    is_hardware: bool = False


@runtime_checkable
class DiagnosticsProvider(Protocol):
    """A platform with checks of its needs; it works where no needed check finds anything bad.
    Platforms that need the same thing share a check.
    """

    def checks(self) -> Sequence[Check]:
        """Return the checks; loads nothing."""


_OLD_NAMES = {"Diagnosed": DiagnosticsProvider, "Watchful": PeerMonitor}


def __getattr__(name: str) -> type:
    """Return a protocol by its old name, with a warning."""
    if name not in _OLD_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = _OLD_NAMES[name]
    text = f"{__name__}.{name} is {found.__name__} now."
    warnings.warn(text, DeprecationWarning, stacklevel=2)
    return found
