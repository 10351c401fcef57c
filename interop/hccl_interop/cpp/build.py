"""The build of a project: two shared objects, and the recorder, in a cache keyed by contents.

A file is compiled again if and only if it, a file that it includes, our own headers, the flags or
the compiler have changed, or the project has got or lost a header. Objects have paths relative to
the folder, so a copy of a project shares them. Files are written under temporary names and moved
when they are complete: concurrent builds do not disturb each other.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from hccl_interop.cpp.project import CppProject
from hccl_py.errors import NotSupportedError, ParameterError
from hccl_py.importers import SourceError

_HERE = Path(__file__).parent
INCLUDE, RECORDER = _HERE / "include", _HERE / "recorder"

_LANGUAGE = ("-std=c++17", "-fno-omit-frame-pointer", "-pthread")
_AUTHORS = ("-O0", "-g1", "-gdwarf-4", "-fPIC", "-w", *_LANGUAGE)
_OURS = ("-O0", *_LANGUAGE)

_DEFINES = {"host": ("-DHOST_COMPILE",), "device": ()}
"""Macros that the builds of HCCL's examples define."""

_COMMON = """\
#include "acl/acl_rt.h"
#include "hccl/hccl.h"
#include "hccl/hccl_diag.h"
#include "hccl/hccl_rank_graph.h"
#include "hccl/hccl_res_expt.h"
#include "hcomm_primitives.h"
"""
"""Headers that nearly every file of an op includes, compiled once."""

_COMMON_OF_CCU = """\
#include "ccu/ccu_kernel_side.hpp"
#include "ccu/ccu_launch.h"
#include "ccu/ccu_res.h"
#include "hccl/hccl_ccu_res.h"
"""
"""Further ones of an op whose kernels are the CCU's."""

_KEPT = 600
"""Files of projects that the cache keeps; the least recently used go first."""

_KEPT_OF_OURS = 4
"""Recorders, and precompiled headers, that it keeps: each compiler and release has its own."""

_GIVEN_UP = 3600
"""Seconds after which a folder of an unfinished build is abandoned."""


class CompilerError(SourceError):
    """The compiler refuses the code; `output` has its messages."""


@dataclass(frozen=True)
class Built:
    """The recorder, and an op's host code and kernels as shared objects."""

    recorder: Path
    host: Path
    device: Path


def cores() -> int:
    """Return the number of usable cores."""
    return len(os.sched_getaffinity(0))


def default_cache(environment: Mapping[str, str]) -> Path:
    """Return the user's cache folder."""
    home = environment.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home).absolute() / "hccl-py" / "cpp"


