"""What goes wrong in one process ends all of them, in time, with the reason; nothing is left."""

from __future__ import annotations

import gc
import os
import resource
import select
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from hccl_platform.distributed import DistributedPlatform
from hccl_platform.distributed.failures import Failures
from hccl_platform.distributed.session import SharedSession
from hccl_platform.distributed.shared_memory import Regions, map_file
from hccl_platform.processes.world import World
from hccl_py.communicator.communicator import Communicator
from hccl_py.enums import POST, Mode, TaskKind
from hccl_py.errors import (
    ExecTimeoutError,
    HcclError,
    MismatchError,
    NotSupportedError,
    ParameterError,
    PeerLostError,
)
from hccl_py.program.instruction import Batch
from hccl_py.program.program import Program
from tests.platform.distributed.sessions import Run, open_session
from tests.platform.processes.children import Ended, FileStore, children
from tests.recording import op_of, recorded, without

RANKS = 4
SOON_S, DIFFER_S, PATIENT_S = 2.0, 1.0, 60.0

MESH = Run.of(recorded("AllReduceMeshOpbaseLoopExecutor", op_of("all_reduce", 1000), RANKS))
SHORT = Run.of(recorded("AllReduceMeshOpbaseLoopExecutor", op_of("all_reduce", 999), RANKS))
RING = Run.of(recorded("AllReduceComm", op_of("all_reduce", 1000), RANKS))


def lacking(kind: TaskKind) -> Program:
    """Return the ring less one post or wait of every rank, the last."""
    last = [
        next(i for i in reversed(batch.instructions) if i.kind is kind)
        for batch in RING.program.batches
    ]
    return without(RING.program, lambda i: any(i is one for one in last))


def posts_last(program: Program) -> Program:
    """Return a program in which no rank posts before it has waited for everything."""
    batches = (
        Batch(b.ranks, tuple(sorted(b.instructions, key=lambda i: i.kind == POST)))
        for b in program.batches
    )
    return replace(program, batches=tuple(batches))


def until_it_fails(session: SharedSession, rank: int, runs: tuple[Run, ...] = (MESH, RING)) -> None:
    while True:
        for run in runs:
            assert not run.wrong(session, rank)


def calls_for_ever(started: int) -> Callable[[World], None]:
    """Say when it has begun, then call until something fails."""

    def body(world: World) -> None:
        session = open_session(world)
        session.gather(b"")
        os.write(started, b"!")
        until_it_fails(session, world.rank)

    return body


def wait_for(descriptor: int, bytes_: int) -> None:
    while bytes_:
        bytes_ -= len(os.read(descriptor, bytes_))


@pytest.fixture
def pipe() -> tuple[int, int]:
    return os.pipe()


@pytest.mark.parametrize("seed", range(5))
def test_a_killed_process_ends_the_others(seed: int, pipe: tuple[int, int], tmp_path: Path) -> None:
    random = Random(seed)
    victim, delay = random.randrange(RANKS), random.random() * 0.05
    with children(RANKS, calls_for_ever(pipe[1]), tmp_path) as started:
        wait_for(pipe[0], RANKS)
        select.select([], [], [], delay)
        killed = started.signal(victim, signal.SIGKILL)
        ended = started.wait()
    assert ended.pop(victim).error == "killed"
    for found in ended.values():
        assert found.error == "PeerLostError"
        assert f"Rank {victim}'s process has ended" in found.message
        assert found.at - killed < SOON_S


def test_no_callback_of_whoever_runs_the_tests_swallows_an_interrupt(tmp_path: Path) -> None:
    def interrupted(phase: str, info: dict[str, int]) -> None:
        signal.raise_signal(signal.SIGINT)  # is raised here, and only reported

    def body(world: World) -> int:
        gc.collect()
        return len(gc.callbacks)

    gc.disable()
    gc.callbacks.append(interrupted)
    try:
        with children(1, body, tmp_path) as started:
            assert started.wait()[0].value == 0
    finally:
        gc.callbacks.remove(interrupted)
        gc.enable()


