"""The answer of `hccl-py advise` on a terminal, in Markdown, and as a page."""

from __future__ import annotations

import html
import re

from hccl_py.cli.advise_parts import Advice, AdvicePart
from hccl_py.cli.output import Screen, facts
from hccl_py.documents.plain_page import plain_page
from hccl_py.language import translated

_NAMES = 10
"""Columns of the names of parts."""

_STYLE = "ul { margin: .2rem 0; padding-left: 1.2rem; }"


class AdviceScreen:
    """Shows an answer part after part."""

    def __init__(self) -> None:
        self._screen = Screen()

    def head(self, found: Advice) -> None:
        """Show the call and the machine."""
        for line in found.head:
            self._screen.show(line)
        self._screen.show()

    def part(self, part: AdvicePart) -> None:
        """Show one part; the reader waits for the next."""
        self._screen.show(facts([(part.name, part.lines)], least=_NAMES))
        self._screen.flush()


def markdown(found: Advice) -> str:
    """Return the answer as Markdown."""
    title, *more = map(translated, found.head)
    lines = [f"# {_marked(title)}", "", *map(_marked, more)]
    for part in found.parts:
        lines += ["", f"## {translated(part.name)}", ""]
        lines += [f"- {_marked(translated(line))}" for line in part.lines]
    return "\n".join(lines)


def _marked(text: str) -> str:
    """Return text in which Markdown finds no marks of its own."""
    return re.sub(r"([\\`*_<>|\[\]])", r"\\\1", text)


def advice_page(found: Advice) -> str:
    """Return the answer as a page of HTML."""
    title, *more = map(translated, found.head)
    body = [f"<p>{html.escape(line)}</p>" for line in more]
    for part in found.parts:
        items = "\n".join(f"<li>{html.escape(translated(line))}</li>" for line in part.lines)
        body.append(f"<h2>{html.escape(translated(part.name))}</h2>\n<ul>\n{items}\n</ul>")
    return plain_page(title, "\n".join(body), _STYLE)
