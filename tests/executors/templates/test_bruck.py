"""Bruck by fours: the ranks that a block comes from, and the steps."""

from hypothesis import given
from hypothesis import strategies as st

from hccl_executors.templates.bruck import PORTS, bruck_distances, bruck_peers


@given(total=st.integers(1, 5000))
def test_steps_bring_all_blocks(total: int) -> None:
    """Before a step everybody has w blocks; what is at distance d then has d .. d + w - 1."""
    known, width = 1, 1
    for at in bruck_distances(total):
        width = at if at == width * (PORTS + 1) else width
        assert at == known
        known = min(at + width, total)
    assert known == total


@given(size=st.integers(1, 300))
def test_links_have_two_ends(size: int) -> None:
    peers = bruck_peers(bruck_distances(size))
    table = [set(peers(index, size)) for index in range(size)]
    assert all(me in table[peer] for me, found in enumerate(table) for peer in found)
    assert all(me not in found for me, found in enumerate(table))


def test_distances_of_sixteen() -> None:
    assert bruck_distances(16) == [1, 2, 3, 4, 8, 12]
    assert bruck_distances(6) == [1, 2, 3, 4]
    assert bruck_distances(1) == []
