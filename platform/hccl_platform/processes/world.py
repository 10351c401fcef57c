"""The world of a process: its rank, and the other processes of its job, from the environment.

    hccl-py run ... --ranks 4     HCCL_PY_RANK, HCCL_PY_SIZE, HCCL_PY_STORE
    torchrun                      RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT
    mpiexec, srun                 PMI_RANK, PMI_SIZE; OMPI_COMM_WORLD_*; SLURM_*; then MPI itself

The first line whose variables are set counts. Processes are on one *host* if they can share memory:
on one machine, in the same namespaces. Containers of one machine are different hosts.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from hccl_platform.processes.stores import MpiStore, SocketStore
from hccl_py.errors import ConfigError, NotSupportedError, ParameterError
from hccl_py.plugins.platforms import Group, Store

CONNECT_S = 120.0
"""Seconds that processes wait for each other to start: the default of HCCL_CONNECT_TIMEOUT."""

RANK, SIZE, STORE, HOST = "HCCL_PY_RANK", "HCCL_PY_SIZE", "HCCL_PY_STORE", "HCCL_PY_HOST"

_TORCH = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_MPI = (
    ("PMI_RANK", "PMI_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)


@dataclass(frozen=True, eq=False)
class World:
    """All processes of the job: the rank of this one, their number, and their store.

    `mpi` is MPI's communicator of all of them, if MPI has started them; `connect_s` is the time
    that they wait for each other to connect.
    """

    rank: int
    size: int
    store: Store
    mpi: Any = None
    connect_s: float = CONNECT_S

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.size:
            raise ParameterError(
                f"The process is rank {self.rank} of {self.size}.", "Ranks are numbered from 0."
            )

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """The host of every rank; all processes must call this."""
        return self.hosts_of(range(self.size))

    def hosts_of(self, ranks: Sequence[int]) -> tuple[str, ...]:
        """Return the hosts of some ranks, including this one; all of them must call this."""
        self.store.set(f"hccl_py/host/{self.rank}", host_name().encode())
        return tuple(
            self.store.get(f"hccl_py/host/{rank}", self.connect_s).decode() for rank in ranks
        )

    def rank_in(self, group: Group) -> int | None:
        """Return this process's rank in a group, None if it is no member; ParameterError if the
        job has too few processes for the group.
        """
        if max(group.world_ranks) >= self.size:
            raise ParameterError(
                f"The communicator has {max(group.world_ranks) + 1} ranks, and the job "
                f"{self.size} processes.",
                "Start as many processes as there are ranks.",
            )
        ranks = group.world_ranks
        return ranks.index(self.rank) if self.rank in ranks else None

    @cached_property
    def _opened(self) -> Counter[str]:
        """The number of sessions that each group has opened."""
        return Counter()

    def key_of(self, group: str) -> str:
        """Return the store's key for the next session of a group, the same in every process:
        all of them open their sessions in the same order.
        """
        self._opened[group] += 1
        return f"hccl_py/{group}/{self._opened[group]}"

    @property
    def local_rank(self) -> int:
        """The number of this process among those of its host."""
        return self.hosts[: self.rank].count(self.hosts[self.rank])


def host_name(environment: Mapping[str, str] = os.environ) -> str:
    """Return HCCL_PY_HOST, or else a name that tells this host from others: the machine's boot, and
    the namespaces in which descriptors are exchanged and processes watched.
    """
    if environment.get(HOST):
        return environment[HOST]
    boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    return " ".join([boot, *(os.readlink(f"/proc/self/ns/{kind}") for kind in ("net", "pid"))])


def is_started() -> bool:
    """True if a launcher has started this process as one of several."""
    return RANK in os.environ or "RANK" in os.environ or _mpi_variables() is not None


def world_of_environment() -> World:
    """Return the world that this process was started in, the same one at every call.

    NotSupportedError if it was started alone, or its launcher needs a library that is missing;
    ConfigError if a variable is not a number.
    """
    return _world(os.getpid())


@cache
def _world(process: int) -> World:
    """Return the world of this process; a forked process has another one."""
    environment = os.environ
    if RANK in environment:
        store = SocketStore(environment.get(STORE, ""))
        return World(_number(RANK), _number(SIZE), store)
    if "RANK" in environment:
        return _world_of_torch()
    variables = _mpi_variables()
    if variables is not None:
        return _world_of_mpi(*(_number(name) for name in variables))
    raise NotSupportedError(
        "This process was started alone: the distributed platform has one process for every rank.",
        "Start it as `hccl-py run OP --platform distributed --ranks 4`, "
        "`torchrun --nproc-per-node 4 script.py` or `mpiexec -n 4 python script.py`.",
    )


def _mpi_variables() -> tuple[str, str] | None:
    """Return the variables with MPI's rank and size; None for a job of one process, such as a shell
    in srun.
    """
    for rank, size in _MPI:
        if {rank, size} <= os.environ.keys() and _number(size) > 1:
            return rank, size
    return None


def _number(name: str) -> int:
    value = os.environ.get(name, "")
    if not (value.isascii() and value.isdigit()):
        raise ConfigError(
            f"Environment variable {name} has the illegal value {value!r}.",
            "Expected: a whole number; the launcher of the processes sets it.",
        )
    return int(value)


def _world_of_torch() -> World:
    """Return torchrun's world: connect to its store, or serve it as rank 0, as torch does."""
    missing = [name for name in _TORCH if name not in os.environ]
    if missing:
        raise NotSupportedError(
            f"RANK is set, but not {', '.join(missing)}.",
            "torchrun sets them all; without it, set them or unset RANK.",
        )
    rank, size = _number("RANK"), _number("WORLD_SIZE")
    try:
        import torch.distributed as dist
    except ImportError as error:
        raise missing_library("torch", "torch", "RANK and WORLD_SIZE are torchrun's") from error
    from hccl_py.torch.presence import Presence
    from hccl_py.torch.store import TorchStore, store_of_attempt

    store = store_of_attempt(next(dist.rendezvous("env://"))[0])
    presence = Presence(store, rank, threading.Lock())
    return World(rank, size, TorchStore(store, "hccl_py", lambda: presence.check(range(size))))


def _world_of_mpi(rank: int, size: int) -> World:
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # there is no mpi4py, or no MPI for it
        raise missing_library("mpi4py", "mpi", "MPI has started this process") from error
    world = MPI.COMM_WORLD
    if (world.Get_rank(), world.Get_size()) != (rank, size):
        raise NotSupportedError(
            f"This process was started as rank {rank} of {size}, "
            f"but mpi4py's MPI says rank {world.Get_rank()} of {world.Get_size()}.",
            "mpiexec (or srun's --mpi) and mpi4py must belong to the same MPI.",
        )
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        raise NotSupportedError(
            "This MPI was started without MPI_THREAD_MULTIPLE, and runs are on threads.",
            "Leave mpi4py.rc.thread_level as it is; build MPI with support of threads.",
        )
    return World(rank, size, MpiStore(world), world)


def missing_library(library: str, extra: str, why: str) -> NotSupportedError:
    """Return the error of a library that is not installed."""
    return NotSupportedError(
        f"{why}, and {library} cannot be imported.", f'pip install "hccl-py[{extra}]" brings it.'
    )
