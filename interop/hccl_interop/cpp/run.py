"""Runs the recorder: an op's code once per rank, in processes of its own, within limits.

The recorder forks a process per rank, as many at once as there are cores. Each has 10 seconds of
CPU, a minute of wall time, its share of the memory, at most 16 GiB, and no core file. All processes
and files are gone when the recording ends or is aborted.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from hccl_interop.cpp.build import Built, cores
from hccl_interop.cpp.networks import networks_of, options_of
from hccl_interop.cpp.project import CppProject
from hccl_py.call.expansion import ExpansionMode
from hccl_py.call.op_param import OpParam
from hccl_py.errors import NotSupportedError, ParameterError
from hccl_py.operators.parts import blocks_of, exchange_of
from hccl_py.topology.topology import Topology
from hccl_py.values import IntArray

_WORK_REQUEST = 256 << 20
"""Bytes of one work request over UB; HCCL splits longer transfers."""

_SOC = {"950": "Ascend950PR_9589", "910B": "Ascend910B1", "910_93": "Ascend910_9391"}


_EXPANSIONS: dict[ExpansionMode, int] = {"AIV": 1, "CCU_MS": 4, "CCU_SCHED": 5, "AIV_ONLY": 6}
"""Numbers of HcclOpExpansionMode; all others are the AI CPU's, 0."""

_ENDING = (signal.SIGTERM, signal.SIGHUP)

_MOST_SAID = 1 << 14
"""Bytes of the recorder's own error output that are shown."""


def _memory() -> int:
    """Return the bytes of one rank: as many run at once as there are cores, on half the memory."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(2 << 30, min(16 << 30, machine // (2 * cores())))


@dataclass(frozen=True)
class RankLimits:
    """Limits of one rank's process."""

    cpu_seconds: int = 10
    wall_seconds: int = 60
    memory_bytes: int = field(default_factory=_memory)
    tasks: int = 4_000_000


@dataclass(frozen=True)
class RankBuffers:
    """Bytes of every rank's input, output and HCCL buffer; the first two may differ by rank."""

    inputs: IntArray
    outputs: IntArray
    ccl: int


@dataclass(frozen=True)
class EntryPoint:
    """The functions to call, and the kernel where the host code names another one."""

    function: str
    receiver: str = ""
    kernel: str = ""


@contextmanager
def own_folder() -> Iterator[Path]:
    """Make a folder for the recording and remove it in any case: meanwhile SIGTERM and SIGHUP raise
    an exception, unless the process handles them itself.
    """
    with _ending_by_exception(), tempfile.TemporaryDirectory(prefix="hccl-py-") as folder:
        yield Path(folder)


@contextmanager
def _ending_by_exception() -> Iterator[None]:
    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    is_main = threading.current_thread() is threading.main_thread()
    mine = [n for n in _ENDING if is_main and signal.getsignal(n) is signal.SIG_DFL]
    for number in mine:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in mine:
            signal.signal(number, signal.SIG_DFL)


def run_recorder(
    built: Built,
    project: CppProject,
    entry: EntryPoint,
    op: OpParam,
    topology: Topology,
    buffers: RankBuffers,
    calls: int,
    expansion: ExpansionMode,
    limits: RankLimits,
    out: Path,
) -> None:
    """Record all ranks into a folder; traces.py reads it.

    Raises ParameterError where the libraries cannot be loaded, NotSupportedError where the recorder
    itself fails.
    """
    options: dict[str, object] = {
        "host": built.host,
        "device": built.device,
        "entry": entry.function,
        "receiver": entry.receiver,
        "kernel": entry.kernel,
        "op": op.name,
        "out": out,
        "home": out / "ascend",
        "soc": _SOC.get(topology.product.device, _SOC["950"]),
        "count": op.count,
        "in_bytes": int(buffers.inputs.max()),
        "out_bytes": int(buffers.outputs.max()),
        "ccl_bytes": buffers.ccl,
        "ranks": topology.size,
        "dtype": op.dtype.number,
        "reduce": 0 if op.reduce is None else int(op.reduce),
        "root": op.root or 0,
        "expansion": _EXPANSIONS.get(expansion, 0),
        "calls": calls,
        "jobs": cores(),
        "cpu_seconds": limits.cpu_seconds,
        "wall_seconds": limits.wall_seconds,
        "memory_bytes": limits.memory_bytes,
        "most_tasks": limits.tasks,
        "most_moved": _WORK_REQUEST if topology.product.device == "950" else 0,
        "server": " ".join(map(str, topology.server.tolist())),
        "device_id": " ".join(map(str, topology.device_id.tolist())),
        **_amounts(op, topology.size),
        **options_of(networks_of(topology)),
    }
    _run(built.recorder, options, project, out)


def _amounts(op: OpParam, ranks: int) -> dict[str, str]:
    """Return the elements that ranks send and receive, and where these begin, where they differ by
    rank: a number for each rank, or a row for each.
    """
    if op.name in ("all_gather_v", "reduce_scatter_v"):
        parts = blocks_of(op, ranks)
        named = dict(zip(("receives", "receive_displs"), parts, strict=True))
        if op.name == "reduce_scatter_v":
            named = dict(zip(("sends", "send_displs"), parts, strict=True))
    elif op.name in ("all_to_all_v", "all_to_all_vc"):
        pairs = exchange_of(op, ranks)
        named = {"sends": pairs.sends, "receives": pairs.receives}
        named |= {"send_displs": pairs.send_displs, "receive_displs": pairs.recv_displs}
    else:
        return {}
    return {name: " ".join(map(str, numbers.ravel().tolist())) for name, numbers in named.items()}


def _run(recorder: Path, options: Mapping[str, object], project: CppProject, out: Path) -> None:
    path = out / "options"
    path.write_text("".join(f"{key} {value}\n" for key, value in options.items()), "utf-8")
    (out / "ascend").mkdir()
    with (out / "errors").open("w+b") as errors:
        with _session([str(recorder), str(path)], project.folder, errors) as process:
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        errors.seek(0)
        error = errors.read(_MOST_SAID).decode("utf-8", "backslashreplace")
    if process.returncode == 68:
        raise ParameterError(
            f"The op cannot be loaded: {error.strip()}.",
            "Every function that it calls must be defined in it, or be of HCCL's API.",
        )
    if process.returncode == 65:
        raise ParameterError(
            f"The op cannot be recorded: {error.strip()}.", "Give fewer ranks or a smaller size."
        )
    if process.returncode not in (0, 3, 67):  # 3 and 67: a rank crashed or exceeded a limit
        said = error.strip() or "it is silent"
        raise NotSupportedError(
            f"The recorder ended with status {process.returncode}: {said}.",
            "This is a defect of hccl-py, or the machine ran out of memory or processes.",
        )


@contextmanager
def _session(
    command: list[str], folder: Path, errors: IO[bytes]
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process in a session of its own, and kill the whole session at the end.

    It has no pipe: a process forked by the author's code could hold one open.
    """
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
