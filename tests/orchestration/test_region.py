"""Regions and chunks: cutting, indexing, series."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.enums import Buffer
from hccl_py.orchestration import Chunks, Region
from hccl_py.values import OutOfBoundsError, PerRank, values_of


def spans(regions: list[Region]) -> list[tuple[int, int]]:
    return [(int(r.offset), int(r.size)) for r in regions]


@given(size=st.integers(0, 5000), n=st.integers(1, 9), offset=st.integers(0, 999))
def test_split_covers_the_region_in_aligned_pieces(size: int, n: int, offset: int) -> None:
    pieces = spans(list(Region(0, offset, size).split(n)))
    assert len(pieces) == n
    at = offset
    for start, length in pieces:
        assert start == at
        at += length
    assert at == offset + size
    full = (size + n - 1) // n + 127
    full -= full % 128
    assert all(length in (0, full) or at == offset + size for _, length in pieces)
    assert all(start % 128 == offset % 128 or length == 0 for start, length in pieces)


@given(n=st.integers(1, 9), step=st.integers(-9, 9), size=st.integers(0, 3000))
def test_a_per_rank_index_finds_what_each_rank_would_find(n: int, step: int, size: int) -> None:
    chunks = Region(1, 64, size).split(n)
    index = (PerRank.of(np.arange(n)) + step) % n
    found = chunks[index]
    for r in range(n):
        alone = chunks[(r + step) % n]
        for mine, single in ((found.offset, alone.offset), (found.size, alone.size)):
            assert np.broadcast_to(values_of(mine), n)[r] == single


@given(n=st.integers(2, 9), rows=st.integers(2, 4), steps=st.lists(st.integers(-9, 9), min_size=1))
def test_chunks_of_several_rows_are_looked_up_by_formulas(
    n: int, rows: int, steps: list[int]
) -> None:
    sizes = np.arange(rows * n).reshape(rows, n) * 128 % 640
    row = np.repeat(np.arange(rows), n)
    chunks = Chunks(Buffer.CCL_IN, sizes.cumsum(axis=1) - sizes, sizes, PerRank(row))
    place = np.tile(np.arange(n), rows) + n  # any base that spans less than n will do
    for index in [(PerRank(place) + step) % n for step in steps]:
        found, at = chunks[index], values_of(index)
        assert np.array_equal(values_of(found.size), sizes[row, at])
        assert np.array_equal(values_of(found.offset), chunks.offsets[row, at])


def test_every_step_of_several_rows_shares_its_arrays() -> None:
    table = np.arange(12).reshape(2, 6)
    chunks = Chunks(Buffer.CCL_IN, table, table, PerRank(np.repeat([0, 1], 6)))
    rank = PerRank(np.tile(np.arange(6), 2))
    found = [chunks[(rank + step) % 6].offset for step in range(6)]
    assert all(isinstance(offset, PerRank) for offset in found)
    assert len({id(offset.base) for offset in found if isinstance(offset, PerRank)}) == 1


@given(n=st.integers(1, 12), first=st.integers(-12, 11), stride=st.integers(-5, 5), data=st.data())
def test_series_merges_neighbours_and_moves_the_same_bytes(
    n: int, first: int, stride: int, data: st.DataObject
) -> None:
    first %= n
    k = data.draw(st.integers(0, n))
    order = tuple(data.draw(st.permutations(range(n))))
    chunks = Chunks(0, np.arange(n)[None] * 10, np.full((1, n), 10)).renumbered(order)
    places = {order[(first + stride * i) % n] for i in range(k)}
    covered = sorted(b for o, s in spans(chunks.series(first, stride, k)) for b in range(o, o + s))
    assert covered == sorted(b for place in places for b in range(place * 10, place * 10 + 10))
    runs = sum(place - 1 not in places for place in places)
    assert len(chunks.series(first, stride, k)) == runs


def test_slots_with_gaps_are_never_merged() -> None:
    slots = Chunks(0, np.array([[0, 100, 200]]), np.full((1, 3), 10))
    assert spans(slots.series(0, 1, 2)) == [(0, 10), (100, 10)]


@given(size=st.integers(0, 700), n=st.integers(1, 4))
def test_parts_cut_every_chunk(size: int, n: int) -> None:
    chunks = Region(0, 0, size).split(3)
    parts = chunks.parts(n)
    for i, chunk in enumerate(chunks):
        pieces = [part[i] for part in parts]
        assert pieces[0].offset == chunk.offset
        assert sum(p.size for p in pieces) == chunk.size


def test_slicing_a_region() -> None:
    region = Region(0, 100, 50)
    assert spans([region[10:30], region[:5], region[45:], region.head(7)]) == [
        (110, 20),
        (100, 5),
        (145, 5),
        (100, 7),
    ]


@pytest.mark.parametrize(
    "use",
    [
        lambda r: r.head(51),
        lambda r: r[10:51],
        lambda r: r[-1:4],
        lambda r: r[9:4],
        lambda r: r.split(3)[3],
        lambda r: r.split(3)[-4],
        lambda r: r.split(3)[PerRank(np.arange(4))],
    ],
)
def test_leaving_a_region_is_refused_with_numbers(use: object) -> None:
    with pytest.raises(OutOfBoundsError, match=r"\d"):
        use(Region(0, 0, 50))  # type: ignore[operator]


def test_a_region_is_one_piece() -> None:
    with pytest.raises(ValueError, match="without a step"):
        Region(0, 0, 50)[::2]
    with pytest.raises(TypeError, match=r"cut in bytes, region\[start:stop\], not taken by 3"):
        Region(0, 0, 50)[3]  # type: ignore[index]


def test_the_buffer_is_named() -> None:
    with pytest.raises(OutOfBoundsError, match="bytes 0 to 51 of a region of 50 in CCL_OUT"):
        Region(Buffer.CCL_OUT, 0, 50).head(51)


def test_numbers_of_numpy_are_plain_afterwards() -> None:
    region = Region(0, 0, 50)
    for cut in (region[np.int64(3) : np.int32(9)], region.head(np.int64(9))[3:]):  # type: ignore
        assert spans([cut]) == [(3, 6)]
        assert type(cut.offset) is type(cut.size) is int


@pytest.mark.parametrize(
    ("size", "n", "unit", "expected"),
    [
        (40, 3, 4, [(0, 16), (16, 12), (28, 12)]),  # 10 elements: 4, 3, 3
        (8, 4, 4, [(0, 4), (4, 4), (8, 0), (8, 0)]),
        (12, 1, 2, [(0, 12)]),
        (0, 2, 8, [(0, 0), (0, 0)]),
    ],
)
def test_an_even_split_gives_the_first_chunks_one_element_more(
    size: int, n: int, unit: int, expected: list[tuple[int, int]]
) -> None:
    chunks = Region(0, 100, size).split(n, even=True, unit=unit)
    assert [(chunk.offset - 100, chunk.size) for chunk in chunks] == expected


def test_even_chunks_of_regions_that_differ_by_rank() -> None:
    region = Region(0, PerRank.of(np.array([0, 10])), PerRank.of(np.array([10, 6])))
    chunks = region.split(3, even=True, unit=2)
    assert [values_of(chunk.offset).tolist() for chunk in chunks] == [[0, 10], [4, 12], [8, 14]]
    assert [np.broadcast_to(values_of(chunk.size), 2).tolist() for chunk in chunks] == [
        [4, 2],
        [4, 2],
        [2, 2],
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"even": True}, "even chunks take both"),
        ({"unit": 4}, "even chunks take both"),
        ({"even": True, "unit": 4}, "10 bytes are no whole elements of 4 bytes"),
    ],
)
def test_an_even_split_of_no_whole_elements_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Region(0, 0, 10).split(2, **options)


def test_the_last_part_may_have_chunks_whole() -> None:
    """Said of sizes: here those that are no multiple of 32."""
    chunks = Chunks(0, np.array([[0, 300, 556]]), np.array([[300, 256, 40]]))
    first, second = chunks.parts(2, whole=lambda sizes: sizes % 32 != 0)
    assert first.sizes.tolist() == [[0, 128, 0]]
    assert second.sizes.tolist() == [[300, 128, 40]]
    assert second.offsets.tolist() == [[0, 428, 556]]


SLOTS = Region(Buffer.CCL_IN, 64, 60).split(6, even=True, unit=10)
"""Six slots of 10 bytes, side by side."""


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (1, [(64, 10), (74, 10), (84, 10), (94, 10), (104, 10), (114, 10)]),
        (2, [(64, 20), (84, 20), (104, 20)]),
        (3, [(64, 30), (94, 30)]),
        (6, [(64, 60)]),
    ],
)
def test_neighbours_are_joined(n: int, expected: list[tuple[int, int]]) -> None:
    assert spans(list(SLOTS.joined(n))) == expected
    assert SLOTS.joined(n)[0].buffer == Buffer.CCL_IN


def test_gaps_may_lie_between_what_is_joined() -> None:
    offsets, sizes = np.array([[0, 8, 100, 108]]), np.full((1, 4), 8)
    chunks = Chunks(0, offsets, sizes)
    assert spans(list(chunks.joined(2))) == [(0, 16), (100, 16)]
    assert spans(list(chunks.joined(1))) == spans(list(chunks))
    with pytest.raises(OutOfBoundsError, match="4 chunks joined 4 by 4 with gaps"):
        chunks.joined(4)
    with pytest.raises(OutOfBoundsError, match="2 by 2 with gaps"):
        Chunks(0, np.array([[0, 9]]), np.array([[8, 8]])).joined(2)


@pytest.mark.parametrize("n", [-1, 0, 4, 5, 7])
def test_only_whole_groups_are_joined(n: int) -> None:
    with pytest.raises(OutOfBoundsError, match=f"6 chunks joined {n} by {n}"):
        SLOTS.joined(n)


def test_renumbered_chunks_are_not_joined() -> None:
    with pytest.raises(OutOfBoundsError, match="joined 2 by 2"):
        SLOTS.renumbered((5, 4, 3, 2, 1, 0)).joined(2)


def test_some_chunks_in_a_row_are_taken() -> None:
    assert spans(list(SLOTS.taken(1, 3))) == [(74, 10), (84, 10), (94, 10)]
    assert spans(list(SLOTS.taken(0, 6))) == spans(list(SLOTS))
    turned = SLOTS.renumbered((5, 4, 3, 2, 1, 0))
    assert spans(list(turned.taken(1, 2))) == [(104, 10), (94, 10)]


def test_every_rank_takes_its_own() -> None:
    found = SLOTS.taken(PerRank.of(np.array([0, 4, 2])), 2)
    assert values_of(found[0].offset).tolist() == [64, 104, 84]
    assert values_of(found[1].offset).tolist() == [74, 114, 94]


@pytest.mark.parametrize(("first", "n"), [(0, 7), (4, 3), (5, 2), (2, 0), (2, -1)])
def test_chunks_that_do_not_exist_are_not_taken(first: int, n: int) -> None:
    with pytest.raises(OutOfBoundsError, match=f"{n} chunks from chunk {first} of 6"):
        SLOTS.taken(first, n)
    with pytest.raises(OutOfBoundsError, match=f"{n} chunks from chunk {first} of 6"):
        SLOTS.taken(PerRank.of(np.array([0, first])), n)


@pytest.mark.parametrize(("n", "align"), [(0, 128), (-1, 128), (2, 0), (2, -1)])
def test_no_split_into_nothing(n: int, align: int) -> None:
    words = f"split into {n} chunks aligned to {align} bytes"
    with pytest.raises(ValueError, match=words):
        Region(0, 0, 50).split(n, align)


def test_chunks_know_their_largest_and_whether_all_are_alike() -> None:
    assert (SLOTS.largest, SLOTS.same_size) == (10, 10)
    uneven = Region(0, 0, 50).split(3, align=1)
    assert spans(list(uneven)) == [(0, 17), (17, 17), (34, 16)]
    assert (uneven.largest, uneven.same_size) == (17, None)
    empty = np.zeros((1, 0), np.int64)
    assert Chunks(0, empty, empty).largest == 0


@pytest.mark.parametrize("k", [-1, 7])
def test_a_series_has_no_more_chunks_than_there_are(k: int) -> None:
    with pytest.raises(OutOfBoundsError, match=f"a series of {k} chunks of 6"):
        SLOTS.series(0, 1, k)
