"""Jobs of 2 to 8 torch processes in which one is killed, stopped or late, calls something else, or
is killed and started anew, at random points: all end as promised, in time, and leave nothing.
"""

from __future__ import annotations

import os
import re
import select
import signal
import time
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install hccl-py[torch]")

import torch
import torch.distributed as dist

import hccl_py.torch.group  # noqa: F401  (loaded once, before the forks)
from hccl_platform.processes.world import World
from tests.platform.processes.children import Ended, children

KILL, STOP, MISMATCH, LATE, RESTART = range(5)
CALLS, MOST_RANKS = 12, 8
LEAST_ON_HOST = 2
"""Only ranks of its host see that a process is stopped, or late."""

SHORT_S, LONG_S, SOON_S = 2.0, 60.0, 15.0


@dataclass(frozen=True)
class FaultScript:
    """What happens to which of so many ranks on how many hosts, before which call."""

    kind: int
    ranks: int
    hosts: int
    victim: int
    call: int
    late_s: float

    @classmethod
    def of(cls, seed: int) -> FaultScript:
        random = Random(seed)
        ranks = random.randint(2, MOST_RANKS)
        hosts = random.choice([1, 2]) if ranks >= 2 * LEAST_ON_HOST else 1
        late_s = random.choice([0.1, 2 * SHORT_S])
        return cls(seed % 5, ranks, hosts, random.randrange(ranks), random.randrange(CALLS), late_s)

    @property
    def timeout_s(self) -> float:
        return SHORT_S if self.kind in (STOP, LATE) else LONG_S

    def body(self, world: World, port: int, folder: Path, attempt: int) -> list[float]:
        """Make the calls; the victim goes its own way before one of them."""
        if self.kind == RESTART:
            os.environ["TORCHELASTIC_RESTART_COUNT"] = str(attempt)
        os.environ["HCCL_PY_HOST"] = str(world.rank % self.hosts)
        torch.set_num_threads(1)
        dist.init_process_group(
            "hccl_py",
            store=self.store(world, port),
            rank=world.rank,
            world_size=world.size,
            timeout=timedelta(seconds=self.timeout_s),
        )
        dist.barrier()
        tensor = torch.ones(64)
        for number in range(CALLS):
            if (world.rank, number, attempt) == (self.victim, self.call, 0):
                (folder / "at").write_text(repr(time.monotonic()))
                self.fail()
            dist.all_reduce(tensor, dist.ReduceOp.MAX)
            dist.broadcast(tensor, number % world.size)
        tensor[:] = world.rank
        dist.all_reduce(tensor)
        dist.destroy_process_group()
        return [float(value) for value in tensor]

    def store(self, world: World, port: int) -> dist.Store:
        """Return the job's store: torchrun's in a job that is started anew, else rank 0's, which
        ends with its process.
        """
        if self.kind == RESTART:
            return dist.TCPStore("127.0.0.1", port, is_master=False)
        if world.rank:
            port = int(world.store.get("port", LONG_S))
            return dist.TCPStore("127.0.0.1", port, is_master=False)
        served = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        world.store.set("port", b"%d" % served.port)
        return served

    def fail(self) -> None:
        if self.kind in (KILL, RESTART):
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.kind == STOP:
            os.kill(os.getpid(), signal.SIGSTOP)
        elif self.kind == LATE:
            select.select([], [], [], self.late_s)
        else:
            dist.all_reduce(torch.ones(65), dist.ReduceOp.MAX)

    def check(self, ended: dict[int, Ended], at: float) -> None:
        """See that every rank has ended as promised."""
        if self.kind == LATE and self.late_s < SHORT_S:
            return self.check_results(ended)
        if self.kind in (KILL, RESTART):
            assert ended.pop(self.victim).error == "killed"
        wanted = {
            MISMATCH: f"EI0005.*rank {self.victim} calls",
            STOP: f"EI0002.*Rank {self.victim} is stopped",
            LATE: f"EI0002.*Rank {self.victim} has not begun this call",
        }.get(self.kind, f"Rank {self.victim}('s process has ended| has gone)")
        if self.kind in (STOP, KILL) and not self.victim:
            # Ranks elsewhere may see no more than that it serves no more.
            wanted += "|EI0002.*The job's store does not answer: .* rank 0's"
        for rank, found in ended.items():
            assert found.error == "DistBackendError", (rank, found)
            assert rank == self.victim or found.at - at < self.timeout_s + SOON_S, (rank, found)
            assert rank == self.victim or re.search(wanted, found.message), (rank, found)
        return None

    def check_results(self, ended: dict[int, Ended]) -> None:
        total = float(sum(range(self.ranks)))
        assert [found.value for found in ended.values()] == [[total] * 64] * self.ranks, ended


def go_through(seed: int, folder: Path) -> None:
    script = FaultScript.of(seed)
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    processes = []
    for attempt in range(1 + (script.kind == RESTART)):
        with children(
            script.ranks,
            partial(script.body, port=store.port, folder=folder, attempt=attempt),
            folder,
        ) as started:
            others = [r for r in range(script.ranks) if r != script.victim]
            ended = started.wait(iter(others)) if script.kind == STOP else {}
            if script.kind == STOP:
                started.signal(script.victim, signal.SIGCONT)
            ended |= started.wait()
            processes += started.processes
        if attempt:
            script.check_results(ended)
        else:
            script.check(ended, float((folder / "at").read_text()))
    lines = Path("/proc/net/unix").read_text().splitlines()
    addresses = [f"@hccl_py-{process}-" for process in processes]
    assert not [line for line in lines if any(address in line for address in addresses)]


@pytest.mark.parametrize("seed", range(5))
def test_a_fault_ends_all_ranks_as_promised(seed: int, tmp_path: Path) -> None:
    go_through(seed, tmp_path)


@pytest.mark.long
@pytest.mark.seeds(40)
def test_faults_end_all_ranks_as_promised(seed: int, tmp_path: Path) -> None:
    go_through(seed, tmp_path)
