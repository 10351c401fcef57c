"""Builds the fake libascendcl.so (tests/platform/npu/fake/) once, and sets processes up to use it.

    from tests.platform.npu.runtime import Machine, library

    with Machine(devices=4) as machine:  # skips the test where there is no g++
        subprocess.run([...], env={**os.environ, **machine.environment(SEED=3, DELAY_US=200)})

fake/knobs.hpp lists what can be set. Built libraries lie in the user's cache folder, one for each
state of the sources and of the compiler; workers that need the same one at once wait for the first.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType

import pytest

from tests.platform.npu.remote import Npu

SOURCES = Path(__file__).parent / "fake"
DEMANDED = "HCCL_PY_DEMAND_FAKE_NPU"  # a missing compiler fails tests
FLAGS = ("-O1", "-std=c++17", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra")

# torch_npu links against these too, and needs nothing out of them.
EMPTY = ("libhccl", "libge_runner", "libgraph", "libacl_tdt_channel")


def library() -> Path:
    """The folder with libascendcl.so, for LD_LIBRARY_PATH."""
    compiler = shutil.which("g++")
    if compiler is None:
        missing("no g++ to build the fake Ascend runtime with", DEMANDED)
    assert compiler is not None
    return built(compiler)


def missing(why: str, demanded: str) -> None:
    """Skip the test, or fail it where a variable of the environment demands it."""
    if os.environ.get(demanded):
        pytest.fail(why)
    pytest.skip(why)


def built(compiler: str) -> Path:
    folder = cache() / state(compiler)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=folder.parent) as unfinished:
                compile_into(Path(unfinished), compiler)
                Path(unfinished).rename(folder)
                Path(unfinished).mkdir()  # for TemporaryDirectory to remove
    return folder


def compile_into(folder: Path, compiler: str) -> None:
    """Compile all sources as one: what each includes is most of the work, and is read once."""
    whole = "".join(f'#include "{path}"\n' for path in sorted(SOURCES.glob("*.cpp")))
    target = ("-o", str(folder / "libascendcl.so"), "-lpthread")
    command = [compiler, *FLAGS, "-x", "c++", "-", *target]
    run = subprocess.run(command, input=whole, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    for name in EMPTY:
        empty = [
            compiler,
            "-shared",
            "-fPIC",
            "-x",
            "c++",
            "/dev/null",
            "-o",
            f"{folder}/{name}.so",
        ]
        subprocess.run(empty, check=True)
    (folder / "libacl_op_compiler.so").symlink_to("libascendcl.so")  # looked up for its operators


def cache() -> Path:
    """Where built libraries lie: never inside the tree."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "hccl-py-tests" / "fake-npu"


def state(compiler: str) -> str:
    """A name for the sources, this file's flags, and the compiler."""
    digest = hashlib.sha256(repr((FLAGS, EMPTY)).encode())
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True)
    digest.update(version.stdout)
    for path in sorted(SOURCES.iterdir()):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


class Machine:
    """A server of so many NPUs: what its processes share goes with the last of them."""

    def __init__(self, devices: int = 8) -> None:
        self.devices = devices
        self.folder = library()
        self.shared = os.memfd_create("fakeacl-machine")

    def __enter__(self) -> "Machine":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self.shared)

    def process(self, device: int | None = 0, **knobs: object) -> Npu:
        """A process that does what the test asks of it."""
        return Npu(self.environment(**knobs), device)

    def environment(self, **knobs: object) -> dict[str, str]:
        """The variables for a child process; knobs without their prefix."""
        path = [str(self.folder), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        return {
            "LD_LIBRARY_PATH": os.pathsep.join(path),
            "FAKEACL_DEVICES": str(self.devices),
            "FAKEACL_MACHINE": f"/proc/{os.getpid()}/fd/{self.shared}",
            **{f"FAKEACL_{name}": str(value) for name, value in knobs.items()},
        }
