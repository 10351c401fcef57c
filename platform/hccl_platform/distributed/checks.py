"""Checks of the distributed platform: Linux's files in memory and watched processes.

Messages between hosts need gloo, which is part of torch, or MPI; inside a host neither is needed.
"""

from __future__ import annotations

import os
import platform
import resource
import shutil
from collections.abc import Iterator

from hccl_platform.checks import TORCH, installed
from hccl_py.plugins.platforms import Check, Fact


def _processes() -> Iterator[Fact]:
    yield Fact("kernel", f"{platform.system()} {platform.release()}")
    for name, opened in (("memory without a name", _memory), ("watched processes", _watched)):
        try:
            os.close(opened())
            yield Fact(name, "there", True)
        except (OSError, AttributeError) as error:
            hint = "It takes Linux 5.3 or later, and a container that allows the system call."
            yield Fact(name, f"{type(error).__name__}: {error}", False, hint)
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield Fact("open files", f"at most {soft}: three for each peer and group")


def _memory() -> int:
    return os.memfd_create("hccl-py doctor")


def _watched() -> int:
    return os.pidfd_open(os.getpid())


def _mpi() -> Iterator[Fact]:
    found = installed("mpi4py")
    hint = "" if found else 'pip install "hccl-py[mpi]" mpich, for jobs that mpiexec starts.'
    yield Fact("mpi4py", found or "not installed", None, hint)
    yield Fact("mpiexec", shutil.which("mpiexec") or "not on the path")


CHECKS = (
    Check("processes", _processes),
    TORCH._replace(is_needed=False),
    Check("MPI", _mpi, is_needed=False),
)
