"""`hccl-py run --platform distributed`: a process for every rank, and one voice."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hccl_py.cli import main
from hccl_py.cli.errors import INTERRUPTED, USAGE, WRONG
from hccl_py.program.program import Program

HERE = ("--platform", "distributed")
FOREVER = ("-n", "100000000", "-w", "0", "-c", "0", "-b", "1K")


def test_one_process_speaks_for_all(capfd: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["run", "all_reduce", "--ranks", "3", "-b", "1K", "-e", "4K", "-f", "2", *HERE]) == 0
    )
    out, err = capfd.readouterr()
    assert out.count("platform distributed: times are wall time\n") == 1
    assert out.count(" | success") == 3
    assert out.endswith("checked: every element at every rank is right, to the last bit\n")
    assert err == ""


def test_the_document_is_one(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "broadcast", "--ranks", "4", "-b", "64", "-n", "2", *HERE, "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert (document["platform"], document["clock"], document["ranks"]) == (
        "distributed",
        "wall",
        4,
    )
    assert [row["check"] for row in document["rows"]] == ["success"]


def test_a_wrong_element_of_any_rank_is_found(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from hccl_platform.distributed.session import SharedSession

    run = SharedSession.run

    def spoiled(self, tag, program: Program, inputs, outputs, stream=None):  # type: ignore[no-untyped-def]
        done = run(self, tag, program, inputs, outputs)
        if self.local_ranks[0] == 2:
            outputs[0][5] += 1
        return done

    monkeypatch.setattr(SharedSession, "run", spoiled)
    assert main(["run", "all_reduce", "--ranks", "3", "-b", "1K", "-c", "2", *HERE]) == WRONG
    out, err = capfd.readouterr()
    assert "  rank 2 element 5: expected " in out
    assert err.count("error: The result is wrong for 1 of 1 sizes.") == 1


def test_an_illegal_call_is_refused_once(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "all_reduce", "--ranks", "3", "-d", "fp8", *HERE]) == USAGE
    assert capfd.readouterr().err.count("error: ") == 1


def test_a_schedule_is_refused_once(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "all_reduce", "--ranks", "3", "--seed", "1", *HERE]) == USAGE
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("error: The distributed platform runs streams as they come") == 1


def test_messages_need_processes(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "all_reduce", "--wire", "gloo"]) == USAGE
    assert "platform emulated has one." in capfd.readouterr().err
    assert main(["run", "all_reduce", "--wire", "tcp", *HERE]) == USAGE
    assert "Expected: gloo or mpi." in capfd.readouterr().err
    assert main(["run", "all_reduce", "--ranks", "3", "--wire", "mpi", *HERE]) == USAGE
    assert capfd.readouterr().err.count("error: Messages over MPI need processes") == 1


@contextmanager
def running(*options: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """Start a run that goes on for ever; its process and its children."""
    command = [sys.executable, "-m", "hccl_py", "run", "all_reduce", "--ranks", "3", *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        while "data_size(Bytes)" not in process.stdout.readline():
            assert process.poll() is None
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
            yield process, [int(child) for child in file.read().split()]
        if process.poll() is None:
            process.kill()


def is_there(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_ctrl_c_ends_all_without_a_word() -> None:
    with running(*FOREVER, *HERE) as (process, children):
        assert len(children) == 3
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == INTERRUPTED
    assert err == ""
    assert not any(map(is_there, children))


def test_a_killed_rank_ends_the_command() -> None:
    with running(*FOREVER, *HERE) as (process, children):
        os.kill(children[1], signal.SIGKILL)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGKILL
    assert "error: rank 1 was ended by SIGKILL.\n" in err
    assert "Traceback" not in err
    assert not any(map(is_there, children))


def test_nothing_outlives_the_command() -> None:
    with running(*FOREVER, *HERE) as (process, children):
        watched = [os.pidfd_open(child) for child in children]
        process.kill()
        process.wait(timeout=30)
        for descriptor in watched:
            assert select.select([descriptor], [], [], 30)[0]
            os.close(descriptor)
