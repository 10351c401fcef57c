"""The output of commands: one JSON document or text for people, and progress on stderr."""

from __future__ import annotations

import io
import json
import re
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from hccl_py.cli.streams import raw, results
from hccl_py.language import is_english, translated
from hccl_py.language.wrapping import columns, wrapped
from hccl_py.printable import one_line, printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.progress import Progress
    from rich.table import Table
    from rich.text import Text

NARROWEST = 20
"""Columns that lines are laid out for, however narrow a terminal says that it is."""

_LEAST_NAME = 12
"""Columns that names of executors have at least."""

WIDEST = 10_000
"""Columns of the longest line, on a terminal and in files."""

PATIENCE_S = 1.0
"""Time before progress is shown: loading rich costs more than most runs."""

REFRESH_S = 0.1

NOTICE_S = 10.0
"""Time between lines on progress where stderr is no terminal."""


def print_json(
    document: Mapping[str, Any], **rows: Iterable[Mapping[str, Any] | Iterator[str]]
) -> None:
    """Write one JSON document; `rows` are long lists, written as they come, one row per line. An
    iterator has the parts of a row that is JSON already.
    """
    head, out = json.dumps(document, indent=2), results()
    if not rows:
        out.write(head + "\n")
        return
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
    """Return a console of rich that shows what data hold as `printable` text, in the language that
    is spoken; styles are our own.

    Texts are made printable before lines are laid out, and all that is written once more.
    """
    from rich.console import Console
    from rich.segment import Segment

    class PrintableConsole(Console):
        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str(printable(translated(text)), **options)

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
        self.console.width = min(max(self.console.width, NARROWEST), WIDEST)
        self.unicode = (out.encoding or "").lower().startswith("utf")

    def show(self, part: RenderableType = "", style: str | None = None) -> None:
        """Print a part."""
        width = self.console.width
        if isinstance(part, str) and not is_english():
            from rich.text import Text

            part = Text("\n".join(_folded(line, width) for line in translated(part).split("\n")))
        self._print(part, style, width)

    def flush(self) -> None:
        """Let the reader see what was printed so far."""
        self._out.flush()

    def show_whole(self, part: RenderableType) -> None:
        """Print a part within the terminal, and in its full width into files and pipes."""
        unbounded = self.console.options.update(max_width=WIDEST)
        needed = self.console.measure(part, options=unbounded)
        least = needed.minimum if self.console.is_terminal else needed.maximum
        self._print(part, None, max(self.console.width, least))

    def _print(self, part: RenderableType, style: str | None, width: int) -> None:
        usual, self.console.width = self.console.width, width
        self.console.print(part, style=style)
        self.console.width = usual
        self._out.writelines(
            line.rstrip() + "\n" for line in self._text.getvalue().removesuffix("\n").split("\n")
        )
        self._text.seek(0)
        self._text.truncate()


def format_levels(algorithm: Mapping[str, str]) -> str:
    """Return `level0 mesh, level1 ring`."""
    return ", ".join(f"{level} {name}" for level, name in algorithm.items())


def counted(count: int, noun: str) -> str:
    """Return `1 task`, `2 tasks`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def facts(rows: Iterable[tuple[str, Sequence[str]]], *, least: int = 0) -> Table:
    """Return a table of names, in at least so many columns, and lines about each, folded where they
    are too long; a line without spaces, such as a path, after slashes.
    """
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    class FoldedLines:
        def __init__(self, lines: Sequence[str]) -> None:
            self._lines = [translated(line) for line in lines]

        def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
            return Measurement.get(console, options, Text("\n".join(self._lines)))

        def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
            yield Text("\n".join(_folded(line, options.max_width) for line in self._lines))

    shown = Table.grid(padding=(0, 2))
    shown.add_column(style="bold", no_wrap=True, min_width=least)
    shown.add_column(overflow="fold")
    for name, lines in rows:
        if lines:
            shown.add_row(name, FoldedLines(lines))
    return shown


def _folded(line: str, width: int) -> str:
    """Return a line without spaces in several, which end with slashes as far as parts fit; one of
    wide characters in lines of so many columns.
    """
    if columns(line) > max(len(line), width):
        return "\n".join(wrapped(line, width))
    if " " in line or len(line) <= width:
        return line
    found = [""]
    for part in re.split("(?<=/)", line):
        if found[-1] and len(found[-1]) + len(part) > width:
            found.append("")
        found[-1] += part
    return "\n".join(found)


def table(*numbers: str, left: Iterable[str]) -> Table:
    """Return a table without lines: columns of numbers, then those that begin at the left."""
    from rich.table import Table

    shown = Table(box=None, pad_edge=False, header_style="bold")
    for name in numbers:
        shown.add_column(name, justify="right", no_wrap=True)
    for name in left:
        shown.add_column(name, overflow="fold", min_width=_LEAST_NAME)
    return shown


class Bar:
    """Shows the iterations of one row; it vanishes at the end, before the row is printed. Where
    stderr is no terminal, one with `notices` writes a line now and then.
    """

    def __init__(self, title: str, total: int | None = None, *, notices: bool = False) -> None:
        self._title, self._total, self._done, self._notices = title, total, 0, notices
        self._began = time.monotonic()
        self._is_terminal = sys.stderr.isatty()
        self._next = self._began + (PATIENCE_S if self._is_terminal else NOTICE_S)
        self._shown: Progress | None = None

    def advance(self) -> None:
        """Count one iteration."""
        self.advance_to(self._done + 1, self._total)

    def advance_to(self, done: int, total: int | None) -> None:
        """Take over how many iterations are done, and of how many."""
        self._done, self._total = done, total
        now = time.monotonic()
        if now < self._next:
            return
        if self._is_terminal:
            self._next = now + REFRESH_S
            self._show()
        elif self._notices:
            self._next = now + NOTICE_S
            of = "" if total is None else f" of {total}"
            said = translated(f"{self._title}: {done}{of} after {now - self._began:.0f} s")
            sys.stderr.write(f"{said}\n")

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown is not None:
            self._shown.stop()

    def _show(self) -> None:
        if self._shown is None:
            from rich.progress import Progress

            # No refresh thread and no redirection: rows go to stdout as they are.
            self._shown = Progress(
                console=printable_console(raw(sys.stderr), is_terminal=True),
                transient=True,
                auto_refresh=False,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._shown.add_task(translated(self._title), total=self._total)
            self._shown.start()
        self._shown.update(self._shown.task_ids[0], completed=self._done, total=self._total)
        self._shown.refresh()


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show a line with the work in hand and its seconds; it vanishes at the end."""
    if not sys.stderr.isatty():
        yield
        return
    stream, ended, began = raw(sys.stderr), threading.Event(), time.monotonic()
    said = one_line(translated(what))

    def tell() -> None:
        pause = PATIENCE_S
        while not ended.wait(pause):
            seconds = time.monotonic() - began
            stream.write(f"\r\x1b[K{said}, {seconds:.0f} s")
            stream.flush()
            pause = REFRESH_S
        if pause == REFRESH_S:
            stream.write("\r\x1b[K")
            stream.flush()

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()
