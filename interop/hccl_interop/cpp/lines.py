"""Return addresses as lines of the author's code: addr2line, once per shared object.

The innermost frame is the line of a task, its function the task's label; the frames above are its
callers.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hccl_interop.cpp.build import INCLUDE, Built
from hccl_interop.cpp.project import CppProject


@dataclass(frozen=True)
class Frame:
    """A function of the author, and a line in it as file:line."""

    function: str
    line: str

    def __str__(self) -> str:
        return f"{self.function} at {self.line}"


@dataclass(frozen=True)
class SourceLines:
    """The frames of every stack, innermost first."""

    stacks: Sequence[tuple[Frame, ...]]

    def line(self, stack: int) -> str | None:
        """Return the line of a stack's innermost frame."""
        frames = self.stacks[stack]
        return frames[0].line if frames else None

    def label(self, stack: int) -> str:
        """Return the function of a stack's innermost frame."""
        frames = self.stacks[stack]
        return frames[0].function if frames else ""

    def above(self, stack: int) -> str:
        """Return a sentence about the frames above; empty where there are none."""
        frames = self.stacks[stack][1:]
        return f"Called from {', '.join(map(str, frames))}." if frames else ""


def lines_of(stacks: Sequence[tuple[str, ...]], built: Built, project: CppProject) -> SourceLines:
    """Return the frames of stacks of addresses, those of the compiler's own headers left out;
    without addr2line there are none.
    """
    addresses = {frame for stack in stacks for frame in stack}
    known: dict[str, Frame] = {}
    for letter, library in (("h", built.host), ("d", built.device)):
        mine = sorted(frame for frame in addresses if frame[0] == letter)
        known |= _resolved(mine, library, project)
    return SourceLines([tuple(known[f] for f in stack if f in known) for stack in stacks])


def _resolved(frames: Sequence[str], library: Path, project: CppProject) -> Mapping[str, Frame]:
    tool = shutil.which("addr2line")
    if not frames or tool is None:
        return {}
    addresses = "\n".join(f"0x{frame[2:]}" for frame in frames)
    command = [tool, "-f", "-C", "-e", str(library)]
    done = subprocess.run(command, input=addresses, capture_output=True, text=True, check=False)
    lines = done.stdout.split("\n")
    pairs = zip(lines[::2], lines[1::2], strict=False)
    found = {
        frame: Frame(_function(function), _line(place, project))
        for frame, (function, place) in zip(frames, pairs, strict=False)
    }
    return {frame: where for frame, where in found.items() if not where.line.startswith(_FOREIGN)}


_FOREIGN = ("??", "/usr/", f"{INCLUDE}/")
"""Beginnings of lines that are unknown, of the compiler's headers, or of our own."""


def _line(place: str, project: CppProject) -> str:
    """Return a line with its file below the project's name."""
    file, _, number = place.partition(" (discriminator")[0].rpartition(":")
    return f"{os.path.normpath(os.path.join(project.name, file))}:{number}"


_BRACKETS = re.compile(r"<[^<>]*>|\([^()]*\)")
_AFTER = re.compile(r"(\[.*?\]|\s|\b(const|volatile)\b|&)+$")
"""Qualifiers behind a function's parameters."""


def _function(name: str) -> str:
    """Return a function's own name, without namespaces, templates and parameters."""
    plain = name.replace("(anonymous namespace)", "").replace("{lambda", "lambda{")
    while (shorter := _BRACKETS.sub("", plain)) != plain:
        plain = shorter
    words = _AFTER.sub("", plain).split("::")
    own = words[-1].strip().rpartition(" ")[2]
    if "lambda" in plain:
        return (
            f"lambda in {next((w for w in reversed(words[:-1]) if w and 'lambda' not in w), '?')}"
        )
    return own or name


def functions_of(library: Path) -> Iterable[str]:
    """Return the names of the functions that a shared object exports."""
    tool = shutil.which("nm")
    if tool is None:
        return ()
    command = [tool, "-D", "--defined-only", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    symbols = [line.split() for line in done.stdout.splitlines()]
    return tuple(words[-1] for words in symbols if len(words) >= 3 and words[-2] in "TW")
