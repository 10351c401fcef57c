"""Catalogues: messages and their translations, in files of gettext (.po), one for each room.

A message is a sentence of the sources with its values as names in braces. A message with a plural
(`msgid_plural`) is two messages with one translation. A translation that equals its message says
that the text stays as it is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parent

_FIELD = re.compile(r"\{(\w+)\}")
_LINE = re.compile(r'(?:(msgid|msgid_plural|msgstr)(?:\[0\])? )?(".*")')


def read_catalogues(language: str) -> dict[str, str]:
    """Return the translations of a language by message."""
    found: dict[str, str] = {}
    for path in sorted((FOLDER / language).glob("*.po")):
        found |= read_po(path.read_text("utf-8"))
    return found


def read_po(text: str) -> dict[str, str]:
    """Return the translations in a catalogue by message; those that are missing or fuzzy are left
    out.
    """
    found = {}
    for entry in text.split("\n\n"):
        fields = _fields(entry)
        said = fields.get("msgstr", "")
        if said and "#, fuzzy" not in entry:
            for name in ("msgid", "msgid_plural"):
                if message := fields.get(name, ""):
                    found[message] = said
    return found


def _fields(entry: str) -> dict[str, str]:
    """Return the texts of an entry by keyword."""
    found: dict[str, str] = {}
    name = ""
    for line in entry.splitlines():
        if match := _LINE.fullmatch(line):
            name = match[1] or name
            found[name] = found.get(name, "") + str(ast.literal_eval(match[2]))
    return found


def pieces(message: str) -> tuple[list[str], list[str]]:
    """Return the literal texts of a message, and the names of the values between them."""
    parts = _FIELD.split(message.replace("{{", "\0").replace("}}", "\1"))
    texts = [part.replace("\0", "{").replace("\1", "}") for part in parts[::2]]
    return texts, parts[1::2]


def words(text: str) -> Iterator[str]:
    """Yield the English words of a text: none of code, names, quoted values, units, or
    HCCL's words that stay."""
    for match in _WORD.finditer(_CODE.sub(" ", text)):
        if match[0] not in _KEPT:
            yield match[0]


_CODE = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"|\b\S*[/_=<>\\]\S*")
_WORD = re.compile(
    r"(?<![\w.:\-#])(?:[A-Z]?[a-z]+|[aA])(?:'s|-[a-z]+)*(?![\w(\-]|\.\w|:\d)", re.ASCII
)
_KEPT = {
    *("us", "ms", "s", "x", "rank", "notify", "root", "scratch", "main", "sub", "read", "write"),
    *("reduce", "gather", "scatter", "all-gather", "reduce-scatter", "broadcast", "barrier"),
    *("mesh", "ring", "contended", "uncontended", "post", "wait", "Ack", "pipeline", "pairwise"),
    *("torch", "true", "false", "strict", "deterministic", "inline"),
}
