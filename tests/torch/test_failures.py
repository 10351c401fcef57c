"""What goes wrong in a torch program ends all of its ranks, in time and in torch's words; and
destroying the group never hangs.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install hccl-py[torch]")

import torch
import torch.distributed as dist

import hccl_py.torch.group  # loaded once, before the forks
from hccl_platform.distributed.failures import Failures
from hccl_platform.distributed.rings import RING_BYTES
from hccl_platform.processes.world import World
from hccl_py.errors import PeerLostError
from hccl_py.torch.store import TorchStore
from tests.platform.processes.children import children

RANKS = 3
SOON_S = 60.0
PATIENT_S = 600.0

Body = Callable[[int], Any]


def in_group(
    folder: Path,
    body: Body,
    seconds: float = PATIENT_S,
    settings: Any = None,
    dies_meeting: int | None = None,
) -> Callable[[World], tuple[str, float, float]]:
    """Return what a process does: join, run the body, and destroy the group. It gives the error's
    text, when it was raised, and how long destroying took. One rank may die when it has a place in
    the group and is to meet the others.
    """

    def work(world: World) -> tuple[str, float, float]:
        torch.set_num_threads(1)
        if world.rank == dies_meeting:
            group_class, patch = hccl_py.torch.group.ProcessGroup, pytest.MonkeyPatch()
            patch.setattr(group_class, "open", lambda _: os.kill(os.getpid(), signal.SIGKILL))
        text = ""
        try:
            dist.init_process_group(
                "hccl_py",
                init_method=f"file://{folder}/torch",
                rank=world.rank,
                world_size=world.size,
                timeout=timedelta(seconds=seconds),
                pg_options=settings and settings(world.rank),
            )
            body(world.rank)
        except dist.DistBackendError as error:
            text = str(error)
        at = time.monotonic()
        if dist.is_initialized():
            dist.destroy_process_group()
        return text, at, time.monotonic() - at

    return work


def ends(work: Callable[[World], Any], folder: Path) -> list[tuple[str, float, float]]:
    with children(RANKS, work, folder) as started:
        ended = started.wait()
    assert {found.error for found in ended.values()} == {""}, ended
    return [ended[rank].value for rank in range(RANKS)]


def differs(rank: int, kind: str) -> None:
    """Rank 1 calls something else."""
    is_other = rank == 1
    count, dtype, op = 5, torch.float32, dist.ReduceOp.SUM
    if kind == "count":
        count = 6 if is_other else 5
    elif kind == "type":
        dtype = torch.int32 if is_other else torch.float32
    elif kind == "op":
        op = dist.ReduceOp.MAX if is_other else dist.ReduceOp.SUM
    tensor = torch.ones(count, dtype=dtype)
    if kind == "order" and is_other:
        dist.broadcast(tensor, 0)
    dist.all_reduce(tensor, op)
    dist.broadcast(tensor, 0)


WORDS = {
    "count": ("of 5 fp32", "of 6 fp32"),
    "type": ("fp32", "int32"),
    "op": ("sum", "max"),
    "order": ("all_reduce", "broadcast"),
    "executor": ("by AllReduceMeshSmallCountExecutor", "by AllReduceComm"),
}


def other_executor(rank: int) -> hccl_py.torch.Settings:
    named = {"all_reduce": "AllReduceComm"} if rank == 1 else None
    return hccl_py.torch.Settings(executor=named)


@pytest.mark.parametrize("kind", WORDS)
def test_ranks_that_differ(kind: str, tmp_path: Path) -> None:
    settings = other_executor if kind == "executor" else None

    def body(rank: int) -> None:
        dist.barrier()
        differs(rank, kind)

    found = ends(in_group(tmp_path, body, settings=settings), tmp_path)
    assert max(at for _, at, _ in found) - min(at for _, at, _ in found) < SOON_S
    for text, _, took_s in found:
        assert "EI0005" in text
        assert "rank 1 calls" in text
        assert all(word in text for word in WORDS[kind]), text
        assert took_s < SOON_S


@pytest.mark.parametrize("how", ["killed", "crashed"])
def test_a_rank_that_goes_ends_the_others(how: str, tmp_path: Path) -> None:
    def body(rank: int) -> None:
        tensor = torch.ones(3)
        for number in range(10**9):
            dist.all_reduce(tensor, dist.ReduceOp.MAX)
            if (rank, number) == (1, 20):
                (tmp_path / "gone").write_text(str(time.monotonic()))
                if how == "killed":
                    os.kill(os.getpid(), signal.SIGKILL)
                raise RuntimeError("made up")

    with children(RANKS, in_group(tmp_path, body), tmp_path) as started:
        ended = started.wait()
    gone = float((tmp_path / "gone").read_text())
    assert ended.pop(1).error == ("killed" if how == "killed" else "RuntimeError")
    for found in ended.values():
        text, at, took_s = found.value
        assert "Rank 1's process has ended" in text
        assert at - gone < SOON_S
        assert took_s < SOON_S


@pytest.mark.parametrize(
    ("victim", "is_meeting", "words"),
    [
        (0, True, "Rank 0's process has ended before all ranks had come"),
        (2, True, "Rank 2's process has ended before all ranks had come"),
        (2, False, "Rank 2's process has ended before call 1"),
    ],
)
def test_a_rank_that_goes_before_the_first_call(
    victim: int, is_meeting: bool, words: str, tmp_path: Path
) -> None:
    def body(rank: int) -> None:
        if rank == victim:
            os.kill(os.getpid(), signal.SIGKILL)
        dist.all_reduce(torch.ones(3))

    dies_meeting = victim if is_meeting else None
    work = in_group(tmp_path, body, dies_meeting=dies_meeting)
    with children(RANKS, work, tmp_path) as started:
        killed = started.wait(iter([victim]))[victim]
        begun = time.monotonic()
        ended = started.wait()
    assert killed.error == "killed"
    for found in ended.values():
        text, at, took_s = found.value
        assert words in text
        assert at - begun < SOON_S
        assert took_s < SOON_S


def test_a_message_that_nobody_takes(tmp_path: Path) -> None:
    """It is over after the group's time-out if it does not fit the receiver's mailbox, and so is a
    receive from any source.
    """

    def body(rank: int) -> None:
        if rank == 0:
            dist.isend(torch.ones(RING_BYTES), 2).wait()
        elif rank == 1:
            dist.irecv(torch.ones(3), tag=7).wait()
        else:
            dist.all_reduce(torch.ones(3))

    found = sorted(ends(in_group(tmp_path, body, seconds=0.5), tmp_path), key=lambda end: end[1])
    assert "Timed out (EI0002)" in found[0][0]
    for text, _, took_s in found:  # the others may find that the first is gone
        assert "Timed out (EI0002)" in text or "process has ended" in text
        assert took_s < SOON_S


def test_destroying_after_an_error_waits_for_nothing(tmp_path: Path) -> None:
    """Not for messages whose other end never comes, be they the first between two ranks or not."""

    def body(rank: int) -> None:
        dist.barrier()
        if rank < 2:  # a pair that is open, and a message that never comes
            tensor = torch.ones(3)
            dist.send(tensor, 1, tag=1) if rank == 0 else dist.recv(tensor, 0, tag=1)
            dist.irecv(tensor, 1 - rank, tag=1 + 2 * rank)
        dist.isend(torch.ones(3), (rank + 1) % RANKS, tag=9)
        dist.irecv(torch.ones(3), tag=11)
        differs(rank, "count")

    for text, _, took_s in ends(in_group(tmp_path, body), tmp_path):
        assert "EI0005" in text
        assert took_s < SOON_S


def test_calls_that_nobody_waits_for_end_before_the_group(tmp_path: Path) -> None:
    def body(rank: int) -> None:
        for _ in range(5):
            dist.all_reduce(torch.ones(3), async_op=True)

    assert [text for text, _, _ in ends(in_group(tmp_path, body), tmp_path)] == [""] * RANKS


def test_groups_among_gloos(tmp_path: Path) -> None:
    """A group of ours in a world of gloo, and the other way round; a world of one rank."""

    def work(world: World) -> list[float]:
        found = []
        for default, other in (("gloo", "hccl_py"), ("hccl_py", "gloo")):
            dist.init_process_group(
                default,
                init_method=f"file://{tmp_path}/{default}",
                rank=world.rank,
                world_size=world.size,
            )
            group, tensor = dist.new_group([2, 0], backend=other), torch.ones(3)
            dist.all_reduce(tensor)
            if world.rank != 1:
                dist.all_reduce(tensor, group=group)
            found.append(tensor[0].item())
            dist.destroy_process_group()
        dist.init_process_group("hccl_py", store=dist.HashStore(), rank=0, world_size=1)
        tensor = torch.ones(3)
        dist.all_reduce(tensor)
        dist.reduce_scatter(tensor, [2 * tensor])
        found.append(tensor[0].item())
        dist.destroy_process_group()
        return found

    with children(RANKS, work, tmp_path) as started:
        ended = started.wait()
    assert {found.message for found in ended.values()} == {""}
    assert [found.value for found in ended.values()] == [[6, 6, 2], [3, 3, 2], [6, 6, 2]], ended


def test_the_first_restart_of_torchrun_is_a_job_of_its_own(tmp_path: Path) -> None:
    """Its store has outlived the processes of the attempt before, one of which was killed."""
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)

    def attempt(number: int) -> Callable[[World], list[float]]:
        def work(world: World) -> list[float]:
            os.environ["TORCHELASTIC_RESTART_COUNT"] = str(number)
            torch.set_num_threads(1)
            of_job = dist.TCPStore("127.0.0.1", store.port, is_master=False)
            dist.init_process_group("hccl_py", store=of_job, rank=world.rank, world_size=RANKS)
            tensor = torch.ones(3)
            dist.all_reduce(tensor)
            if number == 0 and world.rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            dist.all_reduce(tensor)
            dist.destroy_process_group()
            return [float(value) for value in tensor]

        return work

    with children(RANKS, attempt(0), tmp_path) as started:
        first = started.wait()
    assert first[1].error == "killed"
    with children(RANKS, attempt(1), tmp_path) as started:
        second = started.wait()
    assert {tuple(found.value or [found.message]) for found in second.values()} == {(9.0,) * 3}


def test_a_store_whose_server_has_gone_is_named(tmp_path: Path) -> None:
    """Rank 0 of a job may end first: what the others have found stays their error."""
    goes, comes = os.pipe()

    def serve(world: World) -> None:
        served = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        os.write(comes, struct.pack("i", served.port))
        signal.pause()

    with children(1, serve, tmp_path) as started:
        port = struct.unpack("i", os.read(goes, 4))[0]
        store = TorchStore(dist.TCPStore("127.0.0.1", port, is_master=False), "hccl_py")
        store.set("key", b"value")
        assert store.get("key", 1.0) == b"value"
        started.signal(0, signal.SIGKILL)
        started.wait()
    for ask in (lambda: store.get("key", 1.0), lambda: store.set("key", b"other")):
        with pytest.raises(PeerLostError, match="The job's store does not answer"):
            ask()
    failures = Failures(store, "group", 1)
    failures.publish(PeerLostError("Rank 3's process has ended"))
    failures.wait_for([0], 0.0)
    assert failures.published(0.0) is None


BLOCKED = """
import signal, sys, time, torch, torch.distributed as dist, hccl_py.torch
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for a job with &
rank, kind = int(sys.argv[1]), sys.argv[3]
dist.init_process_group("hccl_py", init_method=sys.argv[2], rank=rank, world_size=2)
dist.barrier()
print("ready", flush=True)
if rank:
    sys.stdin.read()
