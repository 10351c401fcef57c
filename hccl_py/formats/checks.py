"""Columns of a file: how they are checked, the limits of the format, what its errors are.

Checks take whole columns: the good case costs a few passes in C, and only a bad column is searched
for its first bad value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from hccl_py.documents.checks import an_object, at, defect, format_value
from hccl_py.documents.kind import FileKind
from hccl_py.errors import ProgramFileError
from hccl_py.program.limits import LIMIT
from hccl_py.values import IntArray

Where = Callable[[int], str]
"""From the position in a column to the JSON path."""


def whole(
    values: Sequence[Any], where: Where, what: str, low: int = 0, high: int = LIMIT
) -> IntArray:
    """Return values that must be whole numbers (true is none) from low to high, as a column."""
    try:
        if set(map(type, values)) <= {int}:
            column = np.array(values, np.int64)
            if not len(column) or (column.min() >= low and column.max() <= high):
                return column
    except OverflowError:
        pass
    bad = next(i for i, v in enumerate(values) if type(v) is not int or not low <= v <= high)
    expected = f"{what} from {low} to {'2**62 - 1' if high == LIMIT else high}"
    hint = "Write a plain number in that range: no quotes, no fraction."
    raise defect(where(bad), expected, format_value(values[bad]), hint)


def numbered(path: str, value: object, below: int, what: str) -> list[tuple[int, Any]]:
    """Return the members of an object whose keys are numbers (of ranks, streams), in their order.

    A key has no sign, blank or leading zero, so that no number can stand there twice.
    """
    mapping = an_object(path, value, f'Its keys are the numbers of {what}s, such as "0".')
    numbers = _numbers_below(below)
    for key in _unknown(mapping, numbers):
        expected = f"the number of a {what} below {below}"
        hint = f"{what.capitalize()}s are numbered from 0, without leading zeros."
        raise defect(at(path, key), expected, f"the key {format_value(key)}", hint)
    return sorted([(numbers[key], item) for key, item in mapping.items()], key=lambda m: m[0])


def _unknown(keys: Iterable[str], known: Mapping[str, int]) -> Iterable[str]:
    return (key for key in keys if key not in known)


@lru_cache(maxsize=8)
def _numbers_below(below: int) -> dict[str, int]:
    return {str(number): number for number in range(below)}


JSON_LIMIT = 32 << 20
"""Bytes of a JSON file that are read unless the caller allows more."""

NPZ_LIMIT = 1 << 30
"""Bytes that an npz file may unpack to unless the caller allows more."""

PROGRAM = FileKind(
    noun="program",
    parts="tasks",
    error=ProgramFileError,
    larger="Allow more with --max-size (max_bytes), or keep large programs as .npz.",
    text="Save the file as UTF-8; large programs are kept as .npz.",
    depth="A task is at most a list of lists.",
    digits="Offsets, lengths and counts are below 2**62.",
    allows_nan=True,
    mark=re.compile(rb"hccl-py\.program/|^PK\x03\x04.{26}header\.npy", re.DOTALL),
)

NPZ_PROGRAM = replace(
    PROGRAM, larger="Allow more with --max-size (max_bytes).", text="Write it with hccl-py."
)
