"""Processes that a test may kill, stop or let fail, which no launcher looks after."""

from __future__ import annotations

import faulthandler
import gc
import os
import pickle
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hccl_platform.processes.world import World
from hccl_py.errors import ExecTimeoutError, HcclError

ASLEEP_S = 60.0
"""Seconds in a row in which no process of a test wants the machine, after which they never end: on
a busy machine the seconds of others do not count.
"""
_LOOK_S = 0.5
_STACKS_S = 2.0
_STATE = 0
_WORKING = "RD"
"""States of a thread that runs, waits for a processor, or for a disk."""


class FileStore:
    """A store in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def set(self, key: str, value: bytes) -> None:
        path = self._path(key)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(value)
        part.rename(path)

    def get(self, key: str, timeout_s: float) -> bytes:
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            if self._path(key).exists():
                return self._path(key).read_bytes()
            select.select([], [], [], 0.001)
        raise ExecTimeoutError(key)

    def _path(self, key: str) -> Path:
        return self._folder / key.replace("/", "_")


@dataclass(frozen=True)
class Ended:
    """How a process ended: what its body returned, or the error and when it was raised."""

    value: Any = None
    error: str = ""
    message: str = ""
    hint: str = ""
    code: str = ""
    at: float = 0.0


class Children:
    """The processes, by rank. None begins before all are forked: a thread of this process that
    serves an early one may hold a lock of the C library, which a later one would never get.
    """

    def __init__(self, ranks: int, body: Callable[[World], Any], folder: Path) -> None:
        self.results = [os.memfd_create(f"result of {rank}") for rank in range(ranks)]
        self.stacks = [os.memfd_create(f"stacks of {rank}") for rank in range(ranks)]
        self._gate, held = os.pipe()
        self.processes = [
            self._fork(World(r, ranks, FileStore(folder)), body, held) for r in range(ranks)
        ]
        os.close(held)
        os.close(self._gate)
        self.pidfds = [os.pidfd_open(process) for process in self.processes]
        self.left = set(range(ranks))

    def wait(self, ranks: Iterator[int] | None = None) -> dict[int, Ended]:
        """Wait for some processes to end, by default all that nobody has waited for."""
        found = {}
        for rank in sorted(self.left if ranks is None else ranks):
            self._wait_for(rank)
            os.waitpid(self.processes[rank], 0)
            self.left.discard(rank)
            os.lseek(self.results[rank], 0, os.SEEK_SET)
            data = os.read(self.results[rank], 1 << 20)
            found[rank] = pickle.loads(data) if data else Ended(error="killed")
        return found

    def signal(self, rank: int, number: signal.Signals) -> float:
        """Send a signal; return when."""
        os.kill(self.processes[rank], number)
        return time.monotonic()

    def _wait_for(self, rank: int) -> None:
        """Wait for a process to end; if all processes sleep instead, show where they do."""
        looks = 0
        while not select.select([self.pidfds[rank]], [], [], _LOOK_S)[0]:
            works = any(_works(self.processes[other]) for other in self.left)
            looks = 0 if works else looks + 1
            assert looks < ASLEEP_S / _LOOK_S, f"rank {rank} has not ended:\n{self._shown()}"

    def _shown(self) -> str:
        """Return the stacks of the processes that are left."""
        texts = []
        for rank in sorted(self.left):
            os.kill(self.processes[rank], signal.SIGUSR2)
            select.select([self.pidfds[rank]], [], [], _STACKS_S / len(self.left))
            text = os.pread(self.stacks[rank], 1 << 16, 0).decode(errors="replace")
            texts.append(f"--- rank {rank}\n{text}")
        return "\n".join(texts)

    def close(self) -> None:
        for rank in self.left:
            os.kill(self.processes[rank], signal.SIGKILL)
            os.waitpid(self.processes[rank], 0)
        for descriptor in (*self.results, *self.stacks, *self.pidfds):
            os.close(descriptor)

    def _fork(self, world: World, body: Callable[[World], Any], held: int) -> int:
        process = os.fork()
        if process:
            return process
        os.close(held)
        os.read(self._gate, 1)  # ends once the parent has closed its end, too
        gc.callbacks.clear()  # hypothesis has one, and an interrupt raised in it would be lost
        faulthandler.register(signal.SIGUSR2, self.stacks[world.rank])
        signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it for jobs with &
        try:
            ended = Ended(body(world))
        except HcclError as error:
            texts = error.message, error.hint, error.code
            ended = Ended(None, type(error).__name__, *texts, time.monotonic())
        except BaseException as error:
            ended = Ended(None, type(error).__name__, str(error), at=time.monotonic())
        os.write(self.results[world.rank], pickle.dumps(ended))
        os._exit(0)


def _works(process: int) -> bool:
    """True if a thread of a process runs or would."""
    for path in Path(f"/proc/{process}/task").glob("*/stat"):
        with suppress(OSError):  # the thread has ended
            if path.read_text("utf-8", "replace").rpartition(")")[2].split()[_STATE] in _WORKING:
                return True
    return False


@contextmanager
def children(ranks: int, body: Callable[[World], Any], folder: Path) -> Iterator[Children]:
    """Start processes that call a function; none is left at the end."""
    started = Children(ranks, body, folder)
    try:
        yield started
    finally:
        started.close()
