"""Where regions and notifies lie in the files of ranks, and the opening of a message."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from hccl_platform.distributed.bound_script import OPENING_BYTES, check_opening, write_opening
from hccl_platform.distributed.header import FIRST_NOTIFY
from hccl_platform.distributed.rings import RING_BYTES
from hccl_platform.distributed.shared_memory import (
    GATHER_BYTES,
    HEADER_BYTES,
    NOTIFIES,
    Notifies,
    Regions,
    SharedMemory,
    make_file,
)
from hccl_platform.lowering.call import TEXT_BYTES, CallIdentity
from hccl_platform.lowering.part import ORDER, Cell
from hccl_py.enums import Mode
from hccl_py.errors import MismatchError, NotSupportedError
from hccl_py.program.program import Program
from tests.recording import op_of, recorded

PAGE = 4096


def ring(count: int, mode: Mode = Mode.GRAPH) -> Program:
    return recorded("AllReduceComm", op_of("all_reduce", count, mode=mode), 4)


def spans(regions: Regions, *names: str) -> list[tuple[int, int]]:
    return [regions.find("tag", name) for name in names]


@pytest.mark.parametrize("ranks", [1, 4, 7])
def test_regions_begin_behind_header_notifies_gathers_and_rings(ranks: int) -> None:
    regions = Regions(ranks, 1 << 20)
    assert FIRST_NOTIFY * 8 == HEADER_BYTES
    assert regions.gathers == HEADER_BYTES + ranks * NOTIFIES * 8
    regions.provide("tag", ring(10))
    begins = sorted(start for start, _ in spans(regions, "IN", "OUT", "CCL_IN", "CCL_OUT"))
    assert regions.ring_of(0) == regions.gathers + 2 * GATHER_BYTES
    assert begins[0] == regions.ring_of(ranks - 1) + RING_BYTES


def test_regions_are_as_large_as_needed_and_whole_pages_apart() -> None:
    regions = Regions(4, PAGE + 1)
    regions.provide("tag", ring(10, Mode.OP_BASE))
    names = ("IN", "OUT", "CCL_IN", "CCL_OUT", "SCRATCH")
    found = spans(regions, *names)
    assert dict(zip(names, (size for _, size in found), strict=True)) == {
        **{"IN": 40, "OUT": 40, "SCRATCH": 0},
        **{"CCL_IN": 1 << 20, "CCL_OUT": 1 << 20},  # the program's are larger than the session's
    }
    inside = sorted(span for span in found if span[1])
    for (start, size), (after, _) in pairwise(inside):
        assert after == start + -(-size // PAGE) * PAGE


def test_a_region_that_moves_grows_by_half() -> None:
    regions = Regions(4, 1 << 20)
    regions.provide("tag", ring(1000))
    (first,) = spans(regions, "IN")
    assert first[1] == 4000
    regions.provide("tag", ring(1001))
    (second,) = spans(regions, "IN")
    assert (second[0] > first[0], second[1]) == (True, 6000)
    version = regions.version
    regions.provide("tag", ring(1500))
    assert (spans(regions, "IN"), regions.version) == ([second], version)
    regions.provide("tag", ring(9999))
    assert spans(regions, "IN")[0][1] == 4 * 9999


def test_scratch_is_a_tags_own_and_other_memory_is_shared() -> None:
    regions = Regions(4, 1 << 20)
    op = op_of("all_to_all_v", 10, mode=Mode.GRAPH)
    for tag in ("tag", "other"):
        regions.provide(tag, recorded("RunAlltoAllVStaged", op, 4))
    assert regions.find("tag", "SCRATCH") != regions.find("other", "SCRATCH")
    for name in ("IN", "OUT", "CCL_IN", "CCL_OUT"):
        assert regions.find("tag", name) == regions.find("other", name)


def test_alternating_buffers_have_two_halves() -> None:
    regions = Regions(4, 1 << 20)
    regions.provide("tag", replace(ring(10), alternating=("CCL_IN",)))
    (start, size), (other, other_size) = (regions.find("tag", "CCL_IN", half) for half in (0, 1))
    assert size == other_size == 1 << 20
    assert abs(start - other) >= size
    with pytest.raises(KeyError):
        regions.find("tag", "CCL_OUT", 1)


def test_files_have_an_end() -> None:
    with pytest.raises(NotSupportedError, match="add up to more than 1 TiB"):
        Regions(4, 1 << 39).provide("tag", ring(10))
    Regions(4, (1 << 39) - (1 << 31)).provide("tag", ring(10))


def test_ranks_see_each_others_memory() -> None:
    files = [make_file(f"rank {rank}") for rank in range(2)]
    regions = Regions(2, PAGE)
    regions.provide("tag", ring(10))
    one, other = (SharedMemory(files, regions) for _ in range(2))
    one.words(1)[FIRST_NOTIFY + NOTIFIES + 3] = 8
    assert other.words(1)[FIRST_NOTIFY + NOTIFIES + 3] == 8
    assert other.words(0)[FIRST_NOTIFY + NOTIFIES + 3] == 0
    memory, at = one.region(1, "tag", "OUT")
    assert (memory.nbytes, at) == (40, regions.find("tag", "OUT")[0])
    memory[:] = 5
    assert other.region(1, "tag", "OUT")[0].tolist() == [5] * 40
    assert not other.region(0, "tag", "OUT")[0].any()
    assert other.bytes_at(1, at, 41).tolist() == [5] * 40 + [0]


def test_a_pair_has_512_notifies() -> None:
    notifies, program = Notifies(), ring(10)
    many = replace(program.transports, slots=NOTIFIES)
    notifies.learn(replace(program, transports=many), 1)
    plane = many.planes[0]
    assert notifies.number(Cell(1, 0, plane, NOTIFIES - 1)) == NOTIFIES - 1
    with pytest.raises(NotSupportedError, match="more than 512 notifies from rank 0"):
        notifies.number(Cell(1, 0, ORDER, 0))


def test_notifies_that_order_ranks_come_last() -> None:
    notifies, program = Notifies(), ring(10)
    notifies.learn(program, 1)
    stride = program.transports.stride
    assert [notifies.number(Cell(1, 2, ORDER, k)) for k in (5, 6, 5)] == [
        stride,
        stride + 1,
        stride,
    ]
    assert notifies.number(Cell(3, 1, ORDER, 0)) == 0  # no program has any between these two


def test_an_opening_tells_calls_apart() -> None:
    call = CallIdentity(b"calls this", 1 << 50)
    packet = np.zeros(OPENING_BYTES, np.uint8)
    write_opening(packet, 7, call)
    check_opening(packet, 2, 1, 7, call)
    with pytest.raises(MismatchError, match="call 7: rank 1 calls that; rank 2 calls this"):
        check_opening(packet, 2, 1, 7, CallIdentity(b"calls that", 1))
    with pytest.raises(MismatchError, match=r"call 8: rank 1 calls this; rank 2 .* in call 7"):
        check_opening(packet, 2, 1, 8, call)


def test_an_opening_holds_the_longest_text() -> None:
    call = CallIdentity(b"c" * TEXT_BYTES, 1)
    packet = np.full(OPENING_BYTES + 1, 9, np.uint8)
    write_opening(packet, 7, call)
    assert packet[-1] == 9  # the data begins behind it
    with pytest.raises(MismatchError, match=rf"rank 2 {'c' * TEXT_BYTES}\."):
        check_opening(packet, 2, 1, 7, CallIdentity(b"", 2))
