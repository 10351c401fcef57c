"""The local launcher: this process forks one process for every rank, serves their store, and waits.

    parent ──fork──► rank 0, rank 1, ...      what is imported and recorded already is shared
       │◄─ store: requests of the processes
       └◄─ pidfds: the end of a process

A process that is killed ends all others; so do Ctrl-C, without a traceback, and the end of the
parent for any reason. No process, file or socket is left behind.
"""

from __future__ import annotations

import ctypes
import os
import selectors
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from hccl_platform.processes.stores import StoreServer
from hccl_platform.processes.world import RANK, SIZE, STORE
from hccl_py.errors import ParameterError

DEFECT, INTERRUPTED = 3, 130
KILLED = 128
"""The exit status of a process that a signal ended, without the signal's number."""

GRACE_S = 5.0
"""Seconds for the others after one has failed: they find out, and report it."""

MOST = 1024
"""Most processes of one machine."""

_PR_SET_PDEATHSIG = 1


def launch(ranks: int, work: Callable[[], int]) -> int:
    """Run `work` in `ranks` processes forked off this one; return the worst exit status, 128 + n
    for a process that signal n has ended.

    Rank 0 has the stderr of this process. The stderr of another rank is shown only if that rank is
    the first that failed.
    """
    if not 1 <= ranks <= MOST:
        raise ParameterError(
            f"{ranks} ranks are {ranks} processes on this machine.", f"Give 1 to {MOST} ranks."
        )
    sys.stdout.flush()
    sys.stderr.flush()
    job = _Job(StoreServer())
    try:
        with _interrupts_noted(job):
            for rank in range(ranks):
                job.add(_fork(rank, ranks, job.server, work))
            return job.wait()
    finally:
        job.close()


@contextmanager
def _interrupts_noted(job: _Job) -> Iterator[None]:
    """Interrupt the job on Ctrl-C, in whichever thread the signal arrives. Nothing is done where
    SIGINT is ignored, and outside of the main thread, which alone can handle it.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    handler = signal.signal(signal.SIGINT, lambda *_: job.interrupt())
    wakeup = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    job.wakes_by(ours)
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGINT, handler)
        ours.close()
        theirs.close()


@dataclass
class _Child:
    """A process of the job; `errors` is the file of its stderr, None if it shares this process's.

    `status` is the exit status, minus the signal that ended it, None while it runs.
    """

    rank: int
    process: int
    pidfd: int
    errors: int | None
    status: int | None = None

    def close(self) -> None:
        """Kill the process if it runs, which counts as no failure, and close its descriptors."""
        if self.status is None:
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
            self.status = 0
        for descriptor in (self.pidfd, self.errors):
            if descriptor is not None:
                os.close(descriptor)


def _fork(rank: int, ranks: int, server: StoreServer, work: Callable[[], int]) -> _Child:
    errors = os.memfd_create(f"stderr of rank {rank}") if rank else None
    parent = os.getpid()
    with warnings.catch_warnings():  # threads of C libraries survive a fork
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process:
        return _Child(rank, process, os.pidfd_open(process), errors)
    status = DEFECT
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us
        signal.set_wakeup_fd(-1)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:
            if errors is not None:
                _redirect_stderr(errors)
            os.environ.update({RANK: str(rank), SIZE: str(ranks), STORE: server.address})
            server.close()
            status = work()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _redirect_stderr(descriptor: int) -> None:
    """Redirect the stderr of Python and of C libraries to a descriptor."""
    os.dup2(descriptor, 2)
    with suppress(OSError, ValueError):  # a stream in memory
        os.dup2(descriptor, sys.stderr.fileno())


class _Job:
    """All processes of a job, until the last has ended."""

    def __init__(self, server: StoreServer) -> None:
        self.server = server
        self._children: dict[int, _Child] = {}
        self._failed: _Child | None = None
        self._end: float | None = None
        self._is_interrupted = False
        self._selector = selectors.DefaultSelector()
        self._selector.register(server, selectors.EVENT_READ)

    def add(self, child: _Child) -> None:
        """Watch a process."""
        self._children[child.pidfd] = child
        self._selector.register(child.pidfd, selectors.EVENT_READ)

    def wakes_by(self, signals: socket.socket) -> None:
        """Wake `wait` when a byte arrives: there was a signal."""
        self._selector.register(signals, selectors.EVENT_READ)

    def interrupt(self) -> None:
        """Let `wait` end the job."""
        self._is_interrupted = True

    def wait(self) -> int:
        """Serve the store until all processes have ended, one has failed GRACE_S seconds ago, or
        the job is interrupted; return the worst exit status.
        """
        while any(child.status is None for child in self._children.values()):
            if self._is_interrupted:
                return INTERRUPTED
            left = None if self._end is None else self._end - time.monotonic()
            if left is not None and left <= 0:
                break
            for key, _ in self._selector.select(left):
                if isinstance(key.fileobj, socket.socket):
                    self._drain(key.fileobj)
                else:
                    self._handle(key.fd)
        if self._failed is not None:
            _show(self._failed)
        codes = [child.status or 0 for child in self._children.values()]
        return max(KILLED - code if code < 0 else code for code in codes)

    def close(self) -> None:
        """Kill the processes that still run, and close all descriptors."""
        for child in self._children.values():
            child.close()
        self._selector.close()
        self.server.close()

    @staticmethod
    def _drain(signals: socket.socket) -> None:
        with suppress(BlockingIOError):
            signals.recv(64)

    def _handle(self, descriptor: int) -> None:
        if descriptor == self.server.fileno():
            client = self.server.accept()
            if client is not None:
                self._selector.register(client, selectors.EVENT_READ)
        elif descriptor in self._children:
            self._selector.unregister(descriptor)
            self._ended(self._children[descriptor])
        elif not self.server.serve(descriptor):
            self._selector.unregister(descriptor)

    def _ended(self, child: _Child) -> None:
        """Keep the exit status of a process. After the first failure the others have GRACE_S
        seconds, or none if a signal ended it.
        """
        child.status = os.waitstatus_to_exitcode(os.waitpid(child.process, 0)[1])
        if child.status and self._failed is None:
            self._failed = child
            self._end = time.monotonic() + (GRACE_S if child.status > 0 else 0)


def _show(failed: _Child) -> None:
    """Write the stderr of the rank that failed first, and the signal that ended it."""
    if failed.errors is not None:
        os.lseek(failed.errors, 0, os.SEEK_SET)
        with open(failed.errors, encoding="utf-8", errors="replace", closefd=False) as text:
            sys.stderr.writelines(f"rank {failed.rank}: {line}" for line in text)
    if failed.status is not None and failed.status < 0:
        name = signal.Signals(-failed.status).name
        sys.stderr.write(
            f"error: rank {failed.rank} was ended by {name}.\n"
            "hint: SIGKILL comes from people, or from a machine that is out of memory.\n"
        )
