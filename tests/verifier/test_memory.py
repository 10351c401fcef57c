"""Memory on one line of addresses, cut into intervals that every task moves whole."""

import numpy as np
from hypothesis import given

from hccl_py.program.program import Program
from hccl_py.verifier.analysis.meaning import in_place_offsets
from hccl_py.verifier.analysis.memory import MemoryIntervals, memory_of
from hccl_py.verifier.subject import Options, Subject
from tests.verifier.scripts import programs
from tests.verifier.sketches import all_gather, sketch


def laid_out(program: Program, *, way: int | None = None) -> MemoryIntervals:
    layouts = in_place_offsets(program.op, program.ranks)
    return memory_of(Subject(program, Options()), None if way is None else layouts[way][1])


@given(programs())
def test_every_access_touches_whole_intervals(program: Program) -> None:
    memory = laid_out(program)
    intervals, moves = memory.intervals, memory.transfers
    assert (np.diff(intervals.start) > 0).all()
    for low, high, begin, size in (
        (intervals.src, intervals.src_stop, moves.src, moves.src_size),
        (intervals.dst, intervals.dst_stop, moves.dst, moves.dst_size),
    ):
        assert (intervals.start[low] == begin).all()
        assert (intervals.start[high] == begin + size).all()


@given(programs())
def test_buffers_lie_apart_and_ranges_are_spelled_in_their_bytes(program: Program) -> None:
    memory = laid_out(program)
    base, size = memory.spaces.base.reshape(-1), memory.spaces.size.reshape(-1)
    order = np.argsort(base)
    assert (base[order][1:] > (base + size)[order][:-1]).all()
    first, stop = memory.owned("OUT")
    number = program.buffers.index("OUT")
    for rank in range(program.ranks):
        begin, end = memory.intervals.start[[first[rank], stop[rank]]].tolist()
        found = memory.range_of(rank, number, begin, end)
        assert found == (rank, "OUT", 0, int(memory.spaces.size[rank, number]))


def test_in_place_in_and_out_share_addresses() -> None:
    program = all_gather().program()
    into, out = (program.buffers.index(name) for name in ("IN", "OUT"))
    for way, slots in ((0, [0] * 4), (1, [0, -64, -128, -192])):
        memory = laid_out(program, way=way)
        assert memory.is_shared
        assert (memory.spaces.base[:, out] - memory.spaces.base[:, into]).tolist() == slots


def test_a_buffer_that_is_not_there_owns_nothing() -> None:
    drawn = sketch({"name": "barrier", "dtype": "uint8"}, 2, {"CCL": 8})
    first, stop = laid_out(drawn.program()).owned("IN")
    assert (first == stop).all()


def test_tasks_whose_result_means_nothing_are_garbage() -> None:
    drawn = all_gather()
    moves = {
        0: ["copy", ["CCL", 0, 64], ["CCL", 8, 56]],
        1: ["copy", ["CCL", 0, 32], ["CCL", 16, 32]],
        2: ["copy", ["IN", 32, 64], ["CCL", 0, 64]],
        3: ["copy", ["IN", 0, 64], ["CCL", 0, 64]],
    }
    for rank in range(4):
        drawn.at(rank)[:] = [moves[rank]]
    memory = laid_out(drawn.program())
    assert memory.transfers.garbage.tolist() == [True, True, True, False]
    assert memory.transfers.src_size.tolist() == [64, 32, 32, 64]
