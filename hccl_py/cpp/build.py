"""From a project to two shared objects, and the recorder, all kept in a cache by their contents.

A file is compiled again when it, a header of the project, our own headers, the flags or the
compiler have changed, and never otherwise. Objects carry paths relative to the folder, so a copy of
a project shares them. Files are written under other names and moved when they are whole: builds
that run at the same time do not see each other.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from hccl_py.cpp.project import CppProject
from hccl_py.errors import NotSupportedError, ParameterError

__all__ = ["BuildError", "Builder", "Built", "cores"]

_HERE = Path(__file__).parent
INCLUDE, RECORDER = _HERE / "include", _HERE / "recorder"

_LANGUAGE = ("-std=c++17", "-fno-omit-frame-pointer", "-pthread")
_AUTHORS = ("-O0", "-g1", "-gdwarf-4", "-fPIC", "-w", *_LANGUAGE)
_OURS = ("-O1", "-g1", *_LANGUAGE)

_DEFINES = {"host": ("-DHOST_COMPILE",), "device": ()}
"""What the builds of HCCL's examples define."""

_COMMON = """\
#include "acl/acl_rt.h"
#include "hccl/hccl.h"
#include "hccl/hccl_diag.h"
#include "hccl/hccl_rank_graph.h"
#include "hccl/hccl_res_expt.h"
#include "hcomm_primitives.h"
"""
"""What nearly every file of an op includes, compiled once."""

_KEPT = 400
"""Files that the cache keeps; the least recently used go first."""


class BuildError(ParameterError):
    """The compiler refuses the code; `output` is what it says."""

    def __init__(self, message: str, hint: str, output: str) -> None:
        super().__init__(message, hint)
        self.output = output


@dataclass(frozen=True)
class Built:
    """The recorder, and an op's host code and kernels as shared objects."""

    recorder: Path
    host: Path
    device: Path


def cores() -> int:
    """Return how many processes can run at once."""
    return len(os.sched_getaffinity(0))


def default_cache(environment: Mapping[str, str]) -> Path:
    """Return the user's cache folder."""
    home = environment.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home) / "hccl-py" / "cpp"


