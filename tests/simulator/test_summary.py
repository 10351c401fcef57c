"""What a timeline says in short."""

import pytest

from hccl_py import Communicator
from hccl_py.call.op_param import OpParam
from hccl_py.clocks.cost import CostModel
from hccl_py.enums import DataType
from hccl_py.simulator.entry import simulate
from hccl_py.simulator.summary import MOST, Summary


def test_the_phases_are_the_whole_time() -> None:
    comm = Communicator(ranks=4)
    program = comm.plan(OpParam("all_gather", 1024, DataType.FP32)).program
    timeline = simulate(program, comm.topology, CostModel.of("study"))
    summary = Summary(timeline)
    assert sum(summary.phases().values()) == pytest.approx(timeline.total_us)
    assert len(summary.first_tasks(MOST)) <= MOST
