"""Forty random pairs of calls: the emulator finds nothing against what was proved about them."""

from __future__ import annotations

from collections import Counter

import pytest

from hccl_py.numerics.sameness import Bits
from tests.numerics.pairs import judged, main, random_pairs

KEPT = 40


def test_the_emulator_agrees_on_every_pair() -> None:
    verdicts: Counter[Bits] = Counter()
    for pair, _ in zip(random_pairs(seed=7), range(KEPT), strict=False):
        bits, problem = judged(pair)
        assert not problem, f"{pair.text}: {problem}"
        verdicts[bits] += 1
    assert min(verdicts[Bits.SAME], verdicts[Bits.DIFFER]) > KEPT // 8  # both kinds are judged


@pytest.mark.long
def test_the_emulator_agrees_on_three_hundred_pairs() -> None:
    assert main(300, seed=1) == 0
