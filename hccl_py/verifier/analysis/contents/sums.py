"""What a content is made of, by the sums that made it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TypeAlias

import numpy as np

from hccl_py.program.kernels import kernel
from hccl_py.values import IntArray
from hccl_py.verifier.analysis.contents.arrays import Bools, Sums

UNFOLDED = 20_000
"""Parts of a content up to which it is unfolded for a message."""

Part: TypeAlias = tuple[int, int]
"""A content and the address at which it is meant; of an input, its rank and the input's address."""


@dataclass(frozen=True)
class Made:
    """What a content is made of: how often each input counts, and the steps that added them up.

    A step has the sum and (the move that made it, what it was added to, what was added), oldest
    first. `is_whole` is false where there are too many parts to unfold them all.
    """

    counts: dict[Part, int]
    steps: tuple[tuple[Part, tuple[int, Part, Part]], ...]
    is_whole: bool

    def doubling(self, rank: int) -> int | None:
        """Return the first move that adds a part with a rank's input to another one with it."""
        has = {part: part[0] == rank for part in self.counts}
        for part, (move, left, right) in self.steps:
            if has[left] and has[right]:
                return move
            has[part] = has[left] or has[right]
        return None


def unfolded(sums: Sums, ranks: int, content: int, delta: int) -> Made:
    """Unfold a content at the address delta, as far as `UNFOLDED` parts."""
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
    return Made(inputs, tuple(steps.items())[::-1], not order)


@kernel
def are_sums(
    roots: IntArray, shift: IntArray, base: IntArray, sums: Sums, is_right: Bools, again: bool
) -> Bools:
    """Whether each root adds up every rank's input, each once (with `again`, at least once), at
    base + shift and in right steps only.

    Each root is taken apart twice. First from the root down, breadth first: a sum hands its own
    delta plus that of the side to both of its sides. Whatever is met a second time with another
    delta, and every input with another delta than it should have, makes the root wrong; so whatever
    is below a right root has one delta. Then it is counted how often each part stands in the root:
    in descending order of numbers, because a sum has a higher number than both of its sides, so
    that all sums above a part hand on their counts before its turn comes.

    A root whose sides add up to another number of inputs than there are ranks needs no looking at.
    """
    ranks = len(base)
    total = ranks + len(sums.left)
    inputs = np.ones(total, np.int64)
    for k in range(len(sums.left)):
        both = inputs[sums.left[k]] + inputs[sums.right[k]]
        inputs[ranks + k] = min(both, 1 << 40)
    seen = np.full(total, -1, np.int32)
    delta = np.zeros(total, np.int64)
    counts = np.zeros(total, np.int64)
    below = np.empty(total, np.int64)
    result = np.zeros(len(roots), np.bool_)
    for r in range(len(roots)):
        if inputs[roots[r]] != ranks and not (again and inputs[roots[r]] > ranks):
            continue
        below[0], found, at, good = roots[r], 1, 0, True
        seen[roots[r]] = r
        delta[roots[r]] = 0
        while at < found and good:
            number = below[at]
            at += 1
            k = number - ranks
            if k < 0:
                good = delta[number] == base[number] + shift[r]
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
                    good = False
        if good:
            numbers = np.sort(below[:found])
            counts[numbers] = 0
            counts[roots[r]] = 1
            ended = 0
            for x in range(found - 1, -1, -1):
                number = numbers[x]
                k = number - ranks
                if k >= 0:
                    counts[sums.left[k]] += counts[number]
                    counts[sums.right[k]] += counts[number]
                    good = good and is_right[k]
                else:
                    ended += 1
                    good = good and (again or counts[number] == 1)
            good = good and ended == ranks
        result[r] = good
    return result
