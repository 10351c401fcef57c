"""All-to-all in pairs: every two ranks meet once, in slots that both know."""

from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from hccl_executors.aicpu.all_to_all import PairsOfRanks, at_once
from hccl_executors.aicpu.seats import Seat


def pairs(me: int, n: int) -> dict[int, tuple[int, int]]:
    """The slots of a rank and of its peer, by peer."""
    place = Seat(me, n, (), 4, in_place=False, to=cast(Any, None))
    found = list(PairsOfRanks().pairs(place))
    assert len(found) == len({int(peer) for peer, _, _ in found})
    return {int(peer): (mine, theirs) for peer, mine, theirs in found}


@given(st.integers(2, 40))
def test_every_two_ranks_meet_in_slots_that_both_know(n: int) -> None:
    every = [pairs(me, n) for me in range(n)]
    for me, found in enumerate(every):
        assert set(found) == set(range(n)) - {me}
        for peer, (mine, theirs) in found.items():
            assert every[peer][me] == (theirs, mine)
            assert mine < at_once(n)
