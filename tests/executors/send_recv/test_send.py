"""SendExecutor: one message per rank and direction; rings do not block."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_executors.send_recv.send import SendExecutor
from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, Mode, TaskKind
from hccl_py.topology import topology_of
from tests.executors.parts import EVEN, UNEVEN, judged

OP = OpParam("send_recv", 900, DataType.FP32)


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_pairs(data: st.DataObject) -> None:
    topology = data.draw(st.sampled_from([*EVEN, *UNEVEN]))
    to = data.draw(st.permutations(range(topology.size)))
    pairs = data.draw(st.lists(st.sampled_from(list(enumerate(to))), unique=True))
    op = replace(OP, pairs=tuple(pairs), mode=data.draw(st.sampled_from(list(Mode))))
    judged(SendExecutor(), op, topology, data.draw(st.sampled_from([1 << 20, 1024])))


@pytest.mark.parametrize("ranks", [1, 2, 5])
@pytest.mark.parametrize("mode", list(Mode))
def test_the_ring_of_everyone(ranks: int, mode: Mode) -> None:
    for topology in (topology_of(ranks, preset="mesh"), topology_of(servers=ranks, devices=1)):
        judged(SendExecutor(), replace(OP, mode=mode), topology, 1 << 20)


def test_ranks_without_messages_do_nothing() -> None:
    topology = topology_of(4, preset="mesh")
    tasks = judged(SendExecutor(), replace(OP, pairs=((2, 0),)), topology, 1 << 20).tasks
    assert set(tasks.rank.tolist()) == {0, 2}
    assert (tasks.table.kind[tasks.instruction] == TaskKind.READ).sum() == 1