@pytest.mark.parametrize("seed", range(3))
def test_an_interrupt_in_one_process_ends_the_others(
    seed: int, pipe: tuple[int, int], tmp_path: Path
) -> None:
    random = Random(seed)
    victim, delay = random.randrange(RANKS), random.random() * 0.05
    with children(RANKS, calls_for_ever(pipe[1]), tmp_path) as started:
        wait_for(pipe[0], RANKS)
        select.select([], [], [], delay)
        sent = started.signal(victim, signal.SIGINT)
        ended = started.wait()
    assert ended.pop(victim).error == "KeyboardInterrupt"
    for found in ended.values():
        assert found.error == "PeerLostError"
        reasons = (" has failed: KeyboardInterrupt", "'s process has ended")
        assert any(f"Rank {victim}{reason}" in found.message for reason in reasons)
        assert found.at - sent < SOON_S


def test_a_stopped_process_is_waited_for_no_longer_than_allowed(
    pipe: tuple[int, int], tmp_path: Path
) -> None:
    def body(world: World) -> None:
        session = open_session(world, limit_s=0.5)
        session.gather(b"")
        os.write(pipe[1], b"!")
        until_it_fails(session, world.rank)

    with children(RANKS, body, tmp_path) as started:
        wait_for(pipe[0], RANKS)
        stopped = started.signal(1, signal.SIGSTOP)
        ended = started.wait(iter([0, 2, 3]))
        started.signal(1, signal.SIGCONT)
        ended |= started.wait()
    for rank, found in ended.items():
        assert (found.error, found.code) == ("ExecTimeoutError", "EI0002")
        assert found.message.startswith("Rank 1 is stopped, by a signal or a debugger")
        assert "from rank" in found.message
        assert f"kill -CONT {started.processes[1]}" in found.hint
        assert rank == 1 or found.at - stopped < 0.5 + SOON_S


def test_victims_of_a_stopped_process_name_it_and_not_each_other(
    pipe: tuple[int, int], tmp_path: Path
) -> None:
    """Around a ring every rank waits for the one before it: only one of them is the cause."""

    def body(world: World) -> None:
        session = open_session(world, limit_s=0.5)
        session.gather(b"")
        if world.rank == 2:
            os.write(pipe[1], b"!")
            signal.raise_signal(signal.SIGSTOP)
        RING.wrong(session, world.rank)

    with children(RANKS, body, tmp_path) as started:
        wait_for(pipe[0], 1)
        ended = started.wait(iter([0, 1, 3]))
        started.signal(2, signal.SIGCONT)
        ended |= started.wait()
    for found in ended.values():
        assert found.error == "ExecTimeoutError"
        assert found.message.startswith("Rank 2 is stopped")


def leave_numbers(free: int) -> None:
    """Let this process open so many files more."""
    most = 1 + max(map(int, os.listdir("/proc/self/fd"))) + free
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    opened = []
    with suppress(OSError):
        while True:
            opened.append(os.open(os.devnull, os.O_RDONLY))
    for descriptor in opened[:free]:
        os.close(descriptor)


@pytest.mark.parametrize("victim", [0, 3])
def test_a_process_that_may_open_few_files_says_so(victim: int, tmp_path: Path) -> None:
    def body(world: World) -> int:
        if world.rank == victim:
            leave_numbers(8)
        before = len(os.listdir("/proc/self/fd"))
        with pytest.raises(HcclError) as failed, closing(open_session(world)) as session:
            RING.wrong(session, world.rank)
        assert len(os.listdir("/proc/self/fd")) == before
        raise failed.value

    with children(RANKS, body, tmp_path) as started:
        ended = started.wait()
    named = [found for found in ended.values() if "files open, too few" in found.message]
    assert ended[victim] in named
    assert "ulimit -n" in ended[victim].hint
    assert len(named) >= (2 if victim == 0 else 1)  # the first guest is told
    assert {found.error for found in ended.values()} <= {"NotSupportedError", "PeerLostError"}


