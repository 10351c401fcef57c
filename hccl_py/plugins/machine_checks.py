"""Checks of a machine, each in a process of its own, all at once.

    parent ──fork──► check, check, ...      output goes to a file without a name
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
"""The mark behind the last fact."""


@dataclass(frozen=True)
class CheckResult:
    """The facts that a check found, and the seconds that it took."""

    check: Check
    facts: tuple[Fact, ...]
    seconds: float

    @property
    def bad(self) -> list[Fact]:
        """The facts that are not as they must be."""
        return [fact for fact in self.facts if fact.is_good is False]

    @property
    def has_good(self) -> bool:
        """True if a fact is as it must be."""
        return any(fact.is_good for fact in self.facts)


def run_checks(checks: Sequence[Check], limit_s: float) -> list[CheckResult]:
    """Run all checks, for at most so long; one that crashes or hangs gets a fact that says so."""
    sys.stdout.flush()
    sys.stderr.flush()
    running: list[_RunningCheck] = []
    try:
        running.extend(_start(check) for check in checks)
        _read_facts(running, time.monotonic() + limit_s)
        return [each.result(limit_s) for each in running]
    finally:
        for each in running:
            each.close()


@dataclass
class _RunningCheck:
    """A check under way: its process, the pipe of its facts, the file of what it prints."""

    check: Check
    process: int
    pipe: int
    printed: int
    begun: float = field(default_factory=time.monotonic)
    ended: float | None = None
    text: bytes = b""

    def read(self) -> bool:
        """Read facts; False at the end, even where a child of the process keeps the pipe open."""
        data = os.read(self.pipe, 1 << 16)
        self.text += data
        if data and not self.text.endswith(_END):
            return True
        self.ended = time.monotonic()
        return False

    def result(self, limit_s: float) -> CheckResult:
        """Return the facts that were found, and one on the end of the process if it failed."""
        whole, _, _ = self.text.removesuffix(_END).rpartition(b"\n")
        facts = [Fact(*json.loads(line)) for line in whole.splitlines()]
        if not self.text.endswith(_END):
            facts.append(self._broken_off(limit_s))
        end = time.monotonic() if self.ended is None else self.ended
        return CheckResult(self.check, tuple(facts), end - self.begun)

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
        """Return the exit status of the process; None if it is unknown, or the process goes on."""
        end = time.monotonic() + _GRACE_S
        with suppress(ChildProcessError):
            while time.monotonic() < end:
                process, status = os.waitpid(self.process, os.WNOHANG)
                if process:
                    return os.waitstatus_to_exitcode(status)
                time.sleep(0.002)
        return None

    def close(self) -> None:
        """Kill the process and its children, and close its files."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process, signal.SIGKILL)
        self._wait()
        os.close(self.pipe)
        os.close(self.printed)


def _read_facts(running: Sequence[_RunningCheck], end: float) -> None:
    """Read facts until all checks have ended, or the time is over."""
    with selectors.DefaultSelector() as selector:
        for each in running:
            selector.register(each.pipe, selectors.EVENT_READ, each)
        while selector.get_map() and (left := end - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                if not key.data.read():
                    selector.unregister(key.fd)


def _start(check: Check) -> _RunningCheck:
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
        return _RunningCheck(check, process, theirs, printed)
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
    """Lead all output to a file, and leave no core behind."""
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
