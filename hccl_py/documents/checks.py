"""Defects of documents: one sentence with the JSON path.

ring.json: tasks.0.1[3][2]: expected a notify's index from 0 to 32766, found true.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from hccl_py.errors import FileError, did_you_mean

_PLAIN_KEY = re.compile(r"[\w:-]{1,40}", re.ASCII)
_HALVES = re.compile("[\ud800-\udfff]")
_SHOWN = 40


def at(path: str, *keys: int | str) -> str:
    """Return the path of a member: positions in brackets, plain keys after a dot."""
    for key in keys:
        if isinstance(key, int):
            path += f"[{key}]"
        elif _PLAIN_KEY.fullmatch(key):
            path = f"{path}.{key}" if path else key
        else:
            path += f"[{format_value(key)}]"
    return path


def defect(path: str, expected: str, found: str, hint: str, code: str = "") -> FileError:
    """Return the error for one place of a file; `$` is the whole document."""
    return FileError(f"{path or '$'}: expected {expected}, found {found}.", hint, code)


def format_value(value: object) -> str:
    """Return a value as JSON writes it, cut where it is long."""
    if isinstance(value, dict):
        return f"an object of {len(value)} keys"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, str) and len(value) > _SHOWN:
        value = value[:_SHOWN] + "..."
    text = json.dumps(value, ensure_ascii=False)
    text = text if len(text) <= 2 * _SHOWN else text[:_SHOWN] + "..."
    return text.encode("utf-8", "backslashreplace").decode()


def an_object(path: str, value: object, hint: str = "Write it in braces.") -> dict[str, Any]:
    """Return a value that must be an object."""
    if not isinstance(value, dict):
        raise defect(path, "an object", format_value(value), hint)
    return value


def a_list(path: str, value: object, hint: str = "Write it in brackets.") -> list[Any]:
    """Return a value that must be a list."""
    if not isinstance(value, list):
        raise defect(path, "a list", format_value(value), hint)
    return value


def is_text(value: object) -> bool:
    """True if a value is a string of whole characters."""
    return isinstance(value, str) and (value.isascii() or not _HALVES.search(value))


def a_text(path: str, value: object) -> str:
    """Return a value that must be a string of whole characters."""
    if not isinstance(value, str):
        raise defect(path, "a string", format_value(value), "Write it in quotes.")
    if not is_text(value):
        raise defect(path, "a string", "half of a surrogate pair", "Write the character as UTF-8.")
    return value


def only_keys(path: str, mapping: Mapping[str, object], known: Collection[str]) -> None:
    """Refuse the first key that the format does not have here: it would be overlooked."""
    for key in mapping:
        if key not in known:
            hint = did_you_mean(key[:_SHOWN], known)
            raise defect(at(path, key), "a key of the format", format_value(key), hint)
