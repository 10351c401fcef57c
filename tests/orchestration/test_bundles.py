"""Bundles: the chunks that a member of a plane has collected, taken together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.enums import Buffer
from hccl_py.orchestration import Chunks, Region
from hccl_py.orchestration.bundles import Bundles
from hccl_py.orchestration.region import pieces
from hccl_py.values import OutOfBoundsError, PerRank, values_of


def spans(memory: Region | Chunks, ranks: int, rank: int) -> list[tuple[int, int]]:
    """Return (offset, size) of every piece, as one rank sees them."""
    return [
        (
            int(np.broadcast_to(values_of(piece.offset), ranks)[rank]),
            int(np.broadcast_to(values_of(piece.size), ranks)[rank]),
        )
        for piece in pieces(memory)
    ]


def slots(n: int, rows: int = 1) -> Chunks:
    """Return n chunks of 10 to 10 + n bytes, with gaps, in rows at different places."""
    sizes = np.tile(10 + np.arange(n), (rows, 1))
    offsets = 100 * np.arange(n) + 10_000 * np.arange(rows)[:, None]
    return Chunks(Buffer.CCL_IN, offsets, sizes, PerRank.of(np.arange(rows)))


@given(
    superpods=st.integers(1, 3),
    servers=st.integers(1, 3),
    devices=st.integers(1, 4),
    step=st.integers(0, 5),
)
def test_sets_of_every_plane(superpods: int, servers: int, devices: int, step: int) -> None:
    """On the plane between servers, rank (p, s, d) has the slots (*, s', d) for server s'."""
    n = superpods * servers * devices
    ranks = np.arange(n)
    server, device = ranks // devices % servers, PerRank.of(ranks % devices)
    offsets = [p * servers * devices for p in range(superpods)]
    bundles = Bundles(slots(n), device, devices, servers, offsets)
    found = bundles[(PerRank.of(server) + step) % servers]
    for rank in range(n):
        there, d = (rank // devices + step) % servers, rank % devices
        wanted = [(p * servers + there) * devices + d for p in range(superpods)]
        assert spans(found, n, rank) == [(100 * i, 10 + i) for i in wanted]


def test_one_chunk_is_a_region() -> None:
    found = Bundles(slots(6), 1, 2, 3)[2]
    assert isinstance(found, Region)
    assert (found.offset, found.size) == (500, 15)


def test_rows_of_ranks_stay_apart() -> None:
    found = Bundles(slots(4, rows=2), 0, 1, 2, (0, 2))[PerRank.of(np.array([1, 0]))]
    assert spans(found, 2, 0) == [(100, 11), (300, 13)]
    assert spans(found, 2, 1) == [(10_000, 10), (10_200, 12)]


def test_chunks_in_another_order_are_found_there() -> None:
    chunks = slots(4).renumbered((3, 2, 1, 0))
    assert spans(Bundles(chunks, 0, 1, 2, (0, 2))[0], 1, 0) == [(300, 13), (100, 11)]


def test_length_iteration_and_pieces() -> None:
    bundles = Bundles(slots(6), 0, 2, 3, (0, 1))
    assert len(bundles) == len(list(bundles)) == 3
    assert [piece.offset for piece in bundles.pieces()] == [0, 100, 200, 300, 400, 500]
    assert spans(bundles[-1], 1, 0) == spans(bundles[2], 1, 0)


@given(first=st.integers(0, 2), stride=st.integers(-3, 3), k=st.integers(0, 3))
def test_series_walks_over_bundles(first: int, stride: int, k: int) -> None:
    bundles = Bundles(slots(6), 0, 1, 3, (0, 3))
    walked = [(first + stride * i) % 3 for i in range(k)]
    found = [piece.offset for piece in bundles.series(first, stride, k)]
    assert found == [100 * (i + offset) for i in walked for offset in (0, 3)]


@given(order=st.permutations(range(4)), index=st.integers(0, 3))
def test_renumbered(order: list[int], index: int) -> None:
    bundles = Bundles(slots(8), 0, 1, 4, (0, 4))
    found = bundles.renumbered(order)
    assert spans(found[index], 1, 0) == spans(bundles[order[index]], 1, 0)
    shared = found[PerRank.of(np.array([index, (index + 1) % 4]))]
    assert spans(shared, 2, 1) == spans(bundles[order[(index + 1) % 4]], 1, 0)


def test_parts_cut_every_chunk_and_keep_the_order() -> None:
    chunks = Chunks(Buffer.CCL_IN, np.array([[0, 300, 600, 900]]), np.full((1, 4), 200))
    first, second = Bundles(chunks, 0, 1, 2, (0, 2)).renumbered((1, 0)).parts(2)
    assert spans(first[0], 1, 0) == [(300, 128), (900, 128)]
    assert spans(second[0], 1, 0) == [(428, 72), (1028, 72)]


@pytest.mark.parametrize("index", [3, -4, PerRank.of(np.array([0, 3]))])
def test_there_is_no_bundle_beyond_the_last(index: int) -> None:
    with pytest.raises(OutOfBoundsError, match=r"bundle (3|-4) of 3"):
        Bundles(slots(6), 0, 2, 3)[index]


def test_a_series_of_bundles_goes_backwards_and_wraps() -> None:
    """Rank 1 begins with bundle 1, so that its series wraps."""
    sizes = np.full((1, 6), 8)
    bundles = Bundles(Chunks(Buffer.CCL_IN, sizes.cumsum(axis=1) - sizes, sizes), 0, 1, 6)
    found = bundles.series(PerRank.of(np.array([3, 1])), -2, 2)
    assert [values_of(one.offset).tolist() for one in found] == [[24, 8], [8, 40]]
