"""What ops demand, held against the definition by single ranks and sets of ranks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.operators import OPERATORS, make_operator
from hccl_py.simulator.demands import demand_of
from tests.recording import filled, op_of


@given(st.sampled_from(sorted(OPERATORS)), st.integers(2, 9), st.integers(0, 50), st.data())
def test_sets_of_one_rank_and_of_all_others(
    name: str, ranks: int, count: int, data: st.DataObject
) -> None:
    variants = make_operator(name).variants()
    op = data.draw(st.sampled_from(variants))(op_of(name, count), ranks)
    demand = demand_of(op, ranks)
    for rank in range(ranks):
        alone = np.arange(ranks) == rank
        assert demand.into(alone) == demand.enter[rank]
        assert demand.into(~alone) == demand.leave[rank]
    assert demand.total >= max(demand.enter.sum(), demand.leave.sum())


@given(st.sampled_from(sorted(OPERATORS)), st.integers(2, 9), st.data())
def test_a_set_gets_no_more_than_its_ranks_need(name: str, ranks: int, data: st.DataObject) -> None:
    demand = demand_of(filled(op_of(name, 24), ranks), ranks)
    inside = np.array(data.draw(st.lists(st.booleans(), min_size=ranks, max_size=ranks)))
    if inside.any() and not inside.all():
        assert demand.into(inside) <= demand.enter[inside].sum()


@pytest.mark.parametrize(
    ("name", "enter", "leave", "total"),
    [
        ("all_reduce", [40] * 4, [40] * 4, 240),
        ("all_gather", [120] * 4, [40] * 4, 480),
        ("reduce_scatter", [40] * 4, [120] * 4, 480),
        ("broadcast", [0, 40, 40, 40], [40, 0, 0, 0], 120),
        ("reduce", [40, 0, 0, 0], [0, 40, 40, 40], 120),
        ("scatter", [0, 40, 40, 40], [120, 0, 0, 0], 120),
        ("gather", [120, 0, 0, 0], [0, 40, 40, 40], 120),
        ("all_to_all", [120] * 4, [120] * 4, 480),
        ("all_gather_v", [240, 200, 160, 240], [40, 80, 120, 40], 840),
        ("send_recv", [40] * 4, [40] * 4, 160),
        ("barrier", [0] * 4, [0] * 4, 0),
    ],
)
def test_four_ranks_with_ten_floats(
    name: str, enter: list[int], leave: list[int], total: int
) -> None:
    demand = demand_of(filled(op_of(name, 10), 4), 4)
    assert demand.enter.tolist() == enter
    assert demand.leave.tolist() == leave
    assert demand.total == total


def test_a_message_to_oneself_goes_nowhere() -> None:
    op = make_operator("batch_send_recv").variants()[0](op_of("batch_send_recv", 10), 1)
    assert demand_of(op, 1).total == 0
