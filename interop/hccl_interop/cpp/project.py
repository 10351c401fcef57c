"""A folder with a custom operator in C++: its sources, headers and entry points.

The layout is that of HCCL's examples:

    include/ or inc/        headers of both parts
    op_host/*.cc            host code: acquires resources, launches the kernel
    op_kernel_aicpu/*.cc    kernels of the AI CPU: put tasks on threads
    op_kernel_ccu/*.cc      or kernels of the CCU: host code, too, which lists their instructions

`hccl-py.toml` in the folder overrides it; every key is optional:

    op = "all_reduce"               the op that the folder implements
    entry = "HcclAllReduceCustom"   the function that stands for it
    receiver = "HcclRecvCustom"     send_recv: the function of the other side
    kernel = "RunKernel"            the kernel, in place of the name in the host code
    engine = "ccu"                  the engine of the kernels: "aicpu" or "ccu"
    host = ["src/host/*.cc"]
    device = ["src/kernel/*.cc"]
    include = ["include", "src"]
    defines = ["SMALL=1"]
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from pydantic import Field

from hccl_py.documents.checks import defect
from hccl_py.documents.disk import format_path, read_file
from hccl_py.documents.kind import FileKind, named
from hccl_py.documents.models import Strict, checked
from hccl_py.documents.parse import decoded
from hccl_py.errors import FileError, NotSupportedError, ParameterError

SETTINGS = "hccl-py.toml"

_HOST = "op_host"
_KERNELS = {"aicpu": "op_kernel_aicpu", "ccu": "op_kernel_ccu"}
"""The folder of the kernels, by their engine."""

_INCLUDE = ("include", "inc", _HOST, *_KERNELS.values(), ".")
_SUFFIXES = (".cc", ".cpp", ".cxx")
_TEXTS = (*_SUFFIXES, ".h", ".hpp", ".asc")
_MOST_BYTES = 1 << 16

_TOML = FileKind(
    noun="project",
    parts="keys",
    larger=f"{SETTINGS} has a few lines.",
    text="Save the file as UTF-8.",
    depth="Keys are texts and lists of texts.",
    digits="No key is a number.",
)


class _Settings(Strict):
    """The keys of `hccl-py.toml`."""

    op: str | None = None
    entry: str | None = None
    receiver: str | None = None
    kernel: str | None = None
    engine: Literal["aicpu", "ccu"] | None = None
    host: list[str] | None = None
    device: list[str] | None = None
    include: list[str] | None = None
    defines: list[str] = Field(default_factory=list)


@dataclass(frozen=True)
class CppProject:
    """A folder, the sources of its two parts and its include folders, all relative to it.

    `name` is the folder as the user writes it: it stands before every source line.
    """

    folder: Path
    name: str
    host: tuple[str, ...]
    device: tuple[str, ...]
    include: tuple[str, ...]
    defines: tuple[str, ...] = ()
    op: str | None = None
    entry: str | None = None
    receiver: str | None = None
    kernel: str | None = None
    engine: str = "aicpu"

    @property
    def title(self) -> str:
        """The folder's own name."""
        return self.folder.name


def find_project(name: str) -> CppProject:
    """Return the project in a folder.

    Raises ParameterError where there is no folder, where a part has no sources, and where
    `hccl-py.toml` has an unknown key or names missing files.
    """
    if not os.path.isdir(name):
        shown = f"'{format_path(name):.200}'"
        is_there = os.path.lexists(name)
        raise ParameterError(
            f"{shown} is no folder." if is_there else f"There is no folder {shown}.",
            "Name the folder of a custom op.",
        )
    folder = Path(name).resolve()
    settings = _settings(folder, name)
    _refuse_unprintable(settings, name)
    include = _INCLUDE if settings.include is None else tuple(settings.include)
    engine = _engine(folder, name, settings)
    return CppProject(
        folder=folder,
        name=name.rstrip("/") or name,
        host=_sources(folder, name, "host", settings.host, _HOST),
        device=_sources(folder, name, "device", settings.device, _KERNELS[engine]),
        include=tuple(part for part in include if (folder / part).is_dir()),
        defines=tuple(settings.defines),
        op=settings.op,
        entry=settings.entry,
        receiver=settings.receiver,
        kernel=settings.kernel,
        engine=engine,
    )


def _engine(folder: Path, name: str, settings: _Settings) -> str:
    """Return the engine whose kernels the folder has; ParameterError where there are two."""
    found = [engine for engine, part in _KERNELS.items() if (folder / part).is_dir()]
    if settings.engine is not None or len(found) < 2:
        return settings.engine or (found[0] if found else "aicpu")
    raise ParameterError(
        f"{format_path(name)} has kernels of two engines: {' and '.join(_KERNELS.values())}.",
        f'Name one in {SETTINGS}: engine = "ccu".',
    )