def together(body: Callable[[World, SharedSession], object], tmp_path: Path) -> dict[int, Ended]:
    def work(world: World) -> object:
        return body(world, open_session(world))

    with children(RANKS, work, tmp_path) as started:
        return started.wait()


def test_ranks_that_differ_are_named_with_what_they_call(tmp_path: Path) -> None:
    def body(world: World, session: SharedSession) -> None:
        assert not MESH.wrong(session, world.rank)
        assert not SHORT.wrong(session, world.rank)
        (SHORT if world.rank == 2 else MESH).wrong(session, world.rank)
        MESH.wrong(session, world.rank)

    for found in together(body, tmp_path).values():
        assert (found.error, found.code) == ("MismatchError", "EI0005")
        assert "calls all_reduce of 1000 fp32, sum" in found.message
        assert "rank 2 calls all_reduce of 999 fp32, sum" in found.message


def test_ranks_that_call_in_another_order_are_named(tmp_path: Path) -> None:
    def body(world: World, session: SharedSession) -> None:
        for run in (MESH, RING) if world.rank == 1 else (RING, MESH):
            run.wrong(session, world.rank)

    for found in together(body, tmp_path).values():
        assert found.error == "MismatchError"
        assert "by AllReduceComm" in found.message
        assert "rank 1 calls all_reduce of 1000 fp32, sum, op_base, by AllReduceM" in found.message


def test_an_environment_that_differs_is_named_with_both_algorithms(tmp_path: Path) -> None:
    def body(world: World) -> None:
        algorithm = "NHR" if world.rank == 2 else "ring"
        os.environ["HCCL_ALGO"] = f"level0:NA;level1:{algorithm}"
        platform = DistributedPlatform(world)
        with Communicator(servers=2, devices=2, platform=platform) as comm:
            comm.exchange(b"")
            os.write(comes, struct.pack("d", time.monotonic()))
            comm.all_reduce([np.ones(1000, np.float32)])

    goes, comes = os.pipe()
    with children(RANKS, body, tmp_path) as started:
        ended = started.wait()
    last = max(struct.unpack(f"{RANKS}d", os.read(goes, 8 * RANKS)))
    for found in ended.values():
        assert (found.error, found.code) == ("MismatchError", "EI0005")
        assert "with ring" in found.message
        assert "with NHR" in found.message
        assert "rank 2 calls all_reduce of 1000 fp32, sum" in found.message
        assert found.at - last < DIFFER_S


def test_a_gather_where_others_run_is_a_difference(tmp_path: Path) -> None:
    def body(world: World, session: SharedSession) -> None:
        if world.rank == 3:
            session.gather(b"")
        else:
            RING.wrong(session, world.rank)

    for found in together(body, tmp_path).values():
        assert found.error == "MismatchError"
        assert "rank 3 gathers values of the hosts" in found.message


def test_who_does_not_call_is_waited_for_no_longer_than_allowed(
    pipe: tuple[int, int], tmp_path: Path
) -> None:
    def body(world: World) -> None:
        session = open_session(world, limit_s=0.2)
        if world.rank == 3:
            wait_for(pipe[0], RANKS - 1)
            RING.wrong(session, world.rank)
        try:
            RING.wrong(session, world.rank)
        finally:
            os.write(pipe[1], b"!")

    with children(RANKS, body, tmp_path) as started:
        ended = started.wait()
    for found in ended.values():
        assert found.error == "ExecTimeoutError"
        assert "main task" in found.message
        assert "for 0.2 s, longer than HCCL_EXEC_TIMEOUT allows" in found.message
        assert found.message.startswith("Rank 3 has not begun this call")


def test_who_closes_early_is_missed(tmp_path: Path) -> None:
    def body(world: World, session: SharedSession) -> None:
        RING.wrong(session, world.rank)
        if world.rank:
            RING.wrong(session, world.rank)
        session.close()

    ended = together(body, tmp_path)
    assert ended.pop(0).error == ""
    for found in ended.values():
        assert found.error == "PeerLostError"
        assert found.message.startswith("Rank 0 has closed its communicator before call 2")


