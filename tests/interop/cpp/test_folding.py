"""Steps that follow each other in C++ become loops where the fields are formulas of the turn."""

from collections.abc import Callable

import numpy as np
import pytest

from hccl_interop.cpp.export.fitting import Fitter
from hccl_interop.cpp.export.folding import CppStep, Loop, Node, fields_of, fold, key_of
from hccl_interop.cpp.export.points import Points, by_turn, depends_on, distinct

RANKS = 4
EVERY = np.arange(RANKS)
FITTER = Fitter(RANKS, RANKS)


def step(shape: str, number: Callable[[int], int] = lambda rank: 0) -> CppStep:
    """Return a step with one field, a number for every rank."""
    return CppStep(
        shape, {"at": Points.of_ranks(EVERY, np.array([number(r) for r in range(RANKS)]))}
    )


def outline(nodes: list[Node]) -> list[object]:
    """Return the shapes of steps, and of loops the number of turns and what is inside."""
    return [
        str(node.shape)
        if isinstance(node, CppStep)
        else (set(node.count.values.tolist()), outline(list(node.body)))
        for node in nodes
    ]


@pytest.mark.parametrize(
    ("shapes", "found"),
    [
        ("aaa", [({3}, ["a"])]),
        ("aa", ["a", "a"]),  # a loop of two turns is no shorter
        ("aab", ["a", "a", "b"]),
        ("baaac", ["b", ({3}, ["a"]), "c"]),
        ("ababab", [({3}, ["a", "b"])]),
        ("abababa", [({3}, ["a", "b"]), "a"]),
        ("abcabc", ["a", "b", "c", "a", "b", "c"]),
        ("abcdabcd", [({2}, ["a", "b", "c", "d"])]),
        ("aaabaaabaaab", [({3}, [({3}, ["a"]), "b"])]),
        ("aaaabbbb", [({4}, ["a"]), ({4}, ["b"])]),
    ],
)
def test_repeated_steps_become_loops(shapes: str, found: list[object]) -> None:
    assert outline(fold([step(shape) for shape in shapes], FITTER)) == found


def test_the_fields_of_a_loop_have_a_number_for_every_turn() -> None:
    turns = [CppStep("a", {"at": Points.of_ranks(EVERY, (EVERY + k) % RANKS)}) for k in range(5)]
    (loop,) = fold(turns, FITTER)
    assert isinstance(loop, Loop)
    (inner,) = loop.body
    (points,) = fields_of(inner)
    numbers = {
        tuple(p): v for p, v in zip(points.where.tolist(), points.values.tolist(), strict=True)
    }
    assert numbers == {(r, k): (r + k) % RANKS for r in range(RANKS) for k in range(5)}
    assert loop.count.where.tolist() == [[0], [1], [2], [3]]
    assert key_of(loop) == ("loop", "a")


def test_a_loop_that_would_hide_a_table_is_none() -> None:
    """Each step has a formula of its own; five together would have a table of 20 numbers, more than
    the 12 that four steps less are worth.
    """
    numbers: list[Callable[[int], int]] = [
        lambda r: r,
        lambda r: 3 - r,
        lambda r: r ^ 1,
        lambda r: 7,
        lambda r: 2 * r + 9,
    ]
    assert outline(fold([step("a", number) for number in numbers], FITTER)) == ["a"] * 5
    alike = [*numbers, *[lambda r: 2 * r + 9] * 3]  # the last four are the same
    assert outline(fold([step("a", number) for number in alike], FITTER)) == [
        *["a"] * 4,
        ({4}, ["a"]),
    ]


def test_points_are_joined_by_ranks_and_by_turns() -> None:
    low, high = (
        Points.of_ranks(np.array(r), np.array(v)) for r, v in (([0, 1], [5, 6]), ([2], [7]))
    )
    both = Points.joined([low, high])
    assert (both.where.tolist(), both.values.tolist()) == ([[0], [1], [2]], [5, 6, 7])
    turns = Points.looped([both, both])
    assert turns.where.tolist() == [[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1]]
    around = Points.looped([turns, turns])
    assert around.where[:7].tolist()[-1] == [0, 1, 0]  # the outer loop's counter stands first
    where, values = distinct(Points.joined([both, both]))
    assert (where.tolist(), values.tolist()) == ([[0], [1], [2]], [5, 6, 7])


@pytest.mark.parametrize(
    ("values", "depends"), [([1, 2, 1, 2], True), ([1, 2, 1, 3], False), ([1, 1, 1, 1], True)]
)
def test_equal_points_have_equal_numbers_or_not(values: list[int], depends: bool) -> None:
    where = np.array([[0], [1], [0], [1]])
    assert depends_on(where, np.array(values)) is depends
    alone = np.zeros((4, 0), np.int64)
    assert depends_on(alone, np.array(values)) is (len(set(values)) == 1)


def test_points_of_every_turn() -> None:
    loops = np.array([[0, 0], [0, 1], [1, 0], [0, 0]])
    assert [found.tolist() for found in by_turn(loops)] == [[0, 3], [1], [2]]
    assert [found.tolist() for found in by_turn(loops[:, :0])] == [[0, 1, 2, 3]]
