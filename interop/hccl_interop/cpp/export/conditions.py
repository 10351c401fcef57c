"""Conditions that hold for some ranks and for no other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hccl_interop.cpp.export.formulas import RANK, Binary, Formula, Number


def condition_of(ranks: Sequence[int], everybody: Sequence[int]) -> Formula | None:
    """Return what holds for some of these ranks, and for no other of them; None where no short
    condition does.
    """
    mine = set(ranks)
    if len(mine) == 1:
        return Binary("==", RANK, Number(min(mine)))
    tests: list[tuple[Formula, Callable[[int], bool]]] = [
        (Binary("<", RANK, Number(max(mine) + 1)), lambda rank: rank <= max(mine)),
        (Binary(">=", RANK, Number(min(mine))), lambda rank: rank >= min(mine)),
    ]
    for width in (2, 4, 8, 16):
        for rest in range(width):
            test = Binary("==", Binary("%", RANK, Number(width)), Number(rest))
            tests.append((test, _has_rest(width, rest)))
    for formula, holds in tests:
        if all(holds(rank) == (rank in mine) for rank in everybody):
            return formula
    return None


def _has_rest(width: int, rest: int) -> Callable[[int], bool]:
    return lambda rank: rank % width == rest
