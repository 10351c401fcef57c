"""Units of data: no task and no output has a cut at one end alone, and there are no more."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from hccl_py.enums import Mode, moves_data
from hccl_py.program.describe import ByteRange, ranges_of
from hccl_py.program.program import Program
from hccl_py.topology.presets import PRESETS
from hccl_py.trace.pictures.data_units import Units
from hccl_py.verifier.analysis.meaning import EVERYONE, expected_ranges
from tests.recording import recorded
from tests.suited import SuitedCall, suited

Cuts = dict[tuple[int, int], set[int]]
"""By rank and buffer."""


def moves(program: Program) -> list[tuple[ByteRange, ByteRange]]:
    """Source and destination of all tasks that move data, and of each output from every rank."""
    view, into, out = program.tasks, program.buffers.index("IN"), program.buffers.index("OUT")
    rows = [row for row in range(len(view.kind)) if moves_data(view.kind[row]) and view.size[row]]
    found = [ranges_of(program, row) for row in rows]
    meaning = expected_ranges(program.op, program.ranks)
    columns = meaning.rank, meaning.start, meaning.stop, meaning.source, meaning.offset
    for rank, start, stop, source, low in zip(*(c.tolist() for c in columns), strict=True):
        for one in range(program.ranks) if source == EVERYONE else [source]:
            read = ByteRange(one, into, low, low + stop - start)
            found.append((read, ByteRange(rank, out, start, stop)))
    return found


def cut_until_alike(program: Program) -> Cuts:
    """The cuts at all ends, carried to the other ends again and again until none is new."""
    pairs = moves(program)
    cuts: Cuts = defaultdict(set)
    for memory in (memory for pair in pairs for memory in pair):
        cuts[memory.rank, memory.buffer] |= {memory.start, memory.stop}
    while True:
        before = sum(map(len, cuts.values()))
        for pair in pairs:
            for here, there in (pair, pair[::-1]):
                inside = {cut for cut in cuts[here[:2]] if here.start < cut < here.stop}
                cuts[there[:2]] |= {cut - here.start + there.start for cut in inside}
        if sum(map(len, cuts.values())) == before:
            return cuts


@given(
    call=suited(
        tuple(sorted(PRESETS)),
        st.sampled_from([(2,), (3,), (4,), (2, 2), (1, 3)]),
        (1, 7, 96),
        ("fp32", "int8"),
        tuple(Mode),
    )
)
def test_cuts_are_those_that_moves_carry(call: SuitedCall) -> None:
    program = recorded(*call, 1 << 16)
    units = Units(program, expected_ranges(program.op, program.ranks))
    for (rank, buffer), cuts in cut_until_alike(program).items():
        assert units.cuts[units.slot(rank, buffer)] == sorted(cuts)
    for src, dst in moves(program):
        assert len(units.within(src)) == len(units.within(dst)) > 0
