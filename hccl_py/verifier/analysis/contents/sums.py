"""The inputs that a content adds up, found by taking its sums apart."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TypeAlias

import numpy as np

from hccl_py.program.kernels import kernel_calling
from hccl_py.values import IntArray
from hccl_py.verifier.analysis.contents.arrays import Bools, Int32s, Sums

UNFOLDED = 20_000
"""Most parts of a content that is unfolded for a message."""

Part: TypeAlias = tuple[int, int]
"""A content and its address; for an input, its rank and the address at which the input lies."""


@dataclass(frozen=True)
class SumOrigin:
    """The inputs of a content, with the number of times that each counts, and its additions.

    A step is a sum and (the move that made it, the part added to, the part added), oldest first.
    `is_whole` is false where there were too many parts to unfold them all.
    """

    counts: dict[Part, int]
    steps: tuple[tuple[Part, tuple[int, Part, Part]], ...]
    is_whole: bool

    def doubling(self, rank: int) -> int | None:
        """Return the first move that adds two parts which both contain a rank's input."""
        has = {part: part[0] == rank for part in self.counts}
        for part, (move, left, right) in self.steps:
            if has[left] and has[right]:
                return move
            has[part] = has[left] or has[right]
        return None


def unfolded(sums: Sums, ranks: int, content: int, delta: int) -> SumOrigin:
    """Unfold a content at the address `delta`, up to `UNFOLDED` parts."""
    counts = Counter({(content, delta): 1})
    order, steps = [(-content, delta)], {}
    while order and len(counts) < UNFOLDED:
        number, at = heappop(order)
        k = -number - ranks
        if k >= 0:
            left = int(sums.left[k]), at + int(sums.left_delta[k])
            right = int(sums.right[k]), at + int(sums.right_delta[k])
            steps[-number, at] = int(sums.move[k]), left, right
            for key in (left, right):
                if key not in counts:
                    heappush(order, (-key[0], key[1]))
                counts[key] += counts[-number, at]
    inputs = {key: count for key, count in sorted(counts.items()) if key[0] < ranks}
    return SumOrigin(inputs, tuple(steps.items())[::-1], not order)


@kernel_calling(lambda: (_parts_below, _add_up))
def are_sums(
    roots: IntArray, shift: IntArray, base: IntArray, sums: Sums, is_right: Bools, again: bool
) -> Bools:
    """Tell for each root whether it adds up every rank's input, each once (with `again`, at least
    once), at base[rank] + shift[root] and by right steps only.

    Contents are numbered: 0 .. ranks - 1 are inputs, `ranks + k` is sum k. `is_right[k]` says
    whether sum k reduces as the call demands. A root is taken apart twice, from the top down for
    addresses and in descending order for counts; both cost the number of its distinct parts, and
    the working arrays by content are shared by all roots:

        inputs   inputs below, each counted as often as it was added
        seen     the last root below which the content was met
        delta    its address there
        counts   the times that it counts there
        below    the contents met below the current root
    """
    ranks = len(base)
    total = ranks + len(sums.left)
    inputs = np.ones(total, np.int64)
    for k in range(len(sums.left)):
        # Sums of sums double: limited, so that they do not overflow.
        both = inputs[sums.left[k]] + inputs[sums.right[k]]
        inputs[ranks + k] = min(both, 1 << 40)
    seen = np.full(total, -1, np.int32)
    delta = np.zeros(total, np.int64)
    counts = np.zeros(total, np.int64)
    below = np.empty(total, np.int64)
    result = np.zeros(len(roots), np.bool_)
    for r in range(len(roots)):
        # A root with another number of inputs than there are ranks is not looked at.
        if inputs[roots[r]] == ranks or (again and inputs[roots[r]] > ranks):
            found = _parts_below(roots[r], r, shift[r], base, sums, seen, delta, below)
            if found > 0:
                # Ascending: a sum has a higher number than both of its sides.
                numbers = np.sort(below[:found])
                result[r] = _add_up(numbers, ranks, sums, is_right, again, counts)
    return result


def _parts_below(
    root: int,
    r: int,
    shift: int,
    base: IntArray,
    sums: Sums,
    seen: Int32s,
    delta: IntArray,
    below: IntArray,
) -> int:
    """List the distinct contents below root number `r`, itself first; return how many there are, 0
    where one is met at two addresses or an input at another one than its own.
    """
    below[0], found, at = root, 1, 0
    seen[root] = r
    delta[root] = 0
    # Breadth first: below[:at] are taken apart, below[at:found] wait.
    while at < found:
        number = below[at]
        at += 1
        k = number - len(base)
        if k < 0:
            if delta[number] != base[number] + shift:
                return 0
            continue
        for side, moved in (
            (sums.left[k], sums.left_delta[k]),
            (sums.right[k], sums.right_delta[k]),
        ):
            if seen[side] != r:
                seen[side] = r
                delta[side] = delta[number] + moved
                below[found] = side
                found += 1
            elif delta[side] != delta[number] + moved:
                return 0
    return found


def _add_up(
    numbers: IntArray, ranks: int, sums: Sums, is_right: Bools, again: bool, counts: IntArray
) -> bool:
    """True if the parts of a root, in ascending order, are right steps and count every input once,
    or with `again` at all.
    """
    counts[numbers] = 0
    counts[numbers[-1]] = 1
    ended = 0
    # Descending: all sums above a part have handed on their counts before its turn comes.
    for x in range(len(numbers) - 1, -1, -1):
        number = numbers[x]
        k = number - ranks
        if k >= 0:
            if not is_right[k]:
                return False
            counts[sums.left[k]] += counts[number]
            counts[sums.right[k]] += counts[number]
        elif again or counts[number] == 1:
            ended += 1
        else:
            return False
    return ended == ranks