@dataclass(frozen=True)
class Builder:
    """A compiler and a cache; `compiled` lists the sources that the cache did not have."""

    compiler: tuple[str, ...]
    cache: Path
    compiled: list[str] = field(default_factory=list)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Builder:
        """Return the builder with $CXX or g++, and the user's cache folder.

        Raises NotSupportedError where there is no such compiler.
        """
        environment = os.environ if environment is None else environment
        try:
            command = tuple(shlex.split(environment.get("CXX") or "g++"))
        except ValueError as error:
            raise ParameterError(f"CXX is no command: {error}.", "Let it be g++.") from None
        if command and os.sep in command[0]:  # it runs in other folders
            command = (os.path.abspath(command[0]), *command[1:])
        if not command or shutil.which(command[0], path=environment.get("PATH")) is None:
            raise NotSupportedError(
                f"There is no C++ compiler: {' '.join(command)} is not on the path.",
                "Install g++ (Debian, Ubuntu: apt install g++), or set CXX.",
            )
        return cls(command, default_cache(environment))

    def build(self, project: CppProject) -> Built:
        """Return recorder and shared objects; CompilerError where the compiler refuses a source."""
        self._open_cache()
        headers = _names_of_headers(project)
        parts = _parts(project)
        jobs = [(part, source) for part, names in parts.items() for source in names]
        with ThreadPoolExecutor(max_workers=cores()) as pool:
            recorder = pool.submit(self._recorder)
            common = self._common(project.engine)  # all files need it
            made = pool.map(
                lambda job: self._object(job[0], job[1], project, headers, common), jobs
            )
            objects = list(zip(jobs, list(made), strict=True))
            ours = recorder.result()  # fails first where $CXX is no compiler
            _raise_refused(project, [found for _, found in objects if isinstance(found, _Refused)])
            linked = [
                self._linked([found for job, found in objects if job[0] == part], part)
                for part in parts
            ]
            built = Built(ours, linked[0], linked[-1])
        self._prune()
        return built

    def _open_cache(self) -> None:
        """Make the cache's folder; ParameterError where it is not writable."""
        try:
            self.cache.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.cache):
                pass
        except OSError as error:
            raise ParameterError(
                f"Nothing can be kept in {self.cache}: {error.strerror}.",
                "XDG_CACHE_HOME may name another folder for caches.",
            ) from None

    def _compile(
        self, arguments: Sequence[str], cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the compiler; code in its messages may be in any encoding."""
        try:
            return subprocess.run(
                [*self.compiler, *arguments],
                cwd=cwd,
                capture_output=True,
                encoding="utf-8",
                errors="backslashreplace",
                check=False,
            )
        except OSError as error:
            raise NotSupportedError(
                f"{self.compiler[0]} cannot be run: {error.strerror}.", "Set CXX to g++."
            ) from None

    @cached_property
    def _identity(self) -> str:
        """The command and version of the compiler."""
        return repr(self.compiler) + self._compile(["--version"]).stdout

    def _common(self, engine: str) -> tuple[str, str]:
        """Return a folder with the precompiled header of an engine's ops, and its key."""
        text = _COMMON + (_COMMON_OF_CCU if engine == "ccu" else "")
        key = _key(self._identity, _AUTHORS, text, *_contents(INCLUDE.rglob("*.h*")))
        folder = self.cache / f"common-{key}"

        def make(place: Path) -> list[str]:
            place.mkdir()
            (place / "common.h").write_text(text, "utf-8")
            header = str(place / "common.h")
            return [*_AUTHORS, *_our_includes(), "-x", "c++-header", header, "-o", f"{header}.gch"]

        if not _is_there(folder):
            self._ours(folder, make, "the precompiled header")
        return str(folder), key

    def _recorder(self) -> Path:
        sources = [*INCLUDE.rglob("*.h*"), *RECORDER.glob("*.?pp")]
        path = self.cache / f"recorder-{_key(self._identity, _OURS, *_contents(sources))}"
        if not _is_there(path):
            source = str(RECORDER / "recorder.cpp")
            command = [*_OURS, *_our_includes(), source, "-rdynamic", "-ldl", "-o"]
            self._ours(path, lambda place: [*command, str(place)], "the recorder")
        return path

    def _object(
        self,
        part: str,
        source: str,
        project: CppProject,
        headers: Sequence[str],
        precompiled: tuple[str, str],
    ) -> Path | _Refused:
        folder, common = precompiled
        flags = [*_AUTHORS, *_DEFINES[part], *(f"-D{define}" for define in project.defines)]
        flags += [f"-I{part}" for part in project.include]
        try:
            text = (project.folder / source).read_bytes()
        except OSError as error:
            return _Refused(source, f"{source}: {error.strerror}\n")
        key = _key(common, flags, source, headers, text)
        path = self._known(key, self._included(key), project)
        if path is not None and _is_there(path):
            return path
        flags += [f"-ffile-prefix-map={project.folder}=.", "-include", f"{folder}/common.h"]
        flags += _our_includes()
        self.compiled.append(source)
        with tempfile.TemporaryDirectory(dir=self.cache, prefix="new-") as new:
            place, included = Path(new) / "object.o", Path(new) / "included.d"
            flags += ["-MMD", "-MF", str(included), "-c", source, "-o", str(place)]
            done = self._compile(flags, project.folder)
            if done.returncode or not place.exists():
                return _Refused(source, done.stderr)
            path = self._known(key, included, project)
            if path is None:
                return _Refused(source, f"{source}: a file that it includes has gone meanwhile\n")
            _move(included, self._included(key))
            _move(place, path)
        return path

    def _included(self, key: str) -> Path:
        """Return the path of the compiler's list of included files of a source."""
        return self.cache / f"{key}.d"

    def _known(self, key: str, included: Path, project: CppProject) -> Path | None:
        """Return the object of a source, keyed by the present contents of the listed files; None
        where one is missing.
        """
        ours = (f"{INCLUDE}{os.sep}", f"{self.cache}{os.sep}")
        try:
            listed = _listed(included.read_text("utf-8", "surrogateescape"))
            files = [project.folder / name for name in listed if not name.startswith(ours)]
            return self.cache / f"{_key(key, *(file.read_bytes() for file in files))}.o"
        except OSError:
            return None

    def _linked(self, objects: Sequence[object], part: str) -> Path:
        names = [str(path) for path in objects]
        key = _key(self._identity, *map(os.path.basename, names))
        path = self.cache / f"{part}-{key}.so"
        if not _is_there(path):
            command = ["-shared", *names, "-Wl,-z,lazy", "-o"]
            done = self._run(path, lambda place: [*command, str(place)], self.cache)
            if done.returncode:
                raise CompilerError(f"The {part} part cannot be linked.", _HINT, done.stderr)
        return path

    def _ours(self, path: Path, command: Callable[[Path], list[str]], what: str) -> None:
        """Compile a file of hccl-py; CompilerError blames the compiler where that fails."""
        self.compiled.append(what)
        done = self._run(path, command, self.cache)
        if done.returncode:
            raise CompilerError(
                f"{' '.join(self.compiler)} cannot compile {what}.",
                "Use g++ 8 or newer, or set CXX to one.",
                done.stderr,
            )

    def _run(
        self, path: Path, command: Callable[[Path], list[str]], cwd: Path
    ) -> subprocess.CompletedProcess[str]:
        """Make a file or folder under a temporary name, and move it once it is complete."""
        with tempfile.TemporaryDirectory(dir=self.cache, prefix="new-") as new:
            place = Path(new) / path.name
            arguments = command(place)
            done = self._compile(arguments, cwd)
            if done.returncode == 0 and not place.exists():
                done.returncode = 1  # no compiler at all
            if done.returncode == 0:
                _move(place, path)
        return done

    def _prune(self) -> None:
        """Remove the least recently used entries, and folders of builds that were killed."""
        entries = list(self.cache.iterdir())
        _forget((path for path in entries if path.suffix in (".o", ".so", ".d")), _KEPT, _KEPT // 2)
        for ours in ("recorder-", "common-"):
            _forget((path for path in entries if path.name.startswith(ours)), _KEPT_OF_OURS)
        begun = [path for path in entries if path.name.startswith("new-")]
        _forget((path for path in begun if time.time() - _used(path) > _GIVEN_UP), 0)


def _used(path: Path) -> float:
    """Return the time of an entry's last use; 0 for one that is gone."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0


def _forget(entries: Iterable[Path], most: int, kept: int | None = None) -> None:
    """Remove the least recently used of more than `most` entries until `kept`, by default `most`,
    stay.
    """
    found = sorted(entries, key=_used, reverse=True)
    if len(found) <= most:
        return
    for path in found[most if kept is None else kept :]:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _move(place: Path, path: Path) -> None:
    """Move a complete file, unless another build has done so meanwhile."""
    try:
        os.replace(place, path)
    except OSError:
        if not path.exists():
            raise


def _parts(project: CppProject) -> dict[str, tuple[str, ...]]:
    """Return the sources of each shared object: kernels of the CCU are host code, too."""
    if project.engine == "ccu":
        return {"host": tuple(sorted({*project.host, *project.device}))}
    return {"host": project.host, "device": project.device}


_HINT = "The compiler's messages stand above."


@dataclass(frozen=True)
class _Refused:
    """A source that the compiler refuses, with its messages."""

    source: str
    output: str


def _raise_refused(project: CppProject, refused: Sequence[_Refused]) -> None:
    if not refused:
        return
    names = ", ".join(os.path.join(project.name, one.source) for one in refused)
    total = sum(map(len, _parts(project).values()))
    raise CompilerError(
        f"{len(refused)} of {total} files cannot be compiled: {names}.",
        _HINT,
        "".join(one.output for one in refused),
    )


def _our_includes() -> list[str]:
    return [f"-I{INCLUDE}", *(f"-I{INCLUDE / part}" for part in ("hccl", "hcomm", "ccu"))]


def _is_there(path: Path) -> bool:
    """True if the cache has an entry, which counts as used."""
    try:
        os.utime(path)
    except OSError:
        return False
    return True


def _listed(rule: str) -> list[str]:
    """Return the files that a rule of make depends on, without the first, which is the source."""
    names = re.split(r"(?<!\\)\s+", rule.replace("\\\n", " ").partition(": ")[2].strip())
    return [re.sub(r"\\([ #])", r"\1", name).replace("$$", "$") for name in names[1:] if name]


def _names_of_headers(project: CppProject) -> list[str]:
    """Return the project's headers: a new one may hide another of its name."""
    names = set[str]()
    for part in project.include:
        folder = project.folder / part
        found = folder.glob("*") if part == "." else folder.rglob("*")
        names |= {f"{part}/{path.relative_to(folder)}" for path in found if path.suffix in _HEADERS}
    return sorted(names)


_HEADERS = (".h", ".hh", ".hpp", ".hxx", ".inc", ".inl")


def _contents(paths: Iterable[Path]) -> list[bytes]:
    return [path.name.encode() + b"\0" + path.read_bytes() for path in sorted(paths)]


def _key(*parts: object) -> str:
    found = hashlib.sha256(__file__.encode())  # objects name the headers beside this by path
    for part in parts:
        data = part if isinstance(part, bytes) else repr(part).encode()
        found.update(len(data).to_bytes(8, "little") + data)
    return found.hexdigest()[:24]
