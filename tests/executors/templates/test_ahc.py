"""AHC over groups of different sizes: right, clean, with the cards of HCCL's example."""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import count as counting
from time import process_time

import numpy as np
import pytest

from hccl_executors.hierarchical import AllReduceMeshExecutor
from hccl_executors.templates.ahc import (
    ahc_all_reduce,
    ahc_broke_all_reduce,
    ahc_peers_between,
    ahc_peers_inside,
)
from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, Mode, ReduceOp, TaskKind
from hccl_py.errors import OrchestrationError, ParameterError
from hccl_py.topology import PRESETS, Topology, topology_of
from tests.executors.flat import (
    FlatExecutor,
    flat_executor,
    flat_op,
    in_turn,
    record_flat,
    run_flat,
)
from tests.recording import recorded

GROUPS = [
    *((5,), (1, 1), (2, 3), (3, 2), (4, 4), (1, 4), (8, 7), (2, 1, 3), (3, 5, 2)),
    *((2, 2, 2, 2), (1, 2, 3, 4), (3, 3, 2, 1, 1)),
]

LARGE = [(512, 512), (500, 524), (100, 200, 300, 424), (8,) * 128]


def links(groups: tuple[int, ...], broke: bool = False) -> Callable[[int, int], Iterable[int]]:
    """Inside groups and between them."""
    parts = ahc_peers_inside(groups, broke), ahc_peers_between(groups, broke)
    return lambda index, size: sorted({peer for part in parts for peer in part(index, size)})


def ahc(groups: tuple[int, ...], broke: bool = False) -> FlatExecutor:
    template = ahc_broke_all_reduce if broke else ahc_all_reduce
    return flat_executor("all_reduce", partial(template, groups=groups), links(groups, broke))


@pytest.mark.sweep
@pytest.mark.parametrize("broke", [False, True])
@pytest.mark.parametrize("groups", GROUPS, ids=str)
def test_is_clean_and_right(groups: tuple[int, ...], broke: bool) -> None:
    executor, case = ahc(groups, broke), counting(GROUPS.index(groups) + 3 * broke)
    for layout in (sum(groups), Topology(PRESETS["mesh"], groups)):
        run_flat(executor, layout, schedules=in_turn(next(case)))
        run_flat(executor, layout, count=5, reduce=ReduceOp.MAX, schedules=in_turn(next(case)))
        run_flat(executor, layout, dtype="int64", mode=Mode.GRAPH, schedules=in_turn(next(case)))
        run_flat(executor, layout, count=150_001, schedules=in_turn(next(case)))


def test_one_rank_has_nobody_to_talk_to() -> None:
    assert not np.any(run_flat(ahc((1,)), 1).tasks.kind == TaskKind.NOTIFY_POST)


def test_groups_of_2_and_3_have_the_cards_of_the_example() -> None:
    """Of six parts, members 0 and 2 share two, 0 and 3 one, 1 and 3 one, 1 and 4 two. A part is
    256 KiB at least: 128 for each group.
    """
    tasks = record_flat(ahc((2, 3)), 5, flat_op(ahc((2, 3)), 6 << 16), 4 << 20).tasks
    moves = tasks.kind == TaskKind.READ  # all-gather of the ring between: half of each card
    group = np.array([0, 0, 1, 1, 1])
    across = moves & (group[tasks.rank] != group[tasks.peer])
    cards = {
        (int(r), int(p)): int(s)
        for r, p, s in zip(tasks.rank[across], tasks.peer[across], tasks.size[across], strict=True)
    }
    assert {pair for pair in cards if pair[0] < pair[1]} == {(0, 2), (0, 3), (1, 3), (1, 4)}
    assert cards[0, 2] + cards[2, 0] == 2 * (cards[0, 3] + cards[3, 0]) == 2 * (256 << 10)


def test_broke_leaves_all_but_the_first_members_inside() -> None:
    groups = (2, 4)
    tasks = record_flat(ahc(groups, broke=True), 6, flat_op(ahc(groups), 1 << 17)).tasks
    side = np.array([0, 0, 1, 1, 1, 1])
    moves = np.isin(tasks.kind, (TaskKind.READ, TaskKind.READ_REDUCE))
    across = moves & (side[tasks.rank] != side[tasks.peer])
    pairs = set(zip(tasks.rank[across].tolist(), tasks.peer[across].tolist(), strict=True))
    assert pairs == {(0, 2), (2, 0), (1, 3), (3, 1)}


def test_links_are_those_inside_and_of_the_cards() -> None:
    assert [list(links((2, 3))(i, 5)) for i in range(5)] == [
        [1, 2, 3], [0, 3, 4], [0, 3, 4], [0, 1, 2, 4], [1, 2, 3],
    ]  # fmt: skip
    assert list(links((2, 3), broke=True)(4, 5)) == [2, 3]


@pytest.mark.sweep
@pytest.mark.parametrize(("count", "room"), [(200_000, 1 << 20), (150_000_001, 1 << 30)])
@pytest.mark.parametrize("broke", [False, True])
@pytest.mark.parametrize("groups", LARGE, ids=lambda groups: str(groups[:4]))
def test_a_thousand_ranks_are_recorded_in_few_batches(
    groups: tuple[int, ...], broke: bool, count: int, room: int
) -> None:
    """Members who have no share hand on what others have of it in other pieces: with uneven groups
    a batch may have five members on average.
    """
    executor, begin = ahc(groups, broke), process_time()
    program = record_flat(executor, 1024, flat_op(executor, count), room)
    assert len(program.batches) <= (205 if len(set(groups)) > 1 else 15)
    assert process_time() - begin < 10  # it takes three seconds at most


@pytest.mark.parametrize("groups", [(2, 2), (), (5, 0), (6, -1)], ids=str)
def test_groups_must_make_up_the_plane(groups: tuple[int, ...]) -> None:
    with pytest.raises(ParameterError, match="do not make up a plane of 5") as caught:
        links(groups)(0, 5)
    assert "consecutive members" in caught.value.hint
    with pytest.raises(OrchestrationError, match="do not make up a plane of 5"):
        record_flat(ahc(groups), 5, flat_op(ahc(groups)))


def test_work_at_another_place_of_every_device_takes_no_batch_of_its_own() -> None:
    op = OpParam("all_reduce", 5000, DataType.parse("fp32"), ReduceOp.SUM, level1="AHC")
    program = recorded(AllReduceMeshExecutor, op, topology_of(servers=3, devices=8))
    assert len(program.batches) == 1
