"""Steps of NHR, the non-uniform hierarchical ring: ceil(log2 n) exchanges among n ranks.

In a step at distance d a rank sends (n - 1 + d) // 2d slices, two distances apart: while reducing
to the rank before it (d = 1, 2, 4, ...), while gathering to the one after it (d = ..., 4, 2, 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar, NamedTuple

from hccl_executors.aicpu.seats import Template
from hccl_py.values import RankInt


class NhrStep(NamedTuple):
    """The ranks to send to and to receive from, and the slices to send and to receive."""

    to: RankInt
    source: RankInt
    sent: list[RankInt]
    received: list[RankInt]


class NhrTemplate(Template):
    """The resources of a template by NHR: on one thread, with channels both ways to the ranks that
    exchange. `by_clos`: on a UBX server these are of its Clos network alone.
    """

    by_clos: ClassVar[bool] = False

    def distances(self, n: int) -> Iterable[int]:
        powers = [1 << k for k in range(rounds(n))]
        return sorted({*powers, *(n - d for d in powers)})

    def subs(self, n: int) -> int:
        return 0


def rounds(n: int) -> int:
    """Return the number of steps."""
    return (n - 1).bit_length()


def reduce_steps(me: RankInt, n: int) -> Iterator[NhrStep]:
    """Yield the steps after which every rank has the sum of its own slice."""
    for d in (1 << s for s in range(rounds(n))):
        to = (me - d) % n
        yield NhrStep(to, (me + d) % n, _slices(to, n, d), _slices(me, n, d))


def gather_steps(me: RankInt, n: int) -> Iterator[NhrStep]:
    """Yield the steps after which every rank has all slices, from its own."""
    for d in (1 << s for s in reversed(range(rounds(n)))):
        source = (me - d) % n
        yield NhrStep((me + d) % n, source, _slices(me, n, d), _slices(source, n, d))


def _slices(first: RankInt, n: int, d: int) -> list[RankInt]:
    return [(first - 2 * d * i) % n for i in range((n - 1 + d) // (2 * d))]
