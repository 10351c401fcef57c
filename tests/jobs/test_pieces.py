"""Columns are moved, joined and narrowed without a change of their values."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.enums import TaskKind
from hccl_py.jobs.pieces import Mapping, Piece, Shift, joined, narrowed
from hccl_py.program.instruction import COLUMNS, Instruction
from hccl_py.program.narrowing import Narrower
from hccl_py.values import PerRank, RankInt, values_of

LANES = 4
BASE = np.array([0, 1, 2, 3])
OTHER = np.array([3, 1, 0, 2])
TABLE = np.array([7, 5, 1, 0, 2])

COLUMN = st.one_of(
    st.integers(-1, 5),
    st.builds(PerRank, st.sampled_from([BASE, OTHER]), st.integers(0, 4)),
    st.builds(PerRank, st.sampled_from([BASE, OTHER]), st.integers(0, 9), st.just(5)),
    st.builds(
        PerRank,
        st.sampled_from([BASE, OTHER]),
        st.integers(0, 9),
        st.just(5),
        st.sampled_from([TABLE, TABLE.copy(), TABLE[::-1]]),
    ),
)
INSTRUCTION = st.builds(
    lambda kind, values: Instruction(kind, 0, **dict(zip(COLUMNS, values, strict=True))),
    st.sampled_from([TaskKind.COPY, TaskKind.READ]),
    st.lists(COLUMN, min_size=len(COLUMNS), max_size=len(COLUMNS)),
)
INSTRUCTIONS = st.lists(INSTRUCTION, min_size=1, max_size=3).map(tuple)


def lanes(value: RankInt, count: int = LANES) -> list[int]:
    return list(map(int, np.broadcast_to(values_of(value), count)))


def rows(piece: Piece) -> dict[int, list[tuple[int, ...]]]:
    """Return what each rank does."""
    count = len(piece.ranks)
    return {
        rank: [
            (int(i.kind), *(lanes(getattr(i, name), count)[lane] for name in COLUMNS))
            for i in piece.instructions
        ]
        for lane, rank in enumerate(piece.ranks.tolist())
    }


@given(st.lists(COLUMN, max_size=6), st.integers(-3, 3))
def test_mappings_are_applied_to_every_lane(columns: list[RankInt], by: int) -> None:
    square, shift = Mapping(lambda numbers: numbers * numbers), Shift(by)
    for column in columns:
        assert lanes(square(column)) == [value * value for value in lanes(column)]
        assert lanes(shift(column)) == [value + by for value in lanes(column)]
        assert square(column) is square(column)


def test_formulas_stay_formulas() -> None:
    ring = PerRank(BASE, 3, 4, TABLE[:4])
    moved, again = Shift(10)(ring), Shift(10)
    assert isinstance(moved, PerRank)
    assert (moved.base is BASE, moved.add, moved.mod) == (True, 3, 4)
    first, second = again(ring), again(PerRank(BASE, 1, 4, ring.table))
    assert isinstance(first, PerRank)
    assert isinstance(second, PerRank)
    assert first.table is second.table


@given(st.lists(INSTRUCTIONS, min_size=1, max_size=4))
def test_joined_pieces_do_what_they_did(parts: list[tuple[Instruction, ...]]) -> None:
    pieces = [Piece(BASE + LANES * number, part) for number, part in enumerate(parts)]
    found = joined(pieces)
    wanted = {rank: row for piece in pieces for rank, row in rows(piece).items()}
    assert {rank: row for piece in found for rank, row in rows(piece).items()} == wanted
    assert len(found) == len({tuple(i.kind for i in part) for part in parts})


def test_joined_formulas_stay_formulas() -> None:
    ring = [PerRank(BASE.copy(), 3, 5, TABLE.copy()) for _ in range(2)]
    task = Instruction(TaskKind.COPY, 0)
    pieces = [Piece(BASE + 4 * k, (task._replace(size=ring[k]),)) for k in range(2)]
    size = joined(pieces)[0].instructions[0].size
    assert isinstance(size, PerRank)
    assert (len(size.base), size.add, size.mod) == (8, 3, 5)


@given(INSTRUCTIONS, st.permutations(range(LANES)), st.integers(1, LANES))
def test_narrowed_pieces_do_what_they_did(
    instructions: tuple[Instruction, ...], order: list[int], count: int
) -> None:
    piece = Piece(np.array(order) + 10, instructions)
    kept = np.sort(piece.ranks[:count])
    part = Piece(kept, narrowed(Narrower(), piece, kept))
    wanted = rows(piece)
    assert rows(part) == {rank: wanted[rank] for rank in kept.tolist()}