@pytest.mark.parametrize(
    ("program", "error", "words"),
    [
        (posts_last(RING.program), "DeadlockError", "streams can never go on"),
        (lacking(TaskKind.NOTIFY_POST), "DeadlockError", "streams can never go on"),
        (lacking(TaskKind.NOTIFY_WAIT), "OrchestrationError", "Unmatched post: no task waits for"),
    ],
    ids=["posts come last", "posts lack", "posts are left over"],
)
def test_a_program_that_cannot_end_well_is_refused(
    program: Program, error: str, words: str, tmp_path: Path
) -> None:
    """Where posts are as many as waits, when it blocks; else before anything is done."""
    bad = Run.of(program)

    def body(world: World, session: SharedSession) -> None:
        bad.wrong(session, world.rank)

    for found in together(body, tmp_path).values():
        assert found.error == error
        assert words in found.message


def test_a_session_that_has_failed_says_so(tmp_path: Path) -> None:
    def body(world: World, session: SharedSession) -> str:
        with pytest.raises(MismatchError):
            (SHORT if world.rank else MESH).wrong(session, world.rank)
        with pytest.raises(HcclError) as again:
            MESH.wrong(session, world.rank)
        session.close()
        with pytest.raises(ParameterError, match="The session is closed"):
            MESH.wrong(session, world.rank)
        return again.value.message

    for found in together(body, tmp_path).values():
        assert found.value.startswith("The session has failed: Ranks differ in call 1: ")


def test_a_forked_process_may_not_use_the_session(tmp_path: Path) -> None:
    def body(world: World, session: SharedSession) -> int:
        process = os.fork()
        if not process:
            try:
                RING.wrong(session, world.rank)
            except ParameterError as error:
                session.close()
                os._exit(7 if "belongs to process" in error.message else 1)
            os._exit(1)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        assert not RING.wrong(session, world.rank)  # the fork has closed nothing of ours
        return status

    assert {found.value for found in together(body, tmp_path).values()} == {7}


def test_ranks_that_open_differently_are_named(tmp_path: Path) -> None:
    def body(world: World) -> None:
        size = 2 << 20 if world.rank == 2 else 1 << 20
        SharedSession(world.rank, world.size, world.store, "group", size)

    with children(RANKS, body, tmp_path) as started:
        for found in started.wait().values():
            assert found.error == "MismatchError"
            assert "rank 0 with CCL buffers of 1 MB, rank 2 with CCL buffers of 2" in found.message


def test_arrays_of_the_wrong_size_end_nothing(tmp_path: Path) -> None:
    def body(world: World, session: SharedSession) -> None:
        into, out = RING.inputs[world.rank], RING.outputs[world.rank]
        with pytest.raises(ParameterError, match=r"input has 3996 bytes, the program needs 4000"):
            session.run("tag", RING.program, [into[1:]], [out])
        with pytest.raises(ParameterError, match="There are 2 outputs for rank"):
            session.run("tag", RING.program, [into], [out, out])
        out.flags.writeable = False
        with pytest.raises(ParameterError, match=r"writes rank \d's OUT"):
            session.run("tag", RING.program, [into], [out])
        out.flags.writeable = True
        assert not RING.wrong(session, world.rank)

    assert {found.error for found in together(body, tmp_path).values()} == {""}


def test_nothing_is_left(tmp_path: Path) -> None:
    def body(world: World) -> tuple[int, int, list[str]]:
        before = len(os.listdir("/proc/self/fd"))
        session = open_session(world)
        MESH.wrong(session, world.rank)
        session.gather(b"x")
        session.close()
        session.close()
        after = len(os.listdir("/proc/self/fd"))
        with open("/proc/self/maps") as file:
            return before, after, [line for line in file if "memfd:hccl_py" in line]

    with children(RANKS, body, tmp_path) as started:
        ended = started.wait()
    with open("/proc/net/unix") as file:
        sockets = [line for line in file if f"@hccl_py-{started.processes[0]}-" in line]
    assert not sockets
    for found in ended.values():
        before, after, maps = found.value
        assert before == after
        assert not maps


