"""JSON from bytes to plain Python values; other text is refused, with line and column."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from hccl_py.documents.checks import at, defect, format_value
from hccl_py.documents.kind import FileKind
from hccl_py.errors import FileError

_MANY = 1_000_000
_DENSEST = 7
"""Bytes per list or object of the densest sensible file (`["wait",1,0],` has 13)."""

_Hook = Callable[[Any], object]

_LONG_NUMBER = re.compile(r"[0-9]{1000}")


class _Bad:
    """Stands for a value that no document may have, until its path is known."""

    def __init__(self, expected: str, found: str, hint: str) -> None:
        self.expected, self.found, self.hint = expected, found, hint


def parse_document(document: str | bytes, kind: FileKind) -> object:
    """Return the document's value.

    Raises FileError for text that is not UTF-8 or not JSON, keys that appear twice, and nesting
    without end; for NaN and Infinity unless the kind of file allows them.
    """
    text = document if isinstance(document, str) else decoded(document, kind)
    text = text.removeprefix("\ufeff")
    _check_density(text, kind)
    bad: list[_Bad] = []

    def unique(pairs: list[tuple[str, Any]]) -> object:
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        hint = "Keep one of the two: the other would be overlooked."
        bad.append(_Bad(f"the key {format_value(_first_double(pairs))} once", "it twice", hint))
        return bad[-1]

    def constant(name: str) -> object:
        if kind.allows_nan:
            return float(name)
        bad.append(_Bad("a value that JSON has", name, "Write a number, or leave the key out."))
        return bad[-1]

    value = _loaded(text, kind, unique, constant)
    if bad:
        path, first = _find(value)
        raise defect(path, first.expected, first.found, first.hint)
    return value


def decoded(data: bytes, kind: FileKind) -> str:
    """Return the text of bytes in UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"the byte 0x{data[error.start]:02x}"
        raise defect(f"line {line}", "UTF-8 text", found, kind.text) from None


def _check_density(text: str, kind: FileKind) -> None:
    things = text.count("[") + text.count("{")
    if things > max(_MANY, len(text) // _DENSEST):
        hint = f"No {kind.noun} looks like this: was the file written by another tool?"
        raise defect("", kind.parts, f"{things} brackets in {len(text)} characters", hint)


def _loaded(text: str, kind: FileKind, unique: _Hook, constant: _Hook) -> object:
    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=constant)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        message = f"{place}: the text is not JSON ({error.msg})."
        raise FileError(message, kind.syntax) from None
    except RecursionError:
        raise defect("", "at most 8 levels of brackets", "hundreds", kind.depth) from None
    except ValueError:  # Python's limit on the digits of a number
        raise _long_number(text, kind) from None


def _long_number(text: str, kind: FileKind) -> FileError:
    found = _LONG_NUMBER.search(text)
    line = text.count("\n", 0, found.start() if found else 0) + 1
    return defect(f"line {line}", "numbers of at most 19 digits", "one of thousands", kind.digits)


def _first_double(pairs: list[tuple[str, Any]]) -> str:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            return key
        seen.add(key)
    raise AssertionError("no key appears twice")


def _find(value: object) -> tuple[str, _Bad]:
    """Return the place of a value that no document may have, and that value."""
    waiting: list[tuple[_Trail, object]] = [((), value)]
    while waiting:
        trail, found = waiting.pop()
        if isinstance(found, _Bad):
            return _path(trail), found
        if isinstance(found, dict):
            waiting += [((trail, k), v) for k, v in found.items() if isinstance(v, _NESTING)]
        elif isinstance(found, list):
            waiting += [((trail, i), v) for i, v in enumerate(found) if isinstance(v, _NESTING)]
    raise AssertionError("nothing bad is left")


_Trail = tuple[Any, ...]
"""Empty at the top, else the trail of the parent and the key or position in it."""

_NESTING = (list, dict, _Bad)


def _path(trail: _Trail) -> str:
    keys: list[int | str] = []
    while trail:
        trail, key = trail
        keys.append(key)
    return at("", *reversed(keys))
