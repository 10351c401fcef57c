"""The buffers of a file: which rank has which, and how large they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_py.documents.checks import a_text, an_object, at, defect, format_value
from hccl_py.errors import did_you_mean
from hccl_py.formats.checks import numbered, whole
from hccl_py.program.limits import MAX_BUFFERS
from hccl_py.values import IntArray

_SHAPE = 'Write {"IN": bytes, "OUT": bytes, ...}.'


@dataclass(frozen=True, eq=False)
class BufferTable:
    """`names` over all ranks in the order of their first appearance; `sizes` and `known` have shape
    [ranks, buffers].
    """

    names: tuple[str, ...]
    sizes: IntArray
    known: npt.NDArray[np.bool_]

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of every name."""
        return {name: number for number, name in enumerate(self.names)}

    def number(self, name: object, path: str) -> int:
        """Return the number of a buffer that some rank must have."""
        known = a_buffer(name, path)
        if known not in self.numbers:
            hint = did_you_mean(known[:40], self.names)
            raise defect(path, "the name of a buffer", format_value(name), hint)
        return self.numbers[known]


def a_buffer(name: object, path: str) -> str:
    """Return a name that a buffer could have."""
    if not isinstance(name, str):
        raise defect(path, "the name of a buffer", format_value(name), "Write its name in quotes.")
    return name


def memory_from(value: object, ranks: int) -> BufferTable:
    """Return the memory of the object `buffers`; ranks that are left out have none."""
    names: dict[str, int] = {}
    rows: list[int] = []
    columns: list[int] = []
    sizes: list[Any] = []
    for rank, buffers in numbered("buffers", value, ranks, "rank"):
        path = at("buffers", str(rank))
        if len(an_object(path, buffers, _SHAPE)) > MAX_BUFFERS:
            raise _too_many(path, len(buffers))
        rows += [rank] * len(buffers)
        columns += [names.setdefault(name, len(names)) for name in buffers]
        sizes += buffers.values()
    known_names = tuple(names)
    if len(names) > MAX_BUFFERS:
        raise _too_many("buffers", len(names))
    for name in known_names:
        a_text("buffers", name)
    table = np.zeros((ranks, len(names)), np.int64)
    known = np.zeros(table.shape, bool)
    table[rows, columns] = whole(
        sizes, lambda k: at("buffers", str(rows[k]), known_names[columns[k]]), "a size in bytes"
    )
    known[rows, columns] = True
    return BufferTable(known_names, table, known)


def alternating_from(value: Sequence[object], names: Sequence[str], path: str) -> tuple[str, ...]:
    """Return the buffers of which every rank has two, in turns from call to call."""
    found: list[str] = []
    for number, name in enumerate(value):
        own = [known for known in names if known not in ("IN", "OUT", *found)]
        if name not in own:
            hint = did_you_mean(name[:40], own) if isinstance(name, str) else ""
            expected = "the name of a buffer, other than IN and OUT, once"
            raise defect(at(path, number), expected, format_value(name), hint)
        found.append(str(name))
    return tuple(found)


def _too_many(path: str, found: int) -> Exception:
    hint = "Ranks share the names of their buffers."
    return defect(path, f"at most {MAX_BUFFERS} names of buffers", str(found), hint)