def test_a_group_whose_ranks_do_not_all_come(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(ExecTimeoutError, match=r"The ranks of key/0 did not all come within 0.1 s"):
        SharedSession(0, 2, FileStore(tmp_path), "key", 1 << 20, connect_s=0.1)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_rank_that_goes_before_all_have_come(tmp_path: Path) -> None:
    def body(world: World) -> None:
        if world.rank:
            address = world.store.get("key/0", 30).decode()
            socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect(f"\0{address}")
        else:
            SharedSession(0, 2, world.store, "key", 1 << 20)

    with children(2, body, tmp_path) as started:
        found = started.wait()[0]
    assert found.error == "PeerLostError"
    assert found.message == "A process of key/0 has ended before all had come."


def test_a_machine_without_shared_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create")
    with pytest.raises(NotSupportedError, match="Processes cannot share memory here"):
        SharedSession(0, 2, FileStore(tmp_path), "key", 1 << 20, connect_s=0.1)
    monkeypatch.undo()
    with pytest.raises(HcclError, match="4096 bytes of shared memory cannot be mapped: Bad file"):
        map_file(-1, 0, 4096)
    with pytest.raises(NotSupportedError, match="buffers of a rank add up to more than 1 TiB"):
        Regions(2, 1 << 40).provide("tag", RING.program)


def test_what_cannot_be_gathered_or_shadowed(tmp_path: Path) -> None:
    class Huge(bytes):
        def __len__(self) -> int:
            return 1 << 31

    op = replace(op_of("all_reduce", 1000, mode=Mode.GRAPH), in_place=True)
    graph = Run.of(recorded("AllReduceComm", op, RANKS))

    def body(world: World, session: SharedSession) -> None:
        with pytest.raises(ParameterError, match="2147483648 bytes are too many to be gathered"):
            session.gather(Huge())
        assert not graph.wrong(session, world.rank)
        into = graph.inputs[world.rank].copy()
        session.run("tag", graph.program, [into], [graph.outputs[world.rank]])

    for found in together(body, tmp_path).values():
        assert found.error == "NotSupportedError"
        assert "input and output begin at different addresses" in found.message


class Kept:
    """A store of one process. It hangs while `answers` is cleared, and says as often as `cut` tells
    that a process has ended, in place of a wait.
    """

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.answers, self.cut = threading.Event(), 0
        self.answers.set()

    def set(self, key: str, value: bytes) -> None:
        self.answers.wait()
        self.values[key] = value

    def get(self, key: str, timeout_s: float) -> bytes:
        self.answers.wait()
        if self.cut:
            self.cut -= 1
            raise PeerLostError("Rank 5's process has ended")
        if key not in self.values:
            raise ExecTimeoutError(key)
        return self.values[key]


def test_a_reason_is_found_though_processes_end_meanwhile() -> None:
    store = Kept()
    Failures(store, "group", 1).publish(PeerLostError("Rank 3's process has ended"))
    store.cut = 3
    found = Failures(store, "group", 2).published(PATIENT_S)
    assert found is not None
    assert found.message == "Rank 3's process has ended"
    Failures(store, "group", 1).wait_for([1], PATIENT_S)  # is over at once: rank 1 knows
    assert Failures(store, "other", 2).published(0.0) is None


def test_a_store_that_hangs_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hccl_platform.distributed.failures.ANSWER_S", 0.01)
    store = Kept()
    store.answers.clear()
    failures = Failures(store, "group", 1)
    failures.publish(PeerLostError("Rank 3's process has ended"))
    monkeypatch.setattr("hccl_platform.distributed.failures.ANSWER_S", PATIENT_S)
    found = failures.published(PATIENT_S)
    store.answers.set()
    assert isinstance(found, ExecTimeoutError)
    assert found.message.startswith("The job's store does not answer")
