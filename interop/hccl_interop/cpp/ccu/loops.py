"""The loops of a LoopGroup, from their packed or plain configurations.

Packed, by bits: a loop has iterations 12:0 and bytes per iteration 44:13. A group has the loops
that run 47:41, the loop from which on there are copies 54:48 and the copies 61:55; its offsets are
events 9:0, buffers 20:10 and bytes 52:21, for each copy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class LoopShift(NamedTuple):
    """By how much a loop shifts the addresses, buffers and events of its body; `repeats` iterations
    are one (long_loops.py).
    """

    address: int = 0
    buffer: int = 0
    event: int = 0
    repeats: int = 1


class LoopRun(NamedTuple):
    """One loop, or a copy of one: the number of its body, its iterations and bytes for each."""

    number: int
    iterations: int
    stride: int
    copied: LoopShift

    def shift(self, iteration: int) -> LoopShift:
        """Return the shift of an iteration."""
        return self.copied._replace(address=self.copied.address + iteration * self.stride)


class _Group(NamedTuple):
    loops: int
    copies: int
    first_copied: int
    address: int
    buffer: int
    event: int


_PACKED, _PLAIN = 0, 1


def runs_of(operands: tuple[int, ...], value: Callable[[int], int]) -> list[LoopRun]:
    """Return the loops that run, copies included; `value` returns that of a register."""
    loops = [operands[at : at + 4] for at in range(7, len(operands), 4)]
    group = _group(operands, len(loops), value)
    found = []
    for place, (number, form, first, second) in enumerate(loops[: group.loops]):
        if form == _PACKED:
            packed = value(first)
            iterations, stride = packed & 0x1FFF, packed >> 13 & 0xFFFFFFFF
        elif form == _PLAIN:
            iterations, stride = first, second
        else:
            iterations, stride = value(first), value(second)
        for copy in range(1 + (group.copies if place >= group.first_copied else 0)):
            offsets = (group.address, group.buffer, group.event)
            shift = LoopShift(*(copy * offset for offset in offsets))
            found.append(LoopRun(number, iterations, stride, shift))
    return found


def _group(operands: tuple[int, ...], loops: int, value: Callable[[int], int]) -> _Group:
    if operands[0] == _PLAIN:
        copies, first, address, buffer, event = operands[1:6]
        return _Group(loops, copies, first, address, buffer, event)
    parallel, offsets = value(operands[1]), value(operands[2])
    return _Group(
        loops=parallel >> 41 & 0x7F,
        copies=parallel >> 55 & 0x7F,
        first_copied=parallel >> 48 & 0x7F,
        address=offsets >> 21 & 0xFFFFFFFF,
        buffer=offsets >> 10 & 0x7FF,
        event=offsets & 0x3FF,
    )
