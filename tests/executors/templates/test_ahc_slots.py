"""AHC_BROKE of slots, over groups of different sizes: right, clean, and the members of a card."""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import count as counting

import numpy as np
import pytest

from hccl_executors.templates.ahc_slots import (
    ahc_broke_all_gather,
    ahc_broke_reduce_scatter,
    slot_peers_between,
    slot_peers_inside,
)
from hccl_py.enums import TaskKind
from hccl_py.topology import PRESETS, Topology
from tests.executors.flat import (
    FlatExecutor,
    flat_executor,
    flat_op,
    in_turn,
    record_flat,
    run_flat,
)

TEMPLATES = {"reduce_scatter": ahc_broke_reduce_scatter, "all_gather": ahc_broke_all_gather}

FEW = [(3,), (2, 3), (2, 2, 2, 2)]
MANY = [(1, 1), (3, 1), (4, 4), (1, 4), (8, 7), (2, 1, 3), (3, 5, 2), (1, 2, 3, 4)]


def links(groups: tuple[int, ...]) -> Callable[[int, int], Iterable[int]]:
    """Inside groups and between them."""
    parts = slot_peers_inside(groups), slot_peers_between(groups)
    return lambda index, size: sorted({peer for part in parts for peer in part(index, size)})


def slots(op: str, groups: tuple[int, ...]) -> FlatExecutor:
    return flat_executor(op, partial(TEMPLATES[op], groups=groups), links(groups))


@pytest.mark.parametrize("op", TEMPLATES)
@pytest.mark.parametrize(
    "groups", [*FEW, *(pytest.param(groups, marks=pytest.mark.sweep) for groups in MANY)], ids=str
)
def test_is_clean_and_right(op: str, groups: tuple[int, ...]) -> None:
    executor, case = slots(op, groups), counting(sum(groups))
    for layout in (sum(groups), Topology(PRESETS["mesh"], groups)):
        run_flat(executor, layout, schedules=in_turn(next(case)))
        run_flat(executor, layout, count=5, dtype="int64", schedules=in_turn(next(case)))


def test_a_card_has_the_members_of_large_groups_first() -> None:
    """Card 2 of groups of 2 and 3: member 4 has its slot, and member 0 goes without one."""
    executor = slots("reduce_scatter", (2, 3))
    tasks = record_flat(executor, 5, flat_op(executor, 1 << 10)).tasks
    group = np.array([0, 0, 1, 1, 1])
    moves = np.isin(tasks.kind, (TaskKind.READ, TaskKind.READ_REDUCE)) & (tasks.size > 0)
    across = moves & (group[tasks.rank] != group[tasks.peer])
    pairs = list(zip(tasks.rank[across].tolist(), tasks.peer[across].tolist(), strict=True))
    assert sorted(pairs) == [(0, 2), (1, 3), (2, 0), (3, 1), (4, 0)]


def test_a_group_takes_slots_as_many_at_a_time_as_it_has_members() -> None:
    """Groups of 2 and 3: three times two slots in the first, two times three in the second, and
    each once more without data where nothing is left over.
    """
    executor = slots("all_gather", (2, 3))
    tasks = record_flat(executor, 5, flat_op(executor, 1 << 10)).tasks
    group = np.array([0, 0, 1, 1, 1])
    inside = (tasks.kind == TaskKind.NOTIFY_POST) & (group[tasks.rank] == group[tasks.peer])
    posts = np.bincount(tasks.rank[inside], minlength=5)
    assert posts.tolist() == [2 * 4, 2 * 4, 2 * 2 * 3, 2 * 2 * 3, 2 * 2 * 3]
