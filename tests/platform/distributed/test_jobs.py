"""Jobs that somebody else starts: MPI's and torchrun's processes, on one host and on several."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from hccl_platform.processes.world import World
from hccl_py.communicator.communicator import Communicator
from tests.platform.distributed.job import failures
from tests.platform.distributed.processes import in_processes
from tests.platform.distributed.sessions import ALONE, HALVES, ODD

JOB = str(Path(__file__).with_name("job.py"))
LATEST_S = 300
SOME = ("all_reduce", "all_gather_v", "broadcast")


@cache
def why_no_mpi() -> str:
    """Say what MPI lacks here; nothing where jobs can be started."""
    if shutil.which("mpiexec") is None:
        return "there is no mpiexec"
    code = "from mpi4py import MPI; print(MPI.COMM_WORLD.size)"
    done = subprocess.run(
        ["mpiexec", "-n", "2", sys.executable, "-c", code], capture_output=True, text=True
    )
    works = done.returncode == 0 and done.stdout.count("2") == 2
    return "" if works else f"mpi4py and mpiexec do not work together: {done.stderr[-200:]}"


def needs_mpi() -> None:
    if why_no_mpi():
        pytest.skip(why_no_mpi())


def ended(processes: Sequence[subprocess.Popen[str]]) -> str:
    """Wait for all; return what they wrote, and fail where one failed."""
    texts = [process.communicate(timeout=LATEST_S)[0] for process in processes]
    assert not any(process.returncode for process in processes), "\n".join(texts)
    return "".join(texts)


def start(command: Sequence[str], **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def mpi(ranks: int, *ops: str, **variables: str) -> str:
    needs_mpi()
    command = ["mpiexec", "-n", str(ranks), sys.executable, JOB, str(ranks), *ops]
    return ended([start(command, **variables)])


def all_right(text: str, ranks: int, session: str) -> bool:
    lines = sorted(line for line in text.splitlines() if line.startswith("rank "))
    return lines == [f"rank {rank} {session}: right" for rank in range(ranks)]


def test_mpi_on_one_host_shares_memory() -> None:
    text = mpi(3, *SOME)
    assert all_right(text, 3, "SharedSession"), text


def test_every_op_over_mpi() -> None:
    text = mpi(4, HCCL_PY_WIRE="mpi")
    assert all_right(text, 4, "MessageSession"), text


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_every_op_over_mpi_on_more_ranks(ranks: int) -> None:
    text = mpi(ranks, HCCL_PY_WIRE="mpi")
    assert all_right(text, ranks, "MessageSession"), text


@pytest.mark.long
@pytest.mark.seeds(4)
def test_every_executor_over_mpi(seed: int) -> None:
    needs_mpi()
    ranks, kind = (2, 3, 4, 8)[seed % 4], (ALONE, HALVES, ODD)[seed % 3]
    module = "tests.platform.distributed.job_executors"
    command = ["mpiexec", "-n", str(ranks), sys.executable, "-m", module, kind, str(seed)]
    text = ended([start(command)])
    assert all_right(text, ranks, str(True)), text


def over_gloo(ranks: int) -> None:
    pytest.importorskip("torch", reason="messages over gloo need torch, which is not installed")

    def body(world: World) -> list[str]:
        with Communicator(ranks=ranks, platform="distributed", wire="gloo") as comm:
            return failures(comm)

    assert in_processes(ranks, body) == [[]] * ranks


def test_every_op_over_gloo() -> None:
    over_gloo(3)


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_every_op_over_gloo_on_more_ranks(ranks: int) -> None:
    over_gloo(ranks)


@pytest.mark.parametrize("hosts", ["abcd", "aabb", "abab"])
def test_groups_have_messages_of_their_own(hosts: str) -> None:
    pytest.importorskip("torch", reason="messages over gloo need torch, which is not installed")

    def body(world: World) -> list[object]:
        os.environ["HCCL_PY_HOST"] = hosts[world.rank]
        with Communicator(ranks=4, platform="distributed") as comm:
            mine = np.full(3, 1.0 + world.rank, np.float32)
            sums: list[object] = [comm.all_reduce([mine]).outputs[0].tolist()]
            for group in comm.split([0, 1, 0, 1]).values():
                with group:
                    sums.append(group.all_reduce([mine]).outputs[0].tolist())
                    sums.append(group.exchange(b"%d" % world.rank))
            sums.append(comm.all_reduce([mine], "max").outputs[0].tolist())
        return sums

    even = [[10.0] * 3, [4.0] * 3, [b"0", b"2"], [4.0] * 3]
    odd = [[10.0] * 3, [6.0] * 3, [b"1", b"3"], [4.0] * 3]
    assert in_processes(4, body) == [even, odd, even, odd]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def torchrun(node: int, port: int, *, address: str = "127.0.0.1") -> list[str]:
    """Return the command of one of two nodes with two processes each."""
    return [
        *(sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "2"),
        *("--node-rank", str(node), "--master-addr", address, "--master-port", str(port)),
        *(JOB, "4", *SOME),
    ]


@pytest.mark.long
def test_torchrun_with_two_nodes_on_one_host_shares_memory() -> None:
    pytest.importorskip("torch", reason="torchrun is torch's, which is not installed")
    port = free_port()
    text = ended([start(torchrun(node, port)) for node in range(2)])
    assert all_right(text, 4, "SharedSession"), text


def test_torchrun_with_two_hosts_sends_messages() -> None:
    pytest.importorskip("torch", reason="torchrun is torch's, which is not installed")
    port = free_port()
    nodes = [start(torchrun(node, port), HCCL_PY_HOST=f"host {node}") for node in range(2)]
    text = ended(nodes)
    assert all_right(text, 4, "MessageSession"), text


@contextmanager
def two_networks() -> Iterator[list[str]]:
    """Make two network namespaces that a pair of virtual interfaces joins; skip where that is not
    allowed.
    """
    if os.geteuid() or shutil.which("ip") is None:
        pytest.skip("network namespaces are made by root, with iproute2")
    names = [f"hccl-{os.getpid()}-{k}" for k in range(2)]
    devices = [f"v{os.getpid()}-{k}" for k in range(2)]
    try:
        if not all(ip("netns", "add", name) for name in names):
            pytest.skip("this system makes no network namespaces")
        if not ip("link", "add", devices[0], "type", "veth", "peer", "name", devices[1]):
            pytest.skip("this system makes no virtual interfaces")
        for k, (name, device) in enumerate(zip(names, devices, strict=True)):
            assert ip("link", "set", device, "netns", name)
            assert ip("-n", name, "link", "set", device, "name", "joined")
            assert ip("-n", name, "address", "add", f"10.213.77.{k + 1}/24", "dev", "joined")
            assert ip("-n", name, "link", "set", "joined", "up")
            assert ip("-n", name, "link", "set", "lo", "up")
        yield names
    finally:
        for name in names:
            ip("netns", "delete", name)


def ip(*arguments: str) -> bool:
    return not subprocess.run(["ip", *arguments], capture_output=True, check=False).returncode


@pytest.mark.long
def test_two_networks_are_two_hosts() -> None:
    pytest.importorskip("torch", reason="torchrun is torch's, which is not installed")
    with two_networks() as names:
        command = ["ip", "netns", "exec"]
        text = ended(
            [
                start(
                    [*command, name, *torchrun(node, 29555, address="10.213.77.1")],
                    GLOO_SOCKET_IFNAME="joined",
                )
                for node, name in enumerate(names)
            ]
        )
    assert all_right(text, 4, "MessageSession"), text
