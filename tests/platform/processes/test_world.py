"""Who a process is: variables of the launcher, torchrun, MPI and Slurm; what is said of none."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from hccl_platform.distributed.failures import MOST_BYTES, as_text, from_text
from hccl_platform.distributed.messages import open_messenger
from hccl_platform.processes import world as module
from hccl_platform.processes.stores import SocketStore
from hccl_platform.processes.world import World, host_name, is_started, world_of_environment
from hccl_py.errors import (
    ConfigError,
    HcclError,
    MismatchError,
    NotSupportedError,
    ParameterError,
    PeerLostError,
)
from hccl_py.plugins.platforms import Group

KNOWN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "HCCL_PY_RANK")


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KNOWN:
        monkeypatch.delenv(name, raising=False)
    for names in module._MPI:
        for name in names:
            monkeypatch.delenv(name, raising=False)


def refusal(monkeypatch: pytest.MonkeyPatch, **variables: str) -> HcclError:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    module._world.cache_clear()
    with pytest.raises(HcclError) as error:
        world_of_environment()
    return error.value


def test_a_process_that_was_started_alone_is_told_how_to_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = refusal(monkeypatch)
    assert isinstance(error, NotSupportedError)
    assert error.message.startswith("This process was started alone")
    for way in ("hccl-py run OP --platform distributed", "torchrun --nproc-per-node", "mpiexec -n"):
        assert way in error.hint
    assert not is_started()


@pytest.mark.parametrize(
    ("variables", "started"),
    [
        ({"RANK": "0"}, True),
        ({"HCCL_PY_RANK": "0"}, True),
        ({"PMI_RANK": "1", "PMI_SIZE": "2"}, True),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}, True),
        ({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "4"}, True),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}, False),  # a batch script
        ({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}, False),  # a shell of srun's
    ],
)
def test_whether_somebody_started_it(
    variables: dict[str, str], started: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert is_started() == started


def test_variables_that_are_missing_or_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    error = refusal(monkeypatch, RANK="0")
    assert error.message == "RANK is set, but not WORLD_SIZE, MASTER_ADDR, MASTER_PORT."
    rest = {"WORLD_SIZE": "two", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}
    error = refusal(monkeypatch, **rest)
    assert isinstance(error, ConfigError)
    assert error.message == "Environment variable WORLD_SIZE has the illegal value 'two'."
    error = refusal(monkeypatch, HCCL_PY_RANK="1", HCCL_PY_SIZE="")
    assert "HCCL_PY_SIZE" in error.message


@pytest.mark.parametrize(
    ("library", "extra", "variables"),
    [
        ("torch.distributed", "torch", dict.fromkeys(KNOWN[:5], "1")),
        ("mpi4py", "mpi", {"PMI_RANK": "0", "PMI_SIZE": "2"}),
    ],
)
def test_a_missing_library_is_named_with_its_extra(
    library: str, extra: str, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    error = refusal(monkeypatch, **variables)
    assert error.message.endswith(f"{library.partition('.')[0]} cannot be imported.")
    assert error.hint == f'pip install "hccl-py[{extra}]" brings it.'


def test_ranks_beyond_the_world() -> None:
    with pytest.raises(ParameterError, match="The process is rank 4 of 4"):
        World(4, 4, SocketStore("nowhere"))


def test_the_launcher_has_gone() -> None:
    with pytest.raises(PeerLostError, match="The process that started this job has ended"):
        SocketStore("nowhere").get("key", 1)


def test_hosts_are_told_apart_by_machine_and_namespaces() -> None:
    name = host_name({})
    assert name == host_name({})
    assert os.readlink("/proc/self/ns/net") in name
    assert os.readlink("/proc/self/ns/pid") in name
    assert host_name({"HCCL_PY_HOST": "a"}) == "a"


class Shelf:
    """A store of one process."""

    def __init__(self, **values: bytes) -> None:
        self.values = {f"hccl_py/host/{key[1:]}": value for key, value in values.items()}

    def set(self, key: str, value: bytes) -> None:
        self.values[key] = value

    def get(self, key: str, timeout_s: float) -> bytes:
        return self.values[key]


def test_the_local_rank_counts_those_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HCCL_PY_HOST", "b")
    world = World(3, 4, Shelf(r0=b"a", r1=b"b", r2=b"a"))
    assert world.hosts == ("a", "b", "a", "b")
    assert world.local_rank == 1


def test_messages_over_gloo_name_the_extra_that_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.distributed", None)
    world = World(0, 1, Shelf())
    with pytest.raises(NotSupportedError) as error:
        open_messenger("gloo", world, Group.world(1), "key", None)
    assert error.value.message.endswith("over gloo, and torch cannot be imported.")
    assert error.value.hint == 'pip install "hccl-py[torch]" brings it.'


@pytest.mark.parametrize("error", [MismatchError("what", ""), PeerLostError("é" * 5000, "now")])
def test_a_reason_keeps_its_class_and_its_words(error: HcclError) -> None:
    text = as_text(error, 3)
    again = from_text(text)
    assert len(text) <= MOST_BYTES
    assert type(again) is type(error)
    assert again.message
    assert error.message.startswith(again.message)
    assert again.hint == error.hint


def test_a_reason_that_is_no_error_of_ours_is_a_lost_peer() -> None:
    error = from_text(as_text(KeyError("x"), 3))
    assert type(error) is PeerLostError
    assert error.message == "Rank 3 has failed: KeyError: 'x'"


def test_a_rank_imports_neither_models_nor_other_platforms() -> None:
    """Every process of a job pays for what is imported before its first call."""
    code = """
import sys
from hccl_py.call.config import Config
from hccl_py.communicator.communicator import Communicator
from hccl_py.plugins.discovery import find_platform, installed_executors
find_platform("distributed"), installed_executors(), Config.load()
unused = {"pydantic", "html", "hccl_platform.emulated.session", "hccl_platform.device.session"}
unused |= {"hccl_py.topology.networks", "hccl_py.clocks.cost"}
print(*sorted(unused & set(sys.modules)))
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
