"""What commands write: one JSON document, or text for people."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["NARROWEST", "Screen", "print_json", "spell_levels"]

NARROWEST = 20
"""Columns that lines are laid out for, however narrow a terminal says that it is."""


def print_json(document: Mapping[str, Any], **rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON document; `rows` are long lists, written as they come, one row per line."""
    head = json.dumps(document, indent=2)
    if not rows:
        print(head)
        return
    out = sys.stdout
    out.write(head.removesuffix("\n}"))
    encode = json.JSONEncoder().encode
    for name, items in rows.items():
        out.write(f",\n  {json.dumps(name)}: [")
        separator = "\n    "
        for item in items:
            out.write(separator + encode(item))
            separator = ",\n    "
        out.write("\n  ]" if separator[0] == "," else "]")
    out.write("\n}\n")


class Screen:
    """Rich text for stdout: no colours where that is no terminal, no spaces at the ends of lines.

    Rich only renders; writing is ours, so that a closed pipe is an error like any other.
    """

    def __init__(self) -> None:
        from rich.console import Console

        terminal = True if sys.stdout.isatty() else None
        self._text = io.StringIO()
        self.console = Console(
            file=self._text, force_terminal=terminal, highlight=False, emoji=False, markup=False
        )
        self.console.width = max(self.console.width, NARROWEST)
        self.unicode = (sys.stdout.encoding or "").lower().startswith("utf")

    def show(self, part: RenderableType = "", style: str | None = None) -> None:
        """Print a part."""
        self.console.print(part, style=style)
        sys.stdout.writelines(
            line.rstrip() + "\n" for line in self._text.getvalue().removesuffix("\n").split("\n")
        )
        self._text.seek(0)
        self._text.truncate()


def spell_levels(algorithm: Mapping[str, str]) -> str:
    """Return `level0 mesh, level1 ring`."""
    return ", ".join(f"{level} {name}" for level, name in algorithm.items())
