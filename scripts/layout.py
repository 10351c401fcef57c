#!/usr/bin/env python3
"""Write docs/layout.md: the ten rooms, and each module with the first sentence of its docstring.

scripts/layout.py            write the page
scripts/layout.py --check    fail if the page differs from the modules
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "layout.md"


class Room(NamedTuple):
    """A room of the house: its title, its purpose, and the folders that it holds, in order."""

    title: str
    purpose: str
    folders: tuple[str, ...]


ROOMS = (
    Room(
        "Asking",
        "A call as data: the op, its size, the settings, and the machine that it runs on.",
        ("hccl_py/call", "hccl_py/topology"),
    ),
    Room(
        "Choosing (算法选择)",
        "The meaning of each collective, and HCCL's rules that choose its executor.",
        ("hccl_py/operators", "hccl_py/selection"),
    ),
    Room(
        "Contracts",
        "The interfaces of plugins: executors, platforms, importers; discovery, and the kit that "
        "tests an executor.",
        ("hccl_py/plugins", "hccl_py/importers", "hccl_py/testing", "hccl_py/scaffold"),
    ),
    Room(
        "Algorithms (资源计算, 算法编排)",
        "The built-in executors, in a source root of their own.",
        ("executors/hccl_executors",),
    ),
    Room(
        "Recording",
        "The objects on which an executor records: ranks, planes, streams, regions, links.",
        ("hccl_py/orchestration",),
    ),
    Room(
        "Program",
        "The recorded tasks of all ranks, immutable; their meaning; their files.",
        ("hccl_py/program", "hccl_py/formats"),
    ),
    Room(
        "Proof",
        "Errors of a program, found without running it.",
        ("hccl_py/verifier", "hccl_py/numerics"),
    ),
    Room(
        "Time",
        "Cost models of machines, the engines that time a program, fits to measurements, and "
        "comparisons of algorithms.",
        ("hccl_py/clocks", "hccl_py/simulator", "hccl_py/fit", "hccl_py/tuning"),
    ),
    Room(
        "Picture",
        "One scene of a program, and the outputs that draw it.",
        ("hccl_py/trace",),
    ),
    Room(
        "Running",
        "Communicators, jobs and torch's backend; the platforms, in a source root of their own.",
        ("hccl_py/communicator", "hccl_py/jobs", "hccl_py/torch", "platform/hccl_platform"),
    ),
)
DOORS = (
    Room("The command line", "One file per command.", ("hccl_py/cli",)),
    Room(
        "Programs of other tools",
        "Importers and exporters, in a source root of their own.",
        ("interop/hccl_interop",),
    ),
    Room(
        "Used everywhere",
        "Errors, enumerations, values per rank; documents from outside; the language of readers.",
        ("hccl_py", "hccl_py/documents", "hccl_py/language"),
    ),
)
HEAD = """# Layout

<!-- Made by scripts/layout.py from the docstrings of the modules. -->

Four packages in one distribution. `hccl_py` is the framework. It imports none of the others and
finds them by entry point, so that packages of other authors have the same standing. `executors/`,
`platform/` and `interop/` are source roots: each holds exactly one package and has no
`__init__.py`, because a package called `platform` would hide Python's own.
[architecture.md](architecture.md) begins with a picture of the rooms and a table that answers
"where does my change go?".
"""


def modules_of(folder: str) -> list[Path]:
    """Return the modules of a folder and of the folders in it; of `hccl_py`, its own modules."""
    paths = (ROOT / folder).glob("*.py" if folder == "hccl_py" else "**/*.py")
    return sorted(path.relative_to(ROOT) for path in paths)


def sentence_of(path: Path) -> str:
    """Return the first paragraph of a module's docstring in one line, up to its first full stop."""
    text = ast.get_docstring(ast.parse((ROOT / path).read_text("utf-8"))) or ""
    line = " ".join(text.split("\n\n")[0].split())
    return line.split(". ")[0].rstrip(".:").replace("|", "\\|")


def section(room: Room, heading: str) -> str:
    """Return the section of a room: a table for each folder and for each folder in it."""
    text = f"\n## {heading}\n\n{room.purpose}\n"
    for folder in room.folders:
        tables: dict[Path, list[Path]] = {}
        for path in modules_of(folder):
            tables.setdefault(path.parent, []).append(path)
        for place, paths in sorted(tables.items()):
            package = place / "__init__.py"
            own = sentence_of(package) if package in paths else ""
            text += f"\n**`{place.as_posix()}/`** {own}\n"
            rows = [path for path in paths if path.name not in ("__init__.py", "__main__.py")]
            if rows:
                text += "\n| Module | Purpose |\n| --- | --- |\n"
            text += "".join(f"| `{path.name}` | {sentence_of(path)} |\n" for path in rows)
    return text


def page() -> str:
    """Return the whole page."""
    rooms = [section(room, f"{number}. {room.title}") for number, room in enumerate(ROOMS, 1)]
    doors = [section(room, room.title) for room in DOORS]
    return HEAD + "".join(rooms + doors)


def main() -> int:
    """Write or check the page."""
    if "--check" in sys.argv[1:]:
        if PAGE.read_text("utf-8") != page():
            print("docs/layout.md is old: run scripts/layout.py", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(page(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