try:
    if kind == "sync":
        dist.all_reduce(torch.ones(3))
    elif kind == "async":
        dist.all_reduce(torch.ones(3), async_op=True).wait()
    else:
        dist.recv(torch.ones(3), None if kind == "any" else 1 - rank)
finally:
    print(time.monotonic(), flush=True)
"""


@pytest.mark.parametrize(
    "kind",
    [
        "sync",
        "any",
        pytest.param("async", marks=pytest.mark.long),
        pytest.param("recv", marks=pytest.mark.long),
    ],
)
def test_an_interrupt_of_a_blocked_rank(kind: str, tmp_path: Path) -> None:
    with contextlib.ExitStack() as started:
        first, second = (blocked(started, rank, tmp_path, kind) for rank in range(2))
        for process in (first, second):
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        select.select([], [], [], 0.2)
        begun = time.monotonic()
        first.send_signal(signal.SIGINT)
        raised, errors = first.communicate(timeout=PATIENT_S)
        assert errors.strip().endswith("KeyboardInterrupt"), errors
        assert first.returncode == -signal.SIGINT
        assert float(raised) - begun < SOON_S
        gone = time.monotonic()
        missed, errors = second.communicate(timeout=PATIENT_S)
        assert "Rank 0" in errors, errors
        assert float(missed) - gone < SOON_S


def blocked(
    started: contextlib.ExitStack, rank: int, folder: Path, kind: str
) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", BLOCKED, str(rank), f"file://{folder}/torch", kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    started.enter_context(process)
    started.callback(process.kill)
    return process
