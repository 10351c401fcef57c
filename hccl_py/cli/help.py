"""Help in the language that is spoken, laid out in the columns of its characters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from hccl_py.language import is_english, translated
from hccl_py.language.wrapping import columns, padded, wrapped

_GAP, _WIDEST_NAME = 2, 30
"""Columns between options and what they do, and those that options have at most beside it."""


class SpokenHelp:
    """A command whose help is written in the language that is spoken; in English typer's."""

    def get_help(self, ctx: Any) -> str:
        """Return the help."""
        if not is_english():
            ctx.formatter_class = _spoken(type(ctx).formatter_class)
        return str(super().get_help(ctx))  # type: ignore[misc]

    def get_short_help_str(self, limit: int = 45) -> str:
        """Return the whole first paragraph, which groups wrap."""
        return " ".join((getattr(self, "help", None) or "").split("\n\n")[0].split())


@cache
def _spoken(formatter: Any) -> Any:
    """Return a class of typer's formatters that translates what it writes."""

    class SpokenFormatter(formatter):  # type: ignore[misc]
        def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
            head = translated("Usage: {command}").format(command=f"{prog} ")
            lines = wrapped(head + args, self.width, "", " " * columns(head))
            self.write("\n".join(lines) + "\n")

        def write_heading(self, heading: str) -> None:
            self.write(f"{'':{self.current_indent}}{translated(heading + ':')}\n")

        def write_text(self, text: str) -> None:
            indent = " " * self.current_indent
            for number, part in enumerate(text.split("\n\n")):
                said = translated(" ".join(part.split()))
                lines = wrapped(said, self.width, indent, indent)
                self.write("\n" * bool(number) + "\n".join(lines) + "\n")

        def write_dl(
            self, rows: Sequence[tuple[str, str]], col_max: int = _WIDEST_NAME, col_spacing: int = 2
        ) -> None:
            rows = list(rows)
            indent = " " * self.current_indent
            names = min(max(columns(name) for name, _ in rows), col_max) + _GAP
            for name, text in rows:
                lines = wrapped(_of_option(text), max(self.width - names - len(indent), 20))
                head = padded(name, names)
                if columns(name) > names - _GAP:
                    self.write(f"{indent}{name}\n")
                    head = " " * names
                for line in lines:
                    self.write(f"{indent}{head}{line}".rstrip() + "\n")
                    head = " " * names

    return SpokenFormatter


def _of_option(text: str) -> str:
    """Return the help of an option, with what typer adds in brackets."""
    said, bracket, more = " ".join(text.split("\n")).partition("  [")
    notes = "; ".join(map(_note, more.removesuffix("]").split("; ")))
    return translated(said) + bracket + notes + "]" * bool(bracket)


def _note(text: str) -> str:
    """Return a note in brackets; a default value stays, as it is what users write."""
    value = text.removeprefix("default: ")
    return translated(text) if value == text else translated("default: {value}").format(value=value)
