"""Subplanes: templates run on groups of a plane's members as they do on planes."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from hccl_executors.templates.ring import ring_all_gather, ring_reduce_scatter
from hccl_py.errors import OrchestrationError
from hccl_py.orchestration import Plane, Region, Stream
from hccl_py.orchestration.subplane import Subplane
from hccl_py.verifier.numeric import schedules_of
from tests.executors.flat import flat_executor, flat_op, record_flat, run_flat
from tests.verifier.programs import MESH, authored


def all_reduce(stream: Stream, plane: Plane, work: Region) -> None:
    chunks = work.split(plane.size)
    ring_reduce_scatter(stream, plane, chunks)
    ring_all_gather(stream, plane, chunks)


def seen(
    look: Callable[[Plane], Any], groups: Sequence[Sequence[int]], ranks: int = 4
) -> list[Any]:
    """Return what every rank sees of its subplane of the flat plane."""
    found: dict[int, Any] = {}

    def body(rank: Any) -> None:
        found[int(rank.id)] = look(Subplane(rank.flat, groups))

    authored(body, MESH, topology=ranks)
    return [found[rank] for rank in range(ranks)]


def test_every_rank_has_index_and_size_in_its_own_group() -> None:
    assert seen(lambda plane: (int(plane.id), int(plane.size)), [[3, 1, 0], [2]]) == [
        (2, 3), (1, 3), (0, 1), (0, 3),
    ]  # fmt: skip


def test_links_lead_to_the_members_of_the_group() -> None:
    assert seen(lambda plane: int(plane.right.peer), [[3, 1], [0, 2]]) == [2, 3, 0, 1]


def test_others_are_the_group_without_oneself() -> None:
    peers = seen(lambda plane: [int(link.peer) for _, link in plane.others()], [[0, 2, 3]])
    assert peers == [[3, 2], [], [0, 3], [2, 0]]


def test_a_rank_outside_of_all_groups_is_alone() -> None:
    assert seen(lambda plane: (int(plane.id), int(plane.size)), [[2, 1]])[0] == (0, 1)


def test_subplanes_of_subplanes_count_in_their_parent() -> None:
    def look(plane: Plane) -> int:
        return int(Subplane(plane, [[0, 3], [1, 2]]).left.peer)

    assert seen(look, [[3, 2, 1, 0]]) == [3, 2, 1, 0]


@pytest.mark.parametrize("p", [2, 4, 6, 10])
def test_templates_run_on_halves_and_then_across(p: int) -> None:
    """Members 0 .. h - 1 backwards, and h .. 2h - 1; then member i with h + i."""
    half = p // 2

    def template(stream: Stream, plane: Plane, work: Region) -> None:
        all_reduce(stream, Subplane(plane, [range(half)[::-1], range(half, p)]), work)
        all_reduce(stream, Subplane(plane, [(i, half + i) for i in range(half)]), work)

    executor = flat_executor("all_reduce", template, "mesh")
    run_flat(executor, p, schedules=schedules_of(1), allowed=["RESOURCE_UNUSED"])


def test_groups_may_share_members_where_each_rank_says_which_is_its_own() -> None:
    def body(rank: Any) -> None:
        plane = Subplane(rank.flat, [[1, 2, 3, 0], [0, 1, 2]], 1 - rank.id // 2)
        assert (int(plane.size), int(plane.id)) == {
            0: (3, 0), 1: (3, 1), 2: (4, 1), 3: (4, 2),
        }[int(rank.id)]  # fmt: skip

    authored(body, MESH, topology=4)


WRONG: list[tuple[Sequence[Sequence[int]], str]] = [
    ([], "There are no groups"),
    ([[0], []], "Group 1 is empty"),
    ([[0, 1], [2, 4]], "Group 1 names member 4 of plane flat, which has 4"),
    ([[-1]], "Group 0 names member -1 of plane flat, which has 4"),
    ([[0, 1, 0]], "Member 0 is twice in group 0"),
    ([[0, 1], [3, 1]], "Member 1 is in groups 0 and 1"),
]


@pytest.mark.parametrize(("groups", "message"), WRONG, ids=lambda value: str(value))
def test_wrong_groups_are_refused(groups: Sequence[Sequence[int]], message: str) -> None:
    with pytest.raises(OrchestrationError, match=message) as caught:
        seen(lambda plane: plane, groups)
    assert "0 to plane.size - 1" in caught.value.hint


def test_a_rank_is_refused_in_a_group_that_it_is_not_in() -> None:
    def look(plane: Plane) -> None:
        pass

    with pytest.raises(OrchestrationError, match="Member 2 is not in group 0, said to be its own"):
        authored(lambda rank: look(Subplane(rank.flat, [[0, 1]], 0)), MESH, topology=4)


def test_a_member_that_does_not_exist_is_refused() -> None:
    with pytest.raises(OrchestrationError, match="Plane part of flat has no member 2 of 2"):
        seen(lambda plane: plane[2], [[0, 1], [2, 3]])


def test_large_groups_stay_in_one_batch() -> None:
    def template(stream: Stream, plane: Plane, work: Region) -> None:
        all_reduce(stream, Subplane(plane, [range(k, 1024, 32) for k in range(32)]), work)

    def near(index: int, size: int) -> list[int]:
        return [(index + 32) % size, (index - 32) % size]

    executor = flat_executor("all_reduce", template, near)
    assert len(record_flat(executor, 1024, flat_op(executor, 4096)).batches) == 1
