"""What commands write: one JSON document, or text for people."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TextIO

from hccl_py.cli.streams import raw, results, say
from hccl_py.printable import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.text import Text

__all__ = ["NARROWEST", "Screen", "print_json", "printable_console", "spell_levels"]

NARROWEST = 20
"""Columns that lines are laid out for, however narrow a terminal says that it is."""


def print_json(
    document: Mapping[str, Any], **rows: Iterable[Mapping[str, Any] | Iterator[str]]
) -> None:
    """Write one JSON document; `rows` are long lists, written as they come, one row per line. An
    iterator has the parts of a row that is JSON already.
    """
    head = json.dumps(document, indent=2)
    if not rows:
        say(head)
        return
    out = results()
    out.write(head.removesuffix("\n}"))
    encode = json.JSONEncoder().encode
    for name, items in rows.items():
        out.write(f",\n  {json.dumps(name)}: [")
        separator = "\n    "
        for item in items:
            out.write(separator)
            out.writelines(item if isinstance(item, Iterator) else [encode(item)])
            separator = ",\n    "
        out.write("\n  ]" if separator[0] == "," else "]")
    out.write("\n}\n")


def printable_console(file: TextIO, *, is_terminal: bool) -> Console:
    """Return a console of rich that shows what data hold as `printable` text; styles are our own.

    Texts are made printable before lines are laid out, and all that is written once more.
    """
    from rich.console import Console
    from rich.segment import Segment

    class PrintableConsole(Console):
        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str(printable(text), **options)

        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                text = segment.text if segment.control else printable(segment.text)
                yield segment._replace(text=text)

    terminal = True if is_terminal else None
    return PrintableConsole(
        file=file, force_terminal=terminal, highlight=False, emoji=False, markup=False
    )


class Screen:
    """Rich text for stdout: no colours where that is no terminal, no spaces at the ends of lines.

    Rich only renders; writing is ours, so that a closed pipe is an error like any other.
    """

    def __init__(self) -> None:
        out = results()
        self._out, self._text = raw(out), io.StringIO()
        self.console = printable_console(self._text, is_terminal=out.isatty())
        self.console.width = max(self.console.width, NARROWEST)
        self.unicode = (out.encoding or "").lower().startswith("utf")

    def show(self, part: RenderableType = "", style: str | None = None) -> None:
        """Print a part."""
        self.console.print(part, style=style)
        self._out.writelines(
            line.rstrip() + "\n" for line in self._text.getvalue().removesuffix("\n").split("\n")
        )
        self._text.seek(0)
        self._text.truncate()


def spell_levels(algorithm: Mapping[str, str]) -> str:
    """Return `level0 mesh, level1 ring`."""
    return ", ".join(f"{level} {name}" for level, name in algorithm.items())
