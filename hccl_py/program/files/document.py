"""From bytes to plain Python values, refusing what is not JSON, with line and column."""

from __future__ import annotations

import json
import re
from typing import Any

from hccl_py.errors import ProgramFileError
from hccl_py.program.files.checks import at, defect, spell

__all__ = ["parse_document"]

_MANY = 1_000_000
_DENSEST = 7
"""Bytes per list or object of the densest file that makes sense (`["wait",1,0],` has 13)."""

_LONG_NUMBER = re.compile(r"[0-9]{1000}")


class _Twice:
    """Stands for an object that has a key twice, until its path is known."""

    def __init__(self, key: str) -> None:
        self.key = key


def parse_document(document: str | bytes) -> object:
    """Return the document's value; NaN and Infinity pass, their places are checked as numbers.

    Raises ProgramFileError for text that is not UTF-8 or not JSON, keys that appear twice, and
    nesting without end.
    """
    text = document if isinstance(document, str) else _decoded(document)
    text = text.removeprefix("\ufeff")
    _check_density(text)
    doubles: list[_Twice] = []

    def unique(pairs: list[tuple[str, Any]]) -> object:
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        doubles.append(_Twice(_first_double(pairs)))
        return doubles[-1]

    value = _loaded(text, unique)
    if doubles:
        path, key = _find(value)
        hint = "Keep one of the two: the other would be overlooked."
        raise defect(path, f"the key {spell(key)} once", "it twice", hint)
    return value


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        hint = "Save the file as UTF-8; large programs are kept as .npz."
        raise defect(
            f"line {line}", "UTF-8 text", f"the byte 0x{data[error.start]:02x}", hint
        ) from None


def _check_density(text: str) -> None:
    things = text.count("[") + text.count("{")
    if things > max(_MANY, len(text) // _DENSEST):
        hint = "No program looks like this: was the file written by another tool?"
        raise defect("", "tasks", f"{things} brackets in {len(text)} characters", hint)


def _loaded(text: str, unique: Any) -> object:
    try:
        return json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        hint = "Check the file with any JSON tool; was it cut off?"
        raise ProgramFileError(f"{place}: the text is not JSON ({error.msg}).", hint) from None
    except RecursionError:
        hint = "A task is at most a list of lists."
        raise defect("", "at most 8 levels of brackets", "hundreds", hint) from None
    except ValueError:  # Python's limit on the digits of a number
        raise _long_number(text) from None


def _long_number(text: str) -> ProgramFileError:
    found = _LONG_NUMBER.search(text)
    line = text.count("\n", 0, found.start() if found else 0) + 1
    hint = "Offsets, lengths and counts are below 2**62."
    return defect(f"line {line}", "numbers of at most 19 digits", "one of thousands", hint)


def _first_double(pairs: list[tuple[str, Any]]) -> str:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            return key
        seen.add(key)
    raise AssertionError("no key appears twice")


def _find(value: object) -> tuple[str, str]:
    """Return the path and the key of an object that has a key twice."""
    waiting: list[tuple[_Trail, object]] = [((), value)]
    while waiting:
        trail, found = waiting.pop()
        if isinstance(found, _Twice):
            return _path(trail), found.key
        if isinstance(found, dict):
            waiting += [((trail, k), v) for k, v in found.items() if isinstance(v, _NESTING)]
        elif isinstance(found, list):
            waiting += [((trail, i), v) for i, v in enumerate(found) if isinstance(v, _NESTING)]
    raise AssertionError("no object has a key twice")


_Trail = tuple[Any, ...]
"""Empty at the top, else the trail of the parent and the key or position in it."""

_NESTING = (list, dict, _Twice)


def _path(trail: _Trail) -> str:
    keys: list[int | str] = []
    while trail:
        trail, key = trail
        keys.append(key)
    return at("", *reversed(keys))
