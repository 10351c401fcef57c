"""Batches of alike ranks: ranks that do the same, up to the columns that may differ by rank.

Ranks are alike where the bytes of all their other columns are equal. The columns that differ become
formulas: the n different numbers of one task of n ranks are a table, and another task with the same
numbers, turned by some ranks, shares it. So the steps of a ring cost no array each.

The cost is a pass over all columns, and for every task of a batch whose number differs by rank a
look-up by the bytes of its n numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_py.enums import TaskKind
from hccl_py.program.builder.columns import TaskColumns, frozen
from hccl_py.program.instruction import Batch, Instruction
from hccl_py.values import IntArray, PerRank, RankInt

_KINDS = tuple(TaskKind)
_SHARED = np.dtype(
    [
        ("kind", np.int8),
        ("src_buffer", np.int8),
        ("dst_buffer", np.int8),
        ("dtype", np.int8),
        ("reduce", np.int8),
        ("joined", np.int8),
        ("stream", np.int16),
        ("label", np.int32),
        ("line", np.int32),
        ("round", np.int32),
        ("dst_size", np.int64),
        ("duration_us", np.float64),
    ]
)
"""The fields of an Instruction that ranks of a batch share."""


def batches_of(
    ranks: int, tasks: TaskColumns, cell: IntArray, end: IntArray, peer: IntArray
) -> tuple[Batch, ...]:
    """Return a batch for all ranks that do the same, in the order of their first ranks; ranks
    without tasks are alike, too.
    """
    shared = np.empty(len(tasks), _SHARED)
    for name in ("kind", "src_buffer", "dst_buffer", "dtype", "reduce", "joined", "stream"):
        shared[name] = getattr(tasks, name)
    shared["label"], shared["line"], shared["round"] = tasks.label, tasks.line, tasks.round
    shared["dst_size"] = np.where(tasks.dst_size == tasks.src_size, -1, tasks.dst_size)
    shared["duration_us"] = tasks.microseconds
    varying = {
        "cell": cell,
        "end": end,
        "peer": peer,
        "src_offset": tasks.src_offset,
        "dst_offset": tasks.dst_offset,
        "size": tasks.src_size,
    }
    first = np.searchsorted(tasks.rank, np.arange(ranks + 1))
    alike: dict[bytes, list[int]] = {}
    for rank in range(ranks):
        alike.setdefault(shared[first[rank] : first[rank + 1]].tobytes(), []).append(rank)
    return tuple(
        Batch(
            frozen(np.array(group)),
            _instructions(shared[first[group[0]] : first[group[0] + 1]], varying, first[group]),
        )
        for group in alike.values()
    )


def _instructions(
    shared: npt.NDArray[np.void], varying: dict[str, IntArray], begins: IntArray
) -> tuple[Instruction, ...]:
    """Return the tasks of ranks that share some fields; each rank's rows begin at `begins`."""
    fields: dict[str, list[Any]] = {name: shared[name].tolist() for name in _SHARED.fields or ()}
    fields["kind"] = [_KINDS[kind] for kind in fields["kind"]]
    for name, column in varying.items():
        by_rank = column[begins[:, None] + np.arange(len(shared))]
        fields[name] = _by_rank(by_rank) if len(begins) > 1 else by_rank[0].tolist()
    ordered = [fields[name] for name in Instruction._fields]
    return tuple(map(Instruction._make, zip(*ordered, strict=True)))


def _by_rank(values: IntArray) -> list[RankInt]:
    """Return the number of every task, of [ranks, tasks], as an int or a formula."""
    found: list[RankInt] = values[0].tolist()
    differing = np.flatnonzero((values != values[0]).any(axis=0))
    formulas = _Formulas(len(values))
    for task, numbers in zip(differing.tolist(), values.T[differing].copy(), strict=True):
        found[task] = formulas.of(numbers)
    return found


class _Formulas:
    """Numbers per rank as formulas: known ones, or known tables turned, without new arrays."""

    def __init__(self, ranks: int) -> None:
        self._ranks = ranks
        self._base = frozen(np.arange(ranks))
        self._known: dict[bytes, RankInt] = {}
        self._tables: dict[tuple[int, int], tuple[IntArray, dict[int, int]]] = {}

    def of(self, numbers: IntArray) -> RankInt:
        """Return the formula of one number per rank, of which two or more differ."""
        key = numbers.tobytes()
        if key not in self._known:
            self._known[key] = self._turned(numbers)
        return self._known[key]

    def _turned(self, numbers: IntArray) -> RankInt:
        bounds = int(numbers.min()), int(numbers.max())
        if bounds not in self._tables:
            places = {number: place for place, number in enumerate(numbers.tolist())}
            self._tables[bounds] = frozen(numbers.copy()), places
        table, places = self._tables[bounds]
        turn = places.get(int(numbers[0]))
        if turn is not None and len(places) == self._ranks:
            turned = np.concatenate([table[turn:], table[:turn]])
            if (turned == numbers).all():
                return PerRank(self._base, turn, self._ranks, table, (0, self._ranks - 1))
        return PerRank(frozen(numbers.copy()), bounds=bounds)
