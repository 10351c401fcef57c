"""Values of registers, and whether it is certain which value a register has.

A register of a kernel has the value that the kernel gave it last. A variable of a channel is
written by the peer: its value is certain where the write comes before the read by waits, and where
no write that could come between has another value. Vector clocks tell the order: one counter for
every thread of every rank, joined along each signal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Clock: TypeAlias = npt.NDArray[np.int64]

SLOT = 6
"""The sort of handles of a channel's variables; lower ones are registers of the kernel."""


class Undefined(Exception):
    """A value that is not certain; the message says why."""


@dataclass
class ThreadOrder:
    """The place of a thread in the order of all: `clock[number]` counts its own steps."""

    number: int
    clock: Clock

    def step(self) -> Clock:
        """Count one step, and return the clock after it."""
        self.clock[self.number] += 1
        return self.clock.copy()

    def join(self, other: Clock) -> None:
        """Come after what another thread had done."""
        np.maximum(self.clock, other, out=self.clock)

    def is_after(self, thread: int, steps: int) -> bool:
        """Return True if a step of a thread comes before."""
        return int(self.clock[thread]) >= steps


@dataclass
class Slot:
    """A variable of a channel: writes and reads that later ones need not come after, each as
    (thread, steps, value).
    """

    writes: list[tuple[int, int, int]] = field(default_factory=list)
    reads: list[tuple[int, int, int]] = field(default_factory=list)

    def write(self, value: int, order: ThreadOrder) -> None:
        """Write; Undefined where another value may still be read."""
        waiting = [read for read in self.reads if not order.is_after(*read[:2])]
        if any(read[2] != value for read in waiting):
            raise Undefined("may be overwritten with another value before its reader has read it")
        self.reads = waiting
        self.writes.append((order.number, int(order.step()[order.number]), value))

    def read(self, order: ThreadOrder) -> int:
        """Read; Undefined where the value depends on timing."""
        before = [write for write in self.writes if order.is_after(*write[:2])]
        if not before:
            raise Undefined("is read before a wait for the notify that comes with its value")
        value = before[-1][2]
        if any(write[2] != value for write in self.writes if write not in before):
            raise Undefined("is read while its peer may write another value")
        self.writes = self.writes[self.writes.index(before[-1]) :]
        mine = (order.number, int(order.step()[order.number]), value)
        self.reads = [read for read in self.reads if read[0] != order.number] + [mine]
        return value


_WORD = (1 << 64) - 1


def computed(sign: str, left: int, right: int) -> int:
    """Return the result of an instruction on two numbers of 64 bits."""
    if sign in "<>":
        found = 0 if right > 63 else left << right if sign == "<" else left >> right
    else:
        found = _RESULTS[sign](left, right)
    return found & _WORD


_RESULTS: dict[str, Callable[[int, int], int]] = {
    "+": int.__add__,
    "-": int.__sub__,
    "*": int.__mul__,
    "&": int.__and__,
    "|": int.__or__,
    "^": int.__xor__,
    "~": lambda left, right: ~left,
}


def holds(how: int, left: int, right: int) -> bool:
    """Return True if a condition holds; `how` is a CcuConditionType."""
    return (
        left == right,
        left != right,
        left < right,
        left <= right,
        left > right,
        left >= right,
    )[how]
