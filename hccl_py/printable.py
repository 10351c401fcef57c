"""Text from outside made safe to show: control characters become visible escapes.

Names in files, error messages of plugins and paths may hold any character: escape sequences that
move the cursor or set the clipboard, or marks that turn the direction of writing.
"""

from __future__ import annotations


def printable(text: str) -> str:
    """Return a text with every character that is not printable as an escape; line ends stay."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def one_line(text: str) -> str:
    """Return a text as `printable` does, its line ends as escapes, too."""
    return printable(text).replace("\n", "\\n")


def brief(text: str, most: int = 200) -> str:
    """Return a text as `one_line` does, cut after `most` characters."""
    return one_line(text) if len(text) <= most else f"{one_line(text[:most])}..."
