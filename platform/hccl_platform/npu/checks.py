"""Checks of the npu platform: driver, CANN, torch_npu, and the capabilities of NPUs.

These are the checks of one process, on the first NPU that it sees. Capabilities that take several
processes are probed when a session is opened, and logged in one line.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hccl_platform.checks import TORCH, installed
from hccl_platform.npu.acl import LIBRARY, OTHERS, SIGNATURES, AclError, Library, load
from hccl_platform.npu.capabilities import PROBE_BYTES, can_watch, local_reductions
from hccl_platform.npu.driver import HARDWARE_REDUCTIONS, AclDriver
from hccl_platform.npu.peer_memory import HANDLES, KEYS, LISTED_KEYS, MEMORY_WAYS
from hccl_py.errors import HcclError
from hccl_py.plugins.platforms import Check, Fact

DRIVER = Path("/usr/local/Ascend/driver/version.info")
TOOLKITS = tuple(Path("/usr/local/Ascend") / name for name in ("cann", "ascend-toolkit/latest"))
"""Default folders of CANN: from 8.5 on, and before."""

NODES = ("davinci_manager", "devmm_svm", "hisi_hdc")
"""Device files that every process on NPUs opens, besides one for each NPU."""

_GET_CANN = "Install CANN 8.5 or newer: https://www.hiascend.com/cann, then source its set_env.sh."
_SECONDS = 10
_SHORT, _PAUSE_S = 3, 0.3
"""Time-out of a wait, and delay of its post: too late if the time-out is in milliseconds."""


# ---- driver ----


def facts_of_driver(devices: Path = Path("/dev"), version: Path = DRIVER) -> Iterator[Fact]:
    """Look for the driver's version and its device files; in a container both come from outside."""
    found = _value(version, "Version")
    get = "Install Ascend's driver and firmware (HDK): `npu-smi info` lists NPUs then."
    yield Fact("driver", found or f"no {version}", None, "" if found else get)
    files = [path for path in devices.glob("davinci*") if path.name[7:].isdigit()]
    names = sorted((path.name for path in files), key=lambda name: int(name[7:]))
    if not names:
        yield Fact("device files", f"no {devices}/davinci0", None, _container_hint() or get)
        return
    closed = [n for n in (*names, *NODES) if not os.access(devices / n, os.R_OK | os.W_OK)]
    text = f"{len(names)}: {', '.join(names)}"
    if not closed:
        yield Fact("device files", text, True)
        return
    hint = _container_hint() or "Run as a user of the driver's group, HwHiAiUser."
    yield Fact("device files", f"{text}; closed to this process: {', '.join(closed)}", False, hint)


def _container_hint() -> str:
    """Return a hint for containers without NPUs; empty if this process is in none."""
    if not any(Path(mark).exists() for mark in ("/.dockerenv", "/run/.containerenv")):
        return ""
    devices = " ".join(f"--device /dev/{name}" for name in ("davinci0", *NODES))
    driver = f"-v {DRIVER.parent}:{DRIVER.parent}"
    return f"Where the host has NPUs: start the container with {devices} {driver}."


# ---- CANN ----


def facts_of_cann(
    name: str = LIBRARY, homes: Sequence[Path] = TOOLKITS, environment: Any = os.environ
) -> Iterator[Fact]:
    """Look for CANN's folder, its version, and the functions of its runtime."""
    variables = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")
    for variable in variables:
        yield Fact(variable, environment.get(variable, "not set"))
    named = [Path(environment[v]) for v in variables if environment.get(v)]
    home = next((folder for folder in (*named, *homes) if folder.is_dir()), None)
    get = _GET_CANN
    if home is not None:
        yield Fact("CANN", f"{_cann_version(home) or 'of unknown version'} in {home}")
        if home not in named:
            scripts = (home / "set_env.sh", home.parent / "set_env.sh")
            get = f"source {next((s for s in scripts if s.exists()), scripts[0])}"
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        yield Fact(name, " ".join(str(error).split())[:200], False, get)
        return
    lacks = [function for function in (*SIGNATURES, *OTHERS) if not hasattr(library, function)]
    if lacks:
        text = f"lacks {len(lacks)} functions: {', '.join(lacks[:4])}" + " ..." * (len(lacks) > 4)
        yield Fact(name, text, False, "Install CANN 8.5 or newer: older runtimes lack functions.")
        return
    yield Fact(name, f"loaded, with all {len(SIGNATURES) + len(OTHERS)} functions", True)
    yield Fact("runtime", _runtime_version(library))