@dataclass(frozen=True)
class Builder:
    """A compiler and a cache. `compiled` lists what was compiled and not taken from the cache."""

    compiler: tuple[str, ...]
    cache: Path
    compiled: list[str] = field(default_factory=list)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Builder:
        """Return the user's: $CXX or g++, and the cache folder of the user.

        Raises NotSupportedError where there is no such compiler.
        """
        environment = os.environ if environment is None else environment
        command = tuple(shlex.split(environment.get("CXX") or "g++"))
        if not command or shutil.which(command[0], path=environment.get("PATH")) is None:
            raise NotSupportedError(
                f"There is no C++ compiler: {' '.join(command)} is not on the path.",
                "Install g++ (Debian, Ubuntu: apt install g++), or set CXX.",
            )
        return cls(command, default_cache(environment))

    def build(self, project: CppProject) -> Built:
        """Return what a project is recorded with; BuildError where the compiler refuses it."""
        self.cache.mkdir(parents=True, exist_ok=True)
        headers = _digest_of_headers(project)
        sources = {part: getattr(project, part) for part in ("host", "device")}
        jobs = [(part, source) for part, names in sources.items() for source in names]
        with ThreadPoolExecutor(max_workers=cores()) as pool:
            recorder = pool.submit(self._recorder)
            _ = self._common  # all files need it
            made = pool.map(lambda job: self._object(project, job[0], job[1], headers), jobs)
            objects = list(zip(jobs, list(made), strict=True))
            _raise_refused(project, [found for _, found in objects if isinstance(found, _Refused)])
            linked = [
                self._linked([found for job, found in objects if job[0] == part], part)
                for part in ("host", "device")
            ]
            built = Built(recorder.result(), *linked)
        self._prune()
        return built

    @cached_property
    def _identity(self) -> str:
        """What distinguishes compilers."""
        done = subprocess.run(
            [*self.compiler, "--version"], capture_output=True, text=True, check=False
        )
        return repr(self.compiler) + done.stdout

    @cached_property
    def _common(self) -> tuple[str, str]:
        """A folder with the precompiled header, and the key of all that is in it."""
        key = _key(self._identity, _AUTHORS, _COMMON, *_contents(INCLUDE.rglob("*.h")))
        folder = self.cache / f"common-{key}"

        def make(place: Path) -> list[str]:
            place.mkdir()
            (place / "common.h").write_text(_COMMON, "utf-8")
            header = str(place / "common.h")
            return [*_AUTHORS, *_our_includes(), "-x", "c++-header", header, "-o", f"{header}.gch"]

        if not folder.is_dir():
            self._ours(folder, make, "the precompiled header")
        return str(folder), key

    def _recorder(self) -> Path:
        key = _key(
            self._identity, _OURS, *_contents([*INCLUDE.rglob("*.h"), *RECORDER.glob("*.?pp")])
        )
        path = self.cache / f"recorder-{key}"
        if not path.exists():
            source = str(RECORDER / "recorder.cpp")
            self._ours(
                path,
                lambda place: [
                    *_OURS,
                    *_our_includes(),
                    source,
                    "-rdynamic",
                    "-ldl",
                    "-o",
                    str(place),
                ],
                "the recorder",
            )
        return path

    def _object(self, project: CppProject, part: str, source: str, headers: str) -> Path | _Refused:
        folder, common = self._common
        flags = [*_AUTHORS, *_DEFINES[part], *(f"-D{define}" for define in project.defines)]
        flags += [f"-I{part}" for part in project.include]
        text = (project.folder / source).read_bytes()
        path = self.cache / f"{_key(common, flags, source, headers, text)}.o"
        if path.exists():
            os.utime(path)
            return path
        flags += [f"-ffile-prefix-map={project.folder}=.", "-include", f"{folder}/common.h"]
        flags += _our_includes()
        self.compiled.append(source)
        done = self._run(
            path, lambda place: [*flags, "-c", source, "-o", str(place)], project.folder
        )
        return path if done.returncode == 0 else _Refused(source, done.stderr)

    def _linked(self, objects: Sequence[object], part: str) -> Path:
        names = [str(path) for path in objects]
        path = (
            self.cache / f"{part}-{_key(self._identity, *(os.path.basename(n) for n in names))}.so"
        )
        if not path.exists():
            done = self._run(
                path, lambda place: ["-shared", *names, "-Wl,-z,lazy", "-o", str(place)], self.cache
            )
            if done.returncode:
                raise BuildError(f"The {part} part cannot be linked.", _HINT, done.stderr)
        os.utime(path)
        return path

    def _ours(self, path: Path, command: Callable[[Path], list[str]], what: str) -> None:
        """Compile what is ours: where that fails, the compiler is not one that we know."""
        self.compiled.append(what)
        done = self._run(path, command, self.cache)
        if done.returncode:
            raise BuildError(
                f"{' '.join(self.compiler)} cannot compile {what}.",
                "Use g++ 8 or newer, or set CXX to one.",
                done.stderr,
            )

    def _run(
        self, path: Path, command: Callable[[Path], list[str]], cwd: Path
    ) -> subprocess.CompletedProcess[str]:
        """Make a file or folder beside its place, and move it there once it is whole."""
        with tempfile.TemporaryDirectory(dir=self.cache, prefix="new-") as new:
            place = Path(new) / path.name
            arguments = command(place)
            done = subprocess.run(
                [*self.compiler, *arguments], cwd=cwd, capture_output=True, text=True, check=False
            )
            if done.returncode == 0:
                _move(place, path)
        return done

    def _prune(self) -> None:
        """Forget what has not been used for longest."""
        files = [path for path in self.cache.iterdir() if path.suffix in (".o", ".so")]
        if len(files) > _KEPT:
            files.sort(key=lambda path: path.stat().st_mtime)
            for path in files[: len(files) - _KEPT // 2]:
                path.unlink(missing_ok=True)


def _move(place: Path, path: Path) -> None:
    """Put what is whole where it belongs, unless another build has done so meanwhile."""
    try:
        os.replace(place, path)
    except OSError:
        if not path.exists():
            raise


_HINT = "What the compiler says stands above."


@dataclass(frozen=True)
class _Refused:
    """A source that the compiler does not take."""

    source: str
    output: str


def _raise_refused(project: CppProject, refused: Sequence[_Refused]) -> None:
    if not refused:
        return
    names = ", ".join(os.path.join(project.name, one.source) for one in refused)
    total = len(project.host) + len(project.device)
    raise BuildError(
        f"{len(refused)} of {total} files cannot be compiled: {names}.",
        _HINT,
        "".join(one.output for one in refused),
    )


def _our_includes() -> list[str]:
    return [f"-I{INCLUDE}", f"-I{INCLUDE / 'hccl'}", f"-I{INCLUDE / 'hcomm'}"]


def _digest_of_headers(project: CppProject) -> str:
    """Return a hash of all that the project's sources may include of it."""
    paths = set[Path]()
    for part in project.include:
        folder = project.folder / part
        found = folder.glob("*") if part == "." else folder.rglob("*")
        paths |= {path for path in found if path.suffix in _HEADERS and path.is_file()}
    return _key(*_contents(paths))


_HEADERS = (".h", ".hh", ".hpp", ".hxx", ".inc", ".inl")


def _contents(paths: Iterable[Path]) -> list[bytes]:
    return [path.name.encode() + b"\0" + path.read_bytes() for path in sorted(paths)]


def _key(*parts: object) -> str:
    found = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else repr(part).encode()
        found.update(len(data).to_bytes(8, "little") + data)
    return found.hexdigest()[:24]
