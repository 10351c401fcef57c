"""Text of C++: templates, indentation, calls that are too long for one line, names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from string import Template
from textwrap import wrap

WIDTH = 120
"""Columns of a line."""

_INDENT = "    "

_TAKEN = ("hccl", "hcomm", "acl", "comm")
"""Beginnings of names of HCCL's API."""


class CppLines:
    """Text that grows by lines of one indentation."""

    def __init__(self, depth: int = 0) -> None:
        self._depth = depth
        self._lines: list[str] = []

    def __str__(self) -> str:
        return "".join(f"{line}\n" for line in self._lines)

    def deeper(self) -> CppLines:
        """Return an empty text, indented one step more."""
        return CppLines(self._depth + 1)

    def add(self, line: str = "") -> None:
        """Add a line."""
        self._lines.append(f"{_INDENT * self._depth}{line}".rstrip())

    def comment(self, text: str) -> None:
        """Add a comment; nothing for no text."""
        for line in wrap(text, WIDTH - len(_INDENT) * self._depth - 3):
            self.add(f"// {line}")

    def extend(self, other: CppLines) -> None:
        """Add all lines of another text, as they are."""
        self._lines += other._lines

    def drop_unused(self) -> None:
        """Leave out numbers whose names no later line has."""
        for at in range(len(self._lines) - 1, -1, -1):
            found = re.match(r"\s*const uint32_t (\w+) =", self._lines[at])
            if found and not re.search(rf"\b{found[1]}\b", "\n".join(self._lines[at + 1 :])):
                del self._lines[at]

    def set(self, name: str, value: str) -> None:
        """Add an assignment, on several lines where it is too long for one."""
        line = f"{name} = {value}"
        if len(_INDENT) * self._depth + len(line) <= WIDTH:
            self.add(line)
        else:
            self.add(f"{name} =")
            width = WIDTH - len(_INDENT) * (self._depth + 1)
            for line in wrap(value, width, break_long_words=False, break_on_hyphens=False):
                self.add(f"{_INDENT}{line}")

    def checked(self, call: str, arguments: Sequence[str]) -> None:
        """Add CHK_RET(call(arguments)), on several lines where it is long."""
        head = f"{_INDENT * self._depth}CHK_RET({call}("
        self._lines += listed(head, arguments, "));", len(head))


def listed(head: str, items: Iterable[str], end: str, indent: int) -> list[str]:
    """Return items behind a head, with commas, further lines `indent` columns in."""
    lines, line = [], head
    words = list(items)
    for number, item in enumerate(words):
        tail = end if number + 1 == len(words) else ","
        space = "" if number == 0 or line.endswith(" " * indent) else " "
        if number and len(line) + len(space) + len(item) + len(tail) > WIDTH:
            lines.append(line)
            line, space = " " * indent, ""
        line += f"{space}{item}{tail}"
    return [*lines, line if words else head + end]


def camel_case(label: str) -> str:
    """Return a label as a name in C++: reduce-scatter becomes ReduceScatter.

    Characters other than letters and digits of ASCII are left out. The name is none of HCCL's and
    no macro.
    """
    words = re.findall(r"[A-Za-z0-9]+", label)
    name = "".join(word[0].upper() + word[1:] for word in words)
    name = name.capitalize() if name.isupper() else name
    is_own = bool(name) and not name[0].isdigit() and not name.lower().startswith(_TAKEN)
    return name if is_own else f"Phase{name}"


def snake_case(name: str) -> str:
    """Return a name in small letters and underscores: AllReduceRing becomes all_reduce_ring."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", name)
    return "_".join(word.lower() for word in words)


def comment(text: str) -> str:
    """Return a user's text for a comment of one line: printable ASCII without backslashes, which
    would join it with the next line, and without trigraphs.
    """
    shown = "".join(c if " " <= c <= "~" and c != "\\" else "?" for c in text)
    return re.sub(r"\?(?=\?)", "? ", shown.replace("*/", "* /").replace("/*", "/ *"))


def filled(name: str, /, **fill: object) -> str:
    """Return a template with its names filled in."""
    template = files("hccl_interop.cpp.export").joinpath("templates", f"{name}.tmpl")
    return Template(template.read_text("utf-8")).substitute(fill)


def size_text(number: int) -> str:
    """Return a number of bytes in C++: whole megabytes with a shift."""
    megabytes, rest = divmod(number, 1 << 20)
    return f"{megabytes}ULL << 20" if megabytes and not rest else str(number)


def project_files(
    name: str, op: str, header: str, host: str, kernel: str, options: str
) -> dict[str, str]:
    """Return the files of a project, by path; its test runs `hccl-py check` with `options`."""
    return {
        "CMakeLists.txt": filled("CMakeLists.txt", target=name),
        "hccl-py.toml": filled("hccl-py.toml", op=op),
        "include/custom.h": header,
        f"op_host/{op}.cc": host,
        "op_kernel_aicpu/exec_op.cc": kernel,
        "test/check.sh": filled("check.sh", check=f"hccl-py check . {options}", options=options),
    }
