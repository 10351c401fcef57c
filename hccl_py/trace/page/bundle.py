"""The page's script and style from the modules in static/, joined as they import each other.

The modules are ordinary JavaScript modules, which editors and linters understand. A file opened
from disk cannot import others, so each becomes a function that is called once: what it imports it
takes from the results of others, what it exports it returns.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_IMPORT = re.compile(r"^import (\{[^}]*\}) from '\./(\w+)\.js';$", re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


def _text(name: str) -> str:
    return (files(__package__) / "static" / name).read_text("utf-8")


@cache
def script() -> str:
    """Return all modules that main.js leads to, each behind those that it imports."""
    parts: dict[str, str] = {}
    _add("main", parts, ())
    return "(() => {\n'use strict';\n" + "".join(parts.values()) + "})();\n"


def _add(name: str, parts: dict[str, str], above: tuple[str, ...]) -> None:
    if name in above:
        raise ValueError(f"These modules import each other: {', '.join((*above, name))}.")
    if name in parts:
        return
    text = _text(f"{name}.js")
    for _, other in _IMPORT.findall(text):
        _add(other, parts, (*above, name))
    exported = ", ".join(found for _, found in _EXPORT.findall(text))
    body = _EXPORT.sub(r"\1", _IMPORT.sub(r"const \1 = $\2;", text))
    parts[name] = f"const ${name} = (() => {{\n{body}return {{ {exported} }};\n}})();\n"


@cache
def style() -> str:
    """Return the style sheet."""
    return _text("page.css")


@cache
def markup() -> str:
    """Return the markup of the page's body, without data and scripts."""
    return _text("page.html")