def _settings(folder: Path, name: str) -> _Settings:
    path = folder / SETTINGS
    if not os.path.lexists(path):
        return _Settings()
    shown = os.path.join(name, SETTINGS)
    data = read_file(path, _MOST_BYTES, _TOML)
    return named(format_path(shown), _TOML, lambda: checked(_Settings, _parsed(data)))


def _parsed(data: bytes) -> object:
    try:
        import tomllib as toml  # type: ignore[import-not-found, unused-ignore]
    except ImportError:  # Python 3.10
        try:
            import tomli as toml  # type: ignore[import-not-found, no-redef, unused-ignore]
        except ImportError:
            raise NotSupportedError(
                f"{SETTINGS} needs tomli on Python 3.10.", "pip install tomli."
            ) from None
    text = decoded(data, _TOML)
    try:
        return toml.loads(text)
    except toml.TOMLDecodeError as error:
        message = f"the text is not TOML ({error})."
        raise FileError(message, "Write keys as in docs/cpp.md.") from None


def _sources(
    folder: Path, name: str, key: str, patterns: list[str] | None, default: str
) -> tuple[str, ...]:
    """Return the sources of a part, sorted; ParameterError where there are none."""
    if patterns is None:
        found = [path for suffix in _SUFFIXES for path in (folder / default).glob(f"*{suffix}")]
        found = [path for path in found if not path.is_dir()]
        if not found:
            raise ParameterError(
                f"{format_path(name)} has no sources in {default}/.",
                _with_sources(folder, name, default)
                or kind_of_folder(folder)
                or "A custom op has op_host/*.cc and op_kernel_aicpu/*.cc or op_kernel_ccu/*.cc; "
                f"{SETTINGS} may name other places (docs/cpp.md).",
            )
        return tuple(sorted(path.relative_to(folder).as_posix() for path in found))
    if not patterns:
        raise _wrong(name, key, "a list of files", "an empty one", "Name the sources.")
    named = (_named(folder, name, key, index, text) for index, text in enumerate(patterns))
    return tuple(sorted({path for found in named for path in found}))


def _with_sources(folder: Path, name: str, part: str) -> str:
    """Return a hint that names the first folder inside that has this part, or none."""
    inside = sorted(path.parent.name for path in folder.glob(f"*/{part}") if path.is_dir())
    return (
        f"Name the folder inside: {format_path(os.path.join(name, inside[0]))}." if inside else ""
    )


def _named(folder: Path, name: str, key: str, index: int, pattern: str) -> list[str]:
    """Return the files that a pattern of `hccl-py.toml` names."""
    try:
        found = [path for path in folder.glob(pattern) if path.is_file()]
    except (ValueError, NotImplementedError):
        found = []
    if not found:
        where, hint = f"{key}[{index}]", "Paths are relative to it."
        raise _wrong(name, where, "files of the folder", repr(pattern), hint)
    return [path.relative_to(folder).as_posix() for path in found]


def _refuse_unprintable(settings: _Settings, name: str) -> None:
    """Raise ParameterError for unprintable texts: the recorder reads them line by line."""
    for key, value in settings:
        texts = {key: value} if isinstance(value, str) else {}
        if isinstance(value, list):
            texts = {f"{key}[{index}]": text for index, text in enumerate(value)}
        for where, text in texts.items():
            if not text.strip() or not text.isprintable():
                raise _wrong(name, where, "a name", repr(text), "Write printable characters.")


def _wrong(name: str, key: str, expected: str, found: str, hint: str) -> ParameterError:
    """Return the error for a key of `hccl-py.toml`."""
    error = defect(key, expected, found, hint)
    place = format_path(os.path.join(name, SETTINGS))
    return ParameterError(f"{place}: {error.message}", error.hint)


_MOST_FILES = 200

_KINDS = (
    (
        r'#include\s*[<"]kernel_operator\.h[>"]',
        "It has kernels for the vector cores (AIV), which are not recorded.",
    ),
    (
        r"\bint\s+main\s*\(.*\bHccl\w+\s*\(",
        "It is a program that calls HCCL, and no op: `hccl-py run` makes such calls.",
    ),
)


def kind_of_folder(folder: Path) -> str:
    """Return a sentence that says what a folder without op_host is; "" where that is not clear."""
    if (folder / "src" / "ops" / "op_common").is_dir():
        return (
            "It is HCCL's own source: its ops are no projects of their own. Name a folder of "
            "examples, such as examples/05_custom_ops_allgather/aicpu."
        )
    texts = list(_texts(folder))
    for pattern, sentence in _KINDS:
        if any(re.search(pattern, text, re.DOTALL) for text in texts):
            return sentence
    return ""


def _texts(folder: Path) -> Iterator[str]:
    """Yield the begins of sources, of so many that a large folder does not take long."""
    found = (path for path in folder.rglob("*") if path.suffix in _TEXTS and path.is_file())
    for path in islice(found, _MOST_FILES):
        with open(path, "rb") as file:
            yield file.read(_MOST_BYTES).decode("utf-8", errors="replace")
