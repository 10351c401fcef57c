"""Offsets and sizes of chunks, reckoned by hand as the executor does; ranges that overlap."""

from dataclasses import replace
from itertools import combinations, combinations_with_replacement
from typing import Any

import pytest

from hccl_interop.mscclpp import plan_from
from hccl_interop.mscclpp.overlaps import Overlaps
from hccl_interop.mscclpp.plan import PlanOp
from hccl_interop.mscclpp.sizes import RankSizes
from tests.interop.mscclpp.plans import puts_all_gather

PLAN = plan_from(puts_all_gather(2).text().encode(), "own.json")


def sizes(
    chunks: tuple[int, int, int], inputs: int = 1000, outputs: int = 2000, **members: Any
) -> RankSizes:
    """Return the sizes of a rank whose input, output and scratch have so many chunks."""
    gpu = replace(
        PLAN.gpus[0], input_chunks=chunks[0], output_chunks=chunks[1], scratch_chunks=chunks[2]
    )
    return RankSizes(replace(PLAN, alignment=16, **members), gpu, inputs, outputs)


def test_the_first_chunks_take_the_rest() -> None:
    found = sizes((3, 0, 5))  # 62 units of 16 bytes: 21, 21 and 20
    assert [found.offset("i", index) for index in range(4)] == [0, 336, 672, 992]
    assert [found.length(index, 1) for index in range(3)] == [336, 336, 320]
    assert (found.length(0, 3), found.length(1, 2), found.chunk) == (992, 656, 336)


def test_the_output_is_cut_where_only_it_has_chunks() -> None:
    found = sizes((0, 4, 5))  # 125 units: 32, 31, 31, 31
    assert [found.offset("o", index) for index in range(4)] == [0, 512, 1008, 1504]
    assert found.chunk == 512
    assert sizes((2, 4, 5)).chunk == 496  # of the input: 31 units each


def test_scratch_alone_cuts_the_input() -> None:
    found = sizes((0, 0, 5))
    assert [found.offset("s", index) for index in range(6)] == [0, 208, 416, 608, 800, 992]


@pytest.mark.parametrize(("protocol", "times"), [("Simple", 1), ("LL", 2)])
def test_scratch_has_room_for_packets(protocol: str, times: int) -> None:
    assert sizes((3, 0, 5), protocol=protocol).scratch == 5 * 336 * times


@pytest.mark.parametrize(("double", "chunk"), [(False, 13_421_776), (True, 6_710_896)])
def test_scratch_that_plans_share_is_64_mib_or_half_of_it(double: bool, chunk: int) -> None:
    found = sizes((1, 0, 5), 200 << 20, reuse=True, double=double)
    assert (found.scratch_chunk, found.is_folded) == (chunk, True)
    assert found.scratch == 5 * chunk
    assert (found.offset("s", 3), found.offset("i", 1)) == (3 * chunk, 200 << 20)
    assert found.passed("s", chunk + 48) == 48
    assert found.passed("i", chunk + 48) == chunk + 48


def test_scratch_is_folded_only_where_chunks_are_larger() -> None:
    assert sizes((1, 0, 1), 1 << 26, reuse=True).is_folded is False
    assert sizes((1, 0, 1), (1 << 26) + 16, reuse=True).is_folded is True
    alone = sizes((1, 0, 1), (1 << 26) + 16, reuse=False)
    assert (alone.is_folded, alone.scratch) == (False, (1 << 26) + 16)
    assert alone.passed("s", (1 << 26) + 8) == (1 << 26) + 8
    assert sizes((1, 0, 0)).scratch_chunk == 1 << 26


def test_threadblocks_share_an_operation() -> None:
    parts = [PlanOp("copy", 1, "0", part=part, parts=3) for part in range(3)]
    assert [sizes((3, 0, 5)).part(op, 1000) for op in parts] == [(0, 336), (336, 336), (672, 320)]


@pytest.mark.parametrize(("unit", "passes"), [(336, 2), (335, 3), (672, 1), (1000, 1), (16, 42)])
def test_a_pipeline_passes_over_its_chunks(unit: int, passes: int) -> None:
    assert sizes((3, 0, 5)).passes(PlanOp("pipeline", 1, "0", unit=unit, chunks=2)) == passes


def test_ranges_with_common_bytes_are_found_the_last_first() -> None:
    """Any three ranges of bytes 0 to 4, and any range that is looked for."""
    every = list(combinations(range(6), 2))
    for ranges in combinations_with_replacement(every, 3):
        overlaps = Overlaps((a, b, k) for k, (a, b) in enumerate(ranges))
        for begin, stop in every:
            found = list(overlaps.with_bytes_of(begin, stop))
            wanted = {
                k for k, (a, b) in enumerate(ranges) if {*range(a, b)} & {*range(begin, stop)}
            }
            assert sorted(found) == sorted(wanted)
            begins = [ranges[k][0] for k in found]
            assert begins == sorted(begins, reverse=True)