def _cann_version(home: Path) -> str:
    """Return the version in the files of CANN's installer; empty if there is none."""
    places = (home / f"{platform.machine()}-linux" / "ascend_toolkit_install.info",)
    files: Iterable[Path] = (*places, home / "ascend_toolkit_install.info", home / "version.cfg")
    return next((found for file in files if (found := _value(file, "version"))), "")


def _value(file: Path, key: str) -> str:
    """Return the value of a key in a file: `key=value`, or version.cfg's `..._version=[...:value]`;
    empty if there is none.
    """
    try:
        text = file.read_text("utf-8", "replace")
    except OSError:
        return ""
    found = re.search(rf"^\w*{key}=\[?([^\]\s]+)", text, re.MULTILINE)
    return found[1].rpartition(":")[2][:60] if found else ""


def _runtime_version(library: ctypes.CDLL) -> str:
    if not hasattr(library, "aclrtGetVersion"):
        return "does not say its version"
    numbers = [ctypes.c_int32() for _ in range(3)]
    error = library.aclrtGetVersion(*map(ctypes.byref, numbers))
    version = ".".join(str(number.value) for number in numbers)
    return f"aclrtGetVersion returned {error}" if error else f"aclrt {version}"


def _cann() -> Iterator[Fact]:
    return facts_of_cann()


# ---- torch_npu ----


def _torch_npu() -> Iterator[Fact]:
    if find_spec("torch_npu") is None:
        hint = "pip install the torch-npu for this torch and CANN: docs/ascend.md has the versions."
        yield Fact("torch_npu", "not installed", False, hint)
        return
    found, torch_has = installed("torch-npu"), installed("torch")
    minor = [".".join(version.split(".")[:2]) for version in (found, torch_has)]
    fits = not (found and torch_has) or minor[0] == minor[1]
    hint = "" if fits else f"pip install torch-npu of version {minor[1]}, or torch {minor[0]}."
    yield Fact("torch_npu", found or "of unknown version", None if fits else False, hint)
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # import torch alone first
    try:
        import torch
        import torch_npu
    except Exception as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        hint = "It needs CANN, with set_env.sh sourced, and the torch that it was built for."
        yield Fact("import torch_npu", text, False, hint)
        return
    yield Fact("import torch_npu", f"works with torch {torch.__version__}", True)
    lacks = [name for name in CONSTRUCTORS if not hasattr(getattr(torch_npu, "_C", None), name)]
    hint = "Reductions that NPUs lack (prod, int64, ...) will fail." if lacks else ""
    text = f"no {', '.join(lacks)}" if lacks else "there"
    yield Fact("tensors of given memory", text, None, hint)


CONSTRUCTORS = (
    "_construct_storage_from_data_pointer",
    "_construct_NPU_Tensor_From_Storage_And_Metadata",
)
"""Private functions of torch_npu, for reductions that hardware lacks."""


# ---- NPUs ----


def _npus() -> Iterator[Fact]:
    visible = os.environ.get("ASCEND_RT_VISIBLE_DEVICES")
    yield Fact("ASCEND_RT_VISIBLE_DEVICES", "not set: all" if visible is None else visible)
    try:
        library = load()
    except HcclError as error:
        yield Fact("NPUs", error.message, False, "First of all CANN's runtime, see above.")
        return
    try:
        count = library.count()
    except AclError as error:
        yield Fact("NPUs", error.message, False, "See `npu-smi info`, and the driver above.")
        return
    if not count:
        yield Fact("NPUs", "this process sees none", False, "See `npu-smi info`.")
        return
    yield Fact("NPUs", f"{count}, {(library.aclrtGetSocName() or b'').decode()}", True)
    numbers = ", ".join(str(library.physical(device)) for device in range(count))
    yield Fact("numbers on the board", numbers)
    yield _reach(library, count)
    try:
        yield from _alone(AclDriver(library, 0))
    except AclError as error:
        hint = "See `npu-smi info`: is it in use, or unwell?"
        yield Fact("NPU 0", error.message, False, hint)


