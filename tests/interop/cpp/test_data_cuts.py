"""Cuts of the data, reckoned by hand; lengths and slots found from offsets that an author's layout
gives.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_interop.cpp.export.data_cuts import DataCut, Pieces, first_paths
from hccl_interop.cpp.export.memory_slots import (
    DATA,
    DataParts,
    Length,
    Lengths,
    PlaceInSlots,
    SlotRow,
    SlottedMemory,
)
from hccl_py.enums import Buffer
from hccl_py.orchestration import Layout, Region

SIZES = [4 * count for count in (*range(1, 25), 100, 333, 4001, 70_007, 1_000_003)]
EVEN, ALIGNED, FRONT, BACK = (
    DataCut("even", 3),
    DataCut("aligned", 3),
    DataCut("front", 3),
    DataCut("back", 3),
)


def test_parts_by_hand() -> None:
    even = Pieces((EVEN,), [40], 4)  # 10 elements: 4, 3 and 3
    assert (even.begin == [[0, 16, 28]]).all()
    assert (even.size == [[16, 12, 12]]).all()
    aligned = Pieces((ALIGNED,), [520], 4)  # 174 bytes each, rounded up: 256, 256 and the rest
    assert (aligned.begin == [[0, 256, 512]]).all()
    assert (aligned.size == [[256, 256, 8]]).all()
    nested = Pieces((BACK, EVEN), [40], 4)  # behind 3 elements: 3, 2 and 2
    assert (nested.begin == [[12, 24, 32]]).all()
    assert (nested.size == [[12, 8, 8]]).all()
    assert (Pieces((FRONT,), [40], 4).size == [12]).all()


@given(
    st.integers(1, 1 << 30),
    st.integers(1, 12),
    st.integers(1, 12),
    st.sampled_from(["aligned", "even"]),
    st.sampled_from(["aligned", "even"]),
)
def test_parts_are_those_of_regions(count: int, n: int, m: int, first: str, second: str) -> None:
    """The cuts of executors, twice: `Region.split` has its own arithmetic."""
    found = Pieces((DataCut(first, n), DataCut(second, m)), [2 * count], 2)
    region = Region(Buffer.CCL_IN, 0, 2 * count)
    outer = region.split(n, even=True, unit=2) if first == "even" else region.split(n)
    for i, part in enumerate(outer):
        inner = part.split(m, even=True, unit=2) if second == "even" else part.split(m)
        assert found.begin[0, i].tolist() == inner.offsets[0].tolist()
        assert found.size[0, i].tolist() == inner.sizes[0].tolist()
        assert (found.begins(1)[0, i] == inner.offsets[0] - int(part.offset)).all()


def test_runs_of_parts() -> None:
    pieces = Pieces((DataCut("even", 8),), SIZES, 4)
    three = pieces.size[:, 2:5].sum(axis=1)
    assert pieces.run((2,), three) == 3
    assert pieces.run((1,), three) is None
    assert pieces.run((2,), np.zeros_like(three)) == 0


def laid_out(sizes: list[int]) -> dict[str, np.ndarray]:
    """Offsets of an author's slots: parts of a third, twice, then the larger one of two needs."""
    rows = []
    for size in sizes:
        count, layout = size // 4, Layout(Region(Buffer.CCL_IN, 0, 1 << 40))
        part = -(-(count // 3) // 8) * 4
        half = -(-(count - count // 3) // 2) * 4
        starts = [layout.slot(name, part).offset for name in ("first", "second")]
        starts.append(layout.slot("staged", max(half, part + 127 + -(-count // 8) * 4)).offset)
        starts.append(layout.slot("last", 4).offset)
        rows.append(starts)
    names = ("first", "second", "staged", "last")
    return dict(zip(names, np.array(rows, np.int64).T, strict=True))


def test_slots_are_found_as_they_were_laid_out() -> None:
    numbers = (2, 8)
    pieces = [Pieces(path, SIZES, 4) for path in first_paths(numbers)]
    part = Length((FRONT, DataCut("even", 8)), is_aligned=True)
    lengths = Lengths([Pieces(part.path, SIZES, 4), *pieces], 4)
    memory, slots = SlottedMemory(pieces, lengths), laid_out(SIZES)
    memory.learn(list(slots.values()))
    first, last = memory.slots[2:]
    assert first == SlotRow((), part)
    assert memory.usual == first
    assert memory.found(first, pieces[0], 0, slots["staged"]) == PlaceInSlots(2, ())
    assert last.base == ((2, part),)
    assert last.stride is not None
    assert last.stride.others
    assert memory.many(last, slots["last"][:, None]) == 1
    others = [4 * count for count in (50, 77, 12_345, 999_999)]  # as laid out at other sizes, too
    expected = laid_out(others)["last"] - laid_out(others)["staged"]
    assert (DataParts(others, 4).bytes_of(last.stride) == expected).all()


def test_an_offset_that_no_length_explains() -> None:
    pieces = [Pieces((), SIZES, 4)]
    memory = SlottedMemory(pieces, Lengths(pieces, 4))
    memory.learn([np.array(SIZES, np.int64) ** 2])
    assert memory.slots == [SlotRow(), SlotRow((), DATA)]
    assert not memory.has_fixed
    memory.learn([np.full(len(SIZES), 512)])
    assert memory.has_fixed


@pytest.mark.parametrize("length", [DATA, Length((), True), Length((EVEN,), is_aligned=True)])
def test_lengths_are_the_same_alone_and_among_others(length: Length) -> None:
    pieces = [Pieces(path, SIZES, 4) for path in ((), (EVEN,))]
    assert (Lengths(pieces, 4).of(length) == DataParts(SIZES, 4).bytes_of(length)).all()
