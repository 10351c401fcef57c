"""Processes that are killed, stopped, interrupted, crash or call something else, at random points:
all others end as promised, in time, and nothing is left.
"""

from __future__ import annotations

import os
import select
import signal
import struct
import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random

import pytest

from hccl_platform.distributed.session import SharedSession
from hccl_platform.processes.world import World
from tests.platform.distributed.sessions import Run, open_session
from tests.platform.processes.children import Children, Ended, children
from tests.recording import op_of, recorded

RANKS = 4
SOON_S, DIFFER_S, LIMIT_S = 2.0, 1.0, 0.5
MOST_CALLS, MOST_DELAY_S = 60, 0.05

MESH = Run.of(recorded("AllReduceMeshOpbaseLoopExecutor", op_of("all_reduce", 1000), RANKS))
SHORT = Run.of(recorded("AllReduceMeshOpbaseLoopExecutor", op_of("all_reduce", 999), RANKS))
RING = Run.of(recorded("AllReduceComm", op_of("all_reduce", 1000), RANKS))

KILLED, STOPPED, INTERRUPTED, CRASHED, DIFFERS = range(5)
SIGNALS = {KILLED: signal.SIGKILL, STOPPED: signal.SIGSTOP, INTERRUPTED: signal.SIGINT}
_TIME = struct.Struct("<d")


@dataclass(frozen=True)
class Accident:
    """What happens to whom: after a delay where it comes by signal, else in a call."""

    kind: int
    victim: int
    delay_s: float
    call: int

    @classmethod
    def of(cls, seed: int) -> Accident:
        random = Random(seed)
        victim, delay_s = random.randrange(RANKS), random.random() * MOST_DELAY_S
        return cls(seed % 5, victim, delay_s, random.randrange(MOST_CALLS))

    def body(self, world: World, opened: int, happened: int) -> None:
        """Open a session, say so, and call until something fails."""
        session = open_session(world, LIMIT_S if self.kind == STOPPED else 60.0)
        session.gather(b"")
        os.write(opened, b"!")
        for number in count():
            if (world.rank, number) == (self.victim, self.call) and self.kind not in SIGNALS:
                self._fail(session, world.rank, happened)
            assert not (RING if number % 2 else MESH).wrong(session, world.rank)

    def _fail(self, session: SharedSession, rank: int, happened: int) -> None:
        os.write(happened, _TIME.pack(time.monotonic()))
        if self.kind == CRASHED:
            raise RuntimeError("made up")
        SHORT.wrong(session, rank)

    def happen(
        self, started: Children, opened: int, happened: int
    ) -> tuple[float, dict[int, Ended]]:
        """Return when it happened, and how all have ended."""
        _read(opened, RANKS)
        if self.kind not in SIGNALS:
            return _TIME.unpack(_read(happened, _TIME.size))[0], started.wait()
        select.select([], [], [], self.delay_s)
        at = started.signal(self.victim, SIGNALS[self.kind])
        ended = started.wait(iter(rank for rank in range(RANKS) if rank != self.victim))
        if self.kind == STOPPED:
            started.signal(self.victim, signal.SIGCONT)
        return at, ended | started.wait()

    def check(self, at: float, ended: dict[int, Ended]) -> None:
        """See that every rank has ended as promised."""
        own = {KILLED: "killed", INTERRUPTED: "KeyboardInterrupt", CRASHED: "RuntimeError"}
        if self.kind in own:
            assert ended.pop(self.victim).error == own[self.kind]
        limit_s = {STOPPED: LIMIT_S + SOON_S, DIFFERS: DIFFER_S}.get(self.kind, SOON_S)
        for rank, found in ended.items():
            assert rank == self.victim or found.at - at < limit_s, (rank, found)
            if self.kind == STOPPED:
                assert (found.error, found.code) == ("ExecTimeoutError", "EI0002"), found
            elif self.kind == DIFFERS:
                assert (found.error, found.code) == ("MismatchError", "EI0005"), found
                assert "all_reduce of 1000 fp32" in found.message
                assert f"rank {self.victim} calls all_reduce of 999 fp32" in found.message
            else:
                assert found.error == "PeerLostError", found
                assert f"Rank {self.victim}" in found.message


def _read(descriptor: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += os.read(descriptor, size - len(data))
    return data


def go_through(seed: int, folder: Path) -> None:
    accident, opened, happened = Accident.of(seed), os.pipe(), os.pipe()
    try:
        with children(
            RANKS, lambda world: accident.body(world, opened[1], happened[1]), folder
        ) as started:
            at, ended = accident.happen(started, opened[0], happened[0])
    finally:
        for descriptor in (*opened, *happened):
            os.close(descriptor)
    accident.check(at, ended)
    with open("/proc/net/unix") as file:
        addresses = [f"@hccl_py-{process}-" for process in started.processes]
        assert not [line for line in file if any(address in line for address in addresses)]


@pytest.mark.parametrize("seed", range(8))
def test_an_accident_ends_all_as_promised(seed: int, tmp_path: Path) -> None:
    go_through(seed, tmp_path)


@pytest.mark.long
@pytest.mark.seeds(200)
def test_accidents_end_all_as_promised(seed: int, tmp_path: Path) -> None:
    go_through(seed, tmp_path)
