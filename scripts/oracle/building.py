"""Drivers: HCCL's own algorithm code, compiled over the stubs of its own system tests.

Sources are unpacked from git folders into a work folder, which also gets a stand-in for the CANN
package (links to test headers of HCCL, and to the system's libraries). None of HCCL's files is
changed, and none is kept here: the CMake files beside say what is done instead.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from io import BytesIO
from pathlib import Path

HERE = Path(__file__).resolve().parent

_HCOMM = ("include", "pkg_inc", "src", "test", "external_depends", "externel_depends", "cmake")
_HCCL = ("include", "src", "test/st", "cmake", "CMakeLists.txt", "version.cmake")
_TOOLS = ("git", "cmake", "ninja", "g++", "gcc", "protoc")


def build_leg(hcomm: Path, work: Path, commit: str) -> Path:
    """Build the driver of the classic algorithms (910A, A2, A3, 310P) from hcomm's git folder."""
    source = unpack(hcomm, commit, work / "hcomm", (*_HCOMM, "CMakeLists.txt"))
    names = {"LEG_SRC": source, "LEG_SHIM": stand_in(source, work / "shim")}
    return _compiled("leg", work / "build-leg", names)


def build_pub(hccl: Path, hcomm: Path, work: Path, commit: str) -> Path:
    """Build the driver of the Ascend 950's algorithms from hccl's git folder, with hcomm's
    headers.
    """
    headers = unpack(hcomm, "HEAD", work / "hcomm", (*_HCOMM, "CMakeLists.txt"))
    source = unpack(hccl, commit, work / "hccl", _HCCL)
    shim = stand_in(headers, work / "shim")
    names = {"PUB_SRC": source, "HCOMM_SRC": headers, "SHIM": shim}
    return _compiled("pub", work / "build-pub", names)


def unpack(git: Path, commit: str, to: Path, paths: tuple[str, ...]) -> Path:
    """Unpack these paths of a commit, as far as it has them, unless that is done; a file beside
    the folder names the commit.
    """
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        raise SystemExit(f"{', '.join(missing)}: not found. README.md lists the packages.")
    found = _git(git, "rev-parse", f"{commit}^{{commit}}").decode().strip()
    stamp = to.with_name(f"{to.name}.commit")
    if stamp.exists() and stamp.read_text() == found:
        return to
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    there = [path for path in paths if _has(git, found, path)]
    with tarfile.open(fileobj=BytesIO(_git(git, "archive", found, *there))) as archive:
        archive.extractall(to, filter="data")
    stamp.write_text(found)
    return to


def _has(git: Path, commit: str, path: str) -> bool:
    command = ["git", "--git-dir", str(git), "cat-file", "-e", f"{commit}:{path}"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _git(git: Path, *words: str) -> bytes:
    found = subprocess.run(["git", "--git-dir", git, *words], capture_output=True, check=False)
    if found.returncode:
        raise SystemExit(f"git {' '.join(words[:2])} in {git}: {found.stderr.decode().strip()}")
    return found.stdout


def stand_in(source: Path, shim: Path) -> Path:
    """Make the folder that stands for the CANN package and for third-party sources."""
    depends = source / "test" / "stub" / "depends"
    if not depends.is_dir():
        depends = source / "test" / "ut" / "depends"
    for folder in ("cann/lib64", "3rd/gtest", "3rd/json", "3rd/protobuf/bin"):
        (shim / folder).mkdir(parents=True, exist_ok=True)
    (shim / "3rd" / "mockcpp" / "include").mkdir(parents=True, exist_ok=True)
    links = {"cann/include": depends / "include", "cann/asc": depends / "include" / "asc"}
    links |= {"cann/pkg_inc": depends / "pkg_inc"}
    links |= {f"3rd/{name}/include": Path("/usr/include") for name in ("gtest", "json", "protobuf")}
    links["3rd/protobuf/bin/protoc"] = Path(str(shutil.which("protoc")))
    for name, target in links.items():
        link = shim / name
        link.unlink(missing_ok=True)
        link.symlink_to(target)
    library = shim / "cann" / "lib64" / "libc_sec.so"
    _run("gcc", "-shared", "-fPIC", "-O1", "-o", library, HERE / "libc_sec.c")
    return shim


def _compiled(name: str, folder: Path, variables: dict[str, Path]) -> Path:
    given = [f"-D{key}={value}" for key, value in variables.items()]
    given.append(f"-DUSE_CCACHE={'ON' if shutil.which('ccache') else 'OFF'}")
    _run("cmake", "-G", "Ninja", "-S", HERE / name, "-B", folder, *given)
    _run("ninja", "-C", folder, "-j", os.environ.get("JOBS", "2"), f"{name}_trace")
    return folder / f"{name}_trace"


def _run(*command: str | Path) -> None:
    if subprocess.run(command, check=False).returncode:
        raise SystemExit(f"{command[0]} failed: see its output above.")
