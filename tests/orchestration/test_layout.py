"""Layouts: slots by name in one buffer, and how much a round can take."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.enums import Buffer
from hccl_py.errors import OrchestrationError
from hccl_py.orchestration import Chunks, Layout, Region
from hccl_py.plugins.executor import OpParam, Rank, RankView, ResourceRequest
from hccl_py.values import OutOfBoundsError
from tests.orchestration.authors import Author
from tests.recording import op_of, recorded


def test_slots_follow_each_other_aligned() -> None:
    layout = Layout(Region(Buffer.CCL_IN, 64, 1000))
    first, packed = layout.slot("first", 100), layout.slots("packed", 3, 130)
    last = layout.slot("last", 8)
    assert (first.buffer, first.offset, first.size) == (Buffer.CCL_IN, 64, 100)
    assert [(slot.offset, slot.size) for slot in packed] == [
        (64 + 128, 130),
        (64 + 128 + 256, 130),
        (64 + 128 + 512, 130),
    ]
    # 128 + 2 x 256 + 130 = 770, and the next multiple of 128 is 896.
    assert (last.offset, last.size, layout.used) == (64 + 896, 8, 904)
    assert repr(layout) == "Layout(first=0:100, packed=128:770, last=896:904; 904 of 1000 bytes)"


def test_slots_without_alignment_and_without_bytes() -> None:
    layout = Layout(Region(Buffer.CCL_IN, 0, 10), align=1)
    assert len(layout.slots("none", 0, 100)) == 0
    assert layout.slot("empty", 0).size == 0
    assert (layout.slot("rest", 10).offset, layout.used) == (0, 10)


@pytest.mark.parametrize(
    ("room", "expected"),
    # Three slots of 4n bytes, two of them rounded up to 128: 256k + 4n bytes for n up to 32k.
    [(0, 0), (256, 0), (260, 1), (383, 31), (643, 32), (644, 33), (767, 63), (1 << 20, 87360)],
)
def test_the_largest_round_that_fits(room: int, expected: int) -> None:
    def place(layout: Layout, count: int) -> None:
        layout.slots("three", 3, 4 * count)

    assert Layout.max_count(room, place) == expected


@given(room=st.integers(0, 10_000), unit=st.integers(1, 8), parts=st.integers(1, 9))
def test_one_element_more_would_not_fit(room: int, unit: int, parts: int) -> None:
    def place(layout: Layout, count: int) -> None:
        part = -(-count // parts) * unit
        layout.slot("sum", part)
        layout.slots("others", parts, part)

    count = Layout.max_count(room, place)
    place(Layout(Region(Buffer.CCL_IN, 0, room)), count)
    with pytest.raises(OutOfBoundsError):
        place(Layout(Region(Buffer.CCL_IN, 0, room)), count + 1)


def test_slots_that_do_not_grow_are_refused() -> None:
    with pytest.raises(ValueError, match="do not grow with the count"):
        Layout.max_count(100, lambda layout, count: layout.slot("fixed", 10))


class Twofold:
    """Needs two slots of the round's size."""

    op = "all_gather"
    algorithm = "level0:NA"

    def suits(self, op: OpParam, topology: Any) -> bool:
        return True

    def slots(self, op: OpParam, layout: Layout, count: int) -> tuple[Region, Region]:
        return layout.slot("one", count * op.unit), layout.slot("other", count * op.unit)

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        def place(layout: Layout, count: int) -> object:
            return self.slots(op, layout, count)

        return ResourceRequest(max_count=Layout.max_count(rank.ccl_bytes, place))

    def orchestrate(self, op: OpParam, rank: Rank[Region, Chunks]) -> None:
        one, other = self.slots(op, Layout(rank.ccl_in), rank.count)
        rank.main.copy(one, rank.user_in)
        rank.main.copy(other, one)


def test_rounds_follow_from_the_layout() -> None:
    # 1 024 bytes hold two slots of 512: 128 elements of fp32 a round.
    program = recorded(Twofold, op_of("all_gather", 300), 2, ccl_bytes=1024)
    assert program.rounds == 3
    assert program.tasks.size[:6].tolist() == [512, 512, 512, 512, 176, 176]
    assert program.tasks.dst_offset[:6].tolist() == [0, 512, 0, 512, 0, 256]


def failing(body: Any) -> OrchestrationError:
    with pytest.raises(OrchestrationError) as caught:
        recorded(Author(body, ResourceRequest()), op_of("all_gather"), 2, ccl_bytes=1024)
    return caught.value


def test_slots_beyond_the_memory_are_named() -> None:
    def body(rank: Any) -> None:
        layout = Layout(rank.ccl_in)
        layout.slot("sum", 1000)
        layout.slots("packed", 2, 64)

    error = failing(body)
    assert error.finding == "OUT_OF_BOUNDS"
    assert "slot packed at bytes 1024 to 1216 of 1024, behind sum 0 to 1000" in error.message


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (lambda rank: Layout(rank.ccl_in).slot("x", rank.id + 1), "has another size on every rank"),
        (lambda rank: [x.slot("x", 1) for x in [Layout(rank.ccl_in)] * 2], "has a slot x already"),
        (lambda rank: Layout(rank.ccl_in).slot("x", -1), "slot x cannot have -1 bytes"),
    ],
)
def test_slots_that_cannot_be_are_refused(body: Any, words: str) -> None:
    assert words in failing(body).message
