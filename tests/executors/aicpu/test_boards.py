"""Turns of an all-to-all over boards, and pieces of a pipelined AllGather."""

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_executors.aicpu.all_to_all import rounds, turns
from hccl_executors.aicpu.two_axes_pipeline import CUT, MOST_STEPS, AxisRate, pieces, step_count

EIGHT_BOARDS = (
    *("7654321", "6427530", "5316407", "4275016"),
    *("3160275", "2703164", "1042753", "0531642"),
)
"""The partners of every board in turn, by a comment of ins_temp_ubx_all_to_all_v_mesh_1D.cc."""


def test_eight_boards_meet_in_the_order_that_hccl_writes_down() -> None:
    assert ["".join(map(str, row)) for row in np.array(list(rounds(8))).T] == list(EIGHT_BOARDS)


@pytest.mark.parametrize(("boards", "width"), [(1, 4), (2, 4), (3, 2), (4, 3), (5, 4)])
def test_every_pair_of_ranks_of_two_boards_meets_once(boards: int, width: int) -> None:
    n, met = boards * width, set()
    for turn in turns(n, width):
        for peers in turn:
            for me, peer in enumerate(peers.tolist()[:n]):
                assert peer >= n or peers[peer] == me
                if peer < n:
                    assert (me, peer) not in met
                    met.add((me, peer))
    assert met == {(i, j) for i in range(n) for j in range(n) if i // width != j // width}


axes = st.builds(AxisRate, st.integers(2, 16), st.floats(1, 100))


@given(size=st.integers(0, 1 << 28), one=axes, other=axes)
def test_pieces_bring_all_data_of_all_ranks(size: int, one: AxisRate, other: AxisRate) -> None:
    """Of ranks on my axes each once, of all others by either axis."""
    slow, fast = sorted((one, other), key=lambda axis: axis.gbps)
    found = pieces(size, slow, fast)
    assert 2 <= len(found) <= MOST_STEPS
    near, far = zip(*found, strict=True)
    assert far[0][:2] == (0, size)
    assert _joined(near[:-1]) == size
    assert _joined([*far[1:-1], near[-1], far[-1]]) == size
    assert [piece.corner for piece in near] == [False] * (len(near) - 1) + [True]
    assert all(piece.begin % CUT == 0 for piece in (*near, *far))


def test_what_is_passed_on_has_come_before() -> None:
    """Two boards of four, 1 MB: what the Clos network passes on came over the mesh a step ago."""
    near, far = zip(*pieces(1 << 20, AxisRate(4, 50.0), AxisRate(2, 191.0)), strict=True)
    for step in range(1, len(near)):
        assert far[step].begin + far[step].size <= sum(piece.size for piece in near[:step])


def _joined(parts: Iterable[tuple[int, int, bool]]) -> int:
    """Return the end of parts that follow each other."""
    end = 0
    for begin, size, _ in parts:
        assert begin == end
        assert size >= 0
        end += size
    return end


def test_steps_by_hand() -> None:
    """Four devices of 50 GB/s beside a network of 191: log(4 - 3.82) / log(3 / 3.82) is 7.1, so
    nine steps would be even; five take a larger first piece.
    """
    steps, scale = step_count(4, 191 / 50)
    growth = 3 / 3.82
    assert steps == MOST_STEPS
    assert scale == pytest.approx(3.82 / (1 + growth + growth**2 + growth**3))
    assert step_count(2, 191 / 3 / 50) == (3, 1.0)