def _reach(library: Library, count: int) -> Fact:
    """Return the NPUs that reach each other's memory; a failure if none does."""
    name, sees = "access to peers", {}
    for device in range(count):
        sees[device] = {p for p in range(count) if p == device or _can_reach(library, device, p)}
    if count == 1:
        hint = "Ranks need an NPU each: start every process with one of its own, or let it see all."
        return Fact(name, "this process sees one", None, hint)
    if all(len(peers) == count for peers in sees.values()):
        return Fact(name, f"all {count}", True)
    if all(len(peers) == 1 for peers in sees.values()):
        return Fact(name, "none", False, "See `npu-smi info -t topo`.")
    text = "; ".join(f"{d}: {','.join(map(str, sorted(p - {d})))}" for d, p in sees.items())
    return Fact(name, text, True, "Choose some that do with ASCEND_RT_VISIBLE_DEVICES.")


def _can_reach(library: Library, device: int, peer: int) -> bool:
    try:
        return library.can_access(device, peer)
    except AclError:
        return False


def _alone(driver: AclDriver) -> Iterator[Fact]:
    """Check the capabilities of NPU 0 that take one process only."""
    yield _notifies(driver)
    yield _ways(driver)
    memory = driver.allocate(PROBE_BYTES, for_peers=True)
    pooled = driver.shared.is_pooled
    try:
        yield Fact("memory for peers", "a pool of its own" if pooled else "plain memory", True)
        good = len(local_reductions(driver, memory))
        yield Fact("reductions", f"{good} of {len(HARDWARE_REDUCTIONS)} in its own memory")
    finally:
        driver.free(memory)
    yield Fact("errors", "name the task" if can_watch(driver) else "do not name the task")
    yield _time_outs(driver)
    yield Fact(
        "by several processes only",
        "opening keys, reductions in a peer's memory",
        None,
        "`hccl-py run all_reduce --platform npu --ranks 2 -b 1K` logs their capabilities.",
    )


def _notifies(driver: AclDriver) -> Fact:
    hint = "NPU 0 may hang, or others may use it up: see `npu-smi info`."
    try:
        came = _posted(driver, _SECONDS, 0.0)
    except HcclError as error:
        return Fact("notifies", error.message, False, hint)
    return Fact(
        "notifies", "post and wait" if came else "a wait got no post", came, "" if came else hint
    )


def _time_outs(driver: AclDriver) -> Fact:
    """Check that waits count in seconds; last, as a wait that fails may end the device."""
    hint = "Waits may count in milliseconds: HCCL_EXEC_TIMEOUT=0 lets them take any time."
    try:
        came = _posted(driver, _SHORT, _PAUSE_S)
    except HcclError as error:
        return Fact("time-outs", error.message, None, hint)
    return Fact("time-outs", "in seconds" if came else "not known", None, "" if came else hint)


def _posted(driver: AclDriver, seconds: int, pause_s: float) -> bool:
    """Wait for a notify on one stream, and post it on another one after a pause."""
    notify, streams = driver.make_notify(), [driver.make_stream(), driver.make_stream()]
    try:
        driver.wait(notify, streams[0], seconds)
        time.sleep(pause_s)
        driver.post(notify, streams[1])
        return driver.synchronize(streams[0], 2 * seconds)
    finally:
        for stream in streams:
            driver.destroy_stream(stream)
        driver.destroy_notify(notify)


def _ways(driver: AclDriver) -> Fact:
    """Check the ways in which memory and notifies can be exported; the driver keeps the first."""
    good, failure = [], ""
    for way in MEMORY_WAYS:
        driver.share(way)
        try:
            _export(driver, way)
            good.append(way)
        except HcclError as error:
            failure = error.message
    driver.share(good[0] if good else KEYS)
    hint = "" if good else "Virtual NPUs have no such memory; in containers try --pid=host."
    return Fact("memory is shared by", ", ".join(good) or failure, bool(good), hint)


def _export(driver: AclDriver, way: str) -> None:
    """Export memory in one way, and a notify in the way that goes with it."""
    memory, own = driver.allocate(PROBE_BYTES, for_peers=True), [driver.process()]
    try:
        driver.close(driver.export(memory, PROBE_BYTES, own))
    finally:
        driver.free(memory)
    if way == HANDLES:
        return
    driver.lists_processes = way == LISTED_KEYS
    notify = driver.make_notify()
    try:
        driver.export_notify(notify, own)
    finally:
        driver.destroy_notify(notify)


CHECKS = (
    TORCH,
    Check("NPU driver", facts_of_driver, is_needed=False, is_hardware=True),
    Check("CANN", _cann),
    Check("torch_npu", _torch_npu),
    Check("NPUs", _npus, is_hardware=True),
)
