"""A platform whose processes are threads: each owns some ranks of every communicator.

    every thread: run ──► its arrays ─┐
    every thread: run ──► its arrays ─┴─► the emulated platform, once, on all of them

The threads of a group meet in every run: all of them must have recorded the same program. What a
platform of real processes says through shared memory or messages goes through a list here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy.typing as npt

from hccl_platform.emulated.session import EmulatedSession
from hccl_py import Communicator
from hccl_py.call.config import Config
from hccl_py.errors import MismatchError
from hccl_py.plugins.platforms import DONE, Group, Schedule, Work
from hccl_py.plugins.resources import ResourceResponse
from hccl_py.program.program import Program
from hccl_py.topology.topology import Topology

LATEST_S = 30.0
"""Nobody waits longer for the others: what hangs fails."""

T = TypeVar("T")
Arrays = Sequence[npt.NDArray[Any]]


class Meeting:
    """Where the threads of one group hand one another what they have."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._given: dict[int, Any] = {}
        self._barrier = threading.Barrier(threads)

    def exchange(self, first_rank: int, value: Any) -> list[Any]:
        """Return what all threads gave, in the order of their ranks."""
        self._given[first_rank] = value
        self._barrier.wait(LATEST_S)
        everything = [self._given[rank] for rank in sorted(self._given)]
        self._barrier.wait(LATEST_S)
        return everything

    def leave(self) -> None:
        """Let those who wait fail."""
        self._barrier.abort()


@dataclass
class ThreadJob:
    """What the threads share: `owners` has the thread of every rank of the world."""

    owners: tuple[int, ...]
    meetings: dict[str, Meeting] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def meeting(self, group: Group) -> Meeting:
        """Return where the threads of a group meet."""
        with self.lock:
            threads = len({self.owners[rank] for rank in group.world_ranks})
            return self.meetings.setdefault(group.name, Meeting(threads))


@dataclass
class ThreadPlatform:
    """The platform as one thread sees it."""

    job: ThreadJob
    thread: int
    name: str = "threads"
    clock: str = "wall"

    def open(
        self, topology: Topology, config: Config, schedule: Schedule | None, group: Group
    ) -> ThreadSession | None:
        mine = [r for r, w in enumerate(group.world_ranks) if self.job.owners[w] == self.thread]
        if not mine:
            return None
        local = range(mine[0], mine[-1] + 1)
        assert list(local) == mine, "a session's ranks are a range"
        whole = EmulatedSession(topology.size, config.ccl_bytes, schedule, topology=topology)
        return ThreadSession(whole, local, self.job.meeting(group))


class ThreadSession:
    """The ranks of one thread in one group."""

    def __init__(self, whole: EmulatedSession, local_ranks: range, meeting: Meeting) -> None:
        self.local_ranks = local_ranks
        self._whole, self._meeting = whole, meeting

    def allocate(self, tag: str, program: Program) -> ResourceResponse:
        return self._whole.allocate(tag, program)

    def expect(self, tag: str, program: Program, runs: int) -> None:
        pass

    def run(
        self, tag: str, program: Program, inputs: Arrays, outputs: Arrays, stream: object = None
    ) -> Work:
        first = self.local_ranks[0]
        given = self._meeting.exchange(first, (tag, program.digest, inputs, outputs))
        error: BaseException | None = None
        if len({(mine[0], mine[1]) for mine in given}) > 1:
            error = MismatchError(f"{tag}: the threads recorded different programs.")
        elif first == 0:
            everything = [[array for mine in given for array in mine[side]] for side in (2, 3)]
            try:
                self._whole.run(tag, program, *everything)
            except Exception as raised:
                error = raised
        for found in self._meeting.exchange(first, error):
            if found is not None:
                raise found
        return DONE

    def gather(self, data: bytes) -> list[bytes]:
        return self._meeting.exchange(self.local_ranks[0], data)

    def close(self) -> None:
        self._whole.close()


def in_threads(
    ranks: int,
    body: Callable[[Communicator], T],
    *,
    owners: Sequence[int] = (),
    **settings: Any,
) -> list[T]:
    """Call a function in every thread with the communicator of its ranks; return what they return.

    Every thread owns one rank, or those that `owners` says.
    """
    job = ThreadJob(tuple(owners) or tuple(range(ranks)))
    threads = max(job.owners) + 1
    results: dict[int, T] = {}
    errors: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            with Communicator(ranks, platform=ThreadPlatform(job, thread), **settings) as comm:
                results[thread] = body(comm)
        except BaseException as error:
            errors.append(error)
            for meeting in list(job.meetings.values()):
                meeting.leave()

    started = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
    for each in started:
        each.start()
    for each in started:
        each.join()
    real = [error for error in errors if not isinstance(error, threading.BrokenBarrierError)]
    if errors:
        raise (real or errors)[0]
    return [results[thread] for thread in range(threads)]
