"""Checks of a machine, each in a process of its own, all at once.

    parent ──fork──► check, check, ...      what they print goes to a file without a name
       │◄─ pipes: facts, as they are found
       └─► SIGKILL to those that are not done in time

So a library that crashes, hangs or prints spoils nothing but its own check, from there on.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import selectors
import signal
import sys
import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from hccl_py.plugins.platforms import Check, Fact

_PR_SET_PDEATHSIG = 1
_GRACE_S = 1.0
"""How long a process that was killed is waited for: one that hangs in a driver may stay."""

_BROKEN = "Its libraries do not go together, or are broken."

_END = b"\nnull\n"
"""What follows the last fact."""


@dataclass(frozen=True)
class Examined:
    """What a check has found."""

    check: Check
    facts: tuple[Fact, ...]
    seconds: float

    @property
    def bad(self) -> list[Fact]:
        """What is not as it must be."""
        return [fact for fact in self.facts if fact.is_good is False]

    @property
    def has_good(self) -> bool:
        """Whether something is as it must be."""
        return any(fact.is_good for fact in self.facts)


def examine(checks: Sequence[Check], limit_s: float) -> list[Examined]:
    """Run all checks, for at most so long; one that crashes or hangs gets a fact that says so."""
    sys.stdout.flush()
    sys.stderr.flush()
    running: list[_Running] = []
    try:
        running.extend(_start(check) for check in checks)
        _hear(running, time.monotonic() + limit_s)
        return [each.examined(limit_s) for each in running]
    finally:
        for each in running:
            each.close()


@dataclass
class _Running:
    """A check under way: its process, the pipe of its facts, the file of what it prints."""

    check: Check
    process: int
    pipe: int
    printed: int
    begun: float = field(default_factory=time.monotonic)
    ended: float | None = None
    text: bytes = b""

    def read(self) -> bool:
        """Take what was found; False at the end, even where what it started keeps the pipe open."""
        data = os.read(self.pipe, 1 << 16)
        self.text += data
        if data and not self.text.endswith(_END):
            return True
        self.ended = time.monotonic()
        return False

    def examined(self, limit_s: float) -> Examined:
        """Return what was found, and how it ended where that was not well."""
        whole, _, _ = self.text.removesuffix(_END).rpartition(b"\n")
        facts = [Fact(*json.loads(line)) for line in whole.splitlines()]
        if not self.text.endswith(_END):
            facts.append(self._broken_off(limit_s))
        end = time.monotonic() if self.ended is None else self.ended
        return Examined(self.check, tuple(facts), end - self.begun)

    def _broken_off(self, limit_s: float) -> Fact:
        if self.ended is None:
            hint = "It hangs, or this machine is slow: --limit says how long to wait."
            return Fact(self.check.name, f"no answer in {limit_s:g} s", False, hint)
        status = self._wait()
        how = "ended" if status is None or status >= 0 else f"ended by {_signal(-status)}"
        os.lseek(self.printed, 0, os.SEEK_SET)
        with open(self.printed, encoding="utf-8", errors="replace", closefd=False) as text:
            last = next((line for line in reversed(text.readlines()) if line.strip()), "")
        said = f", after it wrote: {' '.join(last.split())[:200]}" if last else ""
        return Fact(self.check.name, f"{how}{said}", False, _BROKEN)

    def _wait(self) -> int | None:
        """Return how the process ended; None where it is known no more, or does not end."""
        end = time.monotonic() + _GRACE_S
        with suppress(ChildProcessError):
            while time.monotonic() < end:
                process, status = os.waitpid(self.process, os.WNOHANG)
                if process:
                    return os.waitstatus_to_exitcode(status)
                time.sleep(0.002)
        return None

    def close(self) -> None:
        """End the process, what it has started as well, and let go of everything."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process, signal.SIGKILL)
        self._wait()
        os.close(self.pipe)
        os.close(self.printed)


def _hear(running: Sequence[_Running], end: float) -> None:
    """Take facts until all have ended, or the time is over."""
    with selectors.DefaultSelector() as selector:
        for each in running:
            selector.register(each.pipe, selectors.EVENT_READ, each)
        while selector.get_map() and (left := end - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                if not key.data.read():
                    selector.unregister(key.fd)


def _start(check: Check) -> _Running:
    printed = os.memfd_create(f"what {check.name} prints")
    theirs, ours = os.pipe()
    parent = os.getpid()
    with warnings.catch_warnings():  # libraries in C have threads that know what to do at a fork
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process:
        os.close(ours)
        with suppress(ProcessLookupError, PermissionError):
            os.setpgid(process, process)
        return _Running(check, process, theirs, printed)
    try:
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:
            _alone(printed)
            _look(check, ours)
    except BaseException:
        os._exit(1)
    finally:
        os._exit(0)


def _alone(printed: int) -> None:
    """Lead all that is written to a file, and leave no core behind."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, leads_to in ((0, nothing), (1, printed), (2, printed)):
        os.dup2(leads_to, descriptor)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = sys.stderr = open(2, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
    warnings.resetwarnings()
    warnings.simplefilter("ignore")


def _look(check: Check, pipe: int) -> None:
    """Write every fact as it is found, and a mark after the last."""
    try:
        for fact in check.look():
            _write(pipe, Fact(*fact))
    except BaseException as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        _write(pipe, Fact(check.name, said, False, _BROKEN))
    os.write(pipe, _END)


def _write(pipe: int, fact: Fact) -> None:
    os.write(pipe, json.dumps(fact).encode() + b"\n")


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
