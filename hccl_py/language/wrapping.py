"""Lines of text in columns: a Chinese character has two, and a line may end behind any of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from unicodedata import east_asian_width

_WIDE = "\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6"
_PIECE = re.compile(rf"\s+|[（《“]*(?:[{_WIDE}]|[^\s{_WIDE}（]+)[，。；：、！？）》”]*|\S")
"""Pieces that stay in one line: closing marks stay behind, opening marks before their neighbour."""


def columns(text: str) -> int:
    """Return the number of columns of a text on a terminal."""
    if text.isascii():
        return len(text)
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def wrapped(text: str, width: int, indent: str = "", hanging: str = "") -> list[str]:
    """Return the lines of a text in so many columns, those after the first
    behind `hanging`."""
    inner = text.strip()
    indent += " " * text.find(inner[:1])
    lines, line, used = [], indent, columns(indent)
    is_empty = True
    for piece in _chopped(inner, width - columns(hanging)):
        needed = columns(piece)
        if not is_empty and used + needed > width and not piece.isspace():
            lines.append(line.rstrip())
            line, used = hanging, columns(hanging)
            is_empty = True
        if is_empty and piece.isspace():
            continue
        line, used, is_empty = line + piece, used + needed, False
    return [*lines, line.rstrip()]


def _chopped(text: str, most: int) -> Iterator[str]:
    """Yield the pieces of a text, those that fit in no line cut into several."""
    for piece in _PIECE.findall(text):
        for begin in range(0, len(piece), most) if columns(piece) > most else ():
            yield piece[begin : begin + most]
        if columns(piece) <= most:
            yield piece


def padded(text: str, width: int) -> str:
    """Return a text with spaces behind it up to so many columns, before it if they are negative."""
    spaces = " " * (abs(width) - columns(text))
    return spaces + text if width < 0 else text + spaces
