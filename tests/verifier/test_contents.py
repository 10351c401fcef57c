"""What the verifier says memory holds, against following every byte by hand, on random programs."""

from collections import Counter

import numpy as np
from hypothesis import given

from hccl_py.program.program import Program
from hccl_py.verifier.analysis.contents import GARBAGE, UNDEFINED, Contents, contents_of
from hccl_py.verifier.analysis.memory import MemoryIntervals, memory_of
from hccl_py.verifier.analysis.unrolled import unrolled
from hccl_py.verifier.subject import Options, Subject
from tests.verifier.naive import Byte, contents, sides
from tests.verifier.scripts import programs


def followed(program: Program) -> tuple[list[int], MemoryIntervals, Contents]:
    run = unrolled(program, 1)
    order = run.order[run.order < run.rows]
    memory = memory_of(Subject(program, Options()))
    return order.tolist(), memory, contents_of(memory, order)


def spell(memory: MemoryIntervals, rank: int, address: int) -> Byte:
    """A byte of an input by its address."""
    base = int(memory.spaces.base[rank, memory.program.buffers.index("IN")])
    return rank, "IN", address - base


@given(programs(steps=30))
def test_every_output_byte_is_made_of_what_it_is_made_of(program: Program) -> None:
    order, memory, found = followed(program)
    naive = contents(program, order)
    number, segments = program.buffers.index("OUT"), found.segments
    for rank in range(program.ranks):
        for k in range(int(memory.spaces.size[rank, number])):
            address = int(memory.spaces.base[rank, number]) + k
            at = int(segments.start.searchsorted(address, side="right")) - 1
            assert segments.start[at] <= address < segments.stop[at]
            held, key = int(segments.content[at]), (rank, "OUT", k)
            if held == UNDEFINED:
                assert key not in naive
            elif held == GARBAGE:
                assert naive[key] is None
            else:
                made = found.origin_of(held, address + int(segments.delta[at])).counts
                assert naive[key] == Counter(
                    {spell(memory, r, a): count for (r, a), count in made.items()}
                )


@given(programs(steps=30))
def test_sums_are_told_from_what_looks_like_them(program: Program) -> None:
    """`are_sums` says yes exactly where every rank counts once, from the right place."""
    _, memory, found = followed(program)
    base = memory.spaces.base[:, program.buffers.index("IN")]
    here = found.segments.content >= 0
    roots = found.segments.content[here]
    at = found.segments.start[here] + found.segments.delta[here]
    offset = found.segments.start[here] % 8
    right = np.ones(len(memory.transfers), bool)
    said = found.are_sums(roots, offset - at, base, right)
    for root, there, want, answer in zip(roots, at, offset, said, strict=True):
        made = found.origin_of(int(root), int(there)).counts
        wanted = {(r, int(base[r] + want)): 1 for r in range(program.ranks)}
        assert answer == (made == wanted)


@given(programs(steps=30))
def test_undefined_reads_are_noted_once_and_no_others(program: Program) -> None:
    order, memory, found = followed(program)
    noted = {
        (int(memory.transfers.row[move]), address)
        for move, start, stop in found.undefined.tolist()
        for address in range(start, stop)
    }
    held: set[Byte] = {(r, "IN", k) for r in range(program.ranks) for k in range(8)}
    by_hand = set()
    for row in order:
        if program.tasks.kind[row] <= 7:
            src, dst = sides(program, row)
            for rank, name, k in src:
                if (rank, name, k) not in held:
                    number = program.buffers.index(name)
                    by_hand.add((row, int(memory.spaces.base[rank, number]) + k))
            held |= set(dst)
    assert noted == by_hand
