"""Pairwise: every step a permutation, over links of any kind."""

import numpy as np
import pytest

from hccl_executors.all_to_all.full_mesh import RunAlltoAllVFullMesh
from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, TaskKind
from hccl_py.simulator import CostModel, simulate_tasks
from hccl_py.topology import Topology, topology_of
from tests.executors.parts import A2, judged

OP = OpParam("all_to_all", 1000, DataType.FP32)
FORMULA = CostModel.of("mesh").formula()


@pytest.mark.parametrize(
    "topology",
    [
        *(topology_of(size, preset="mesh") for size in (1, 2, 3, 8, 13)),
        *(topology_of(servers=size, devices=1) for size in (2, 5)),
        Topology(A2, (3, 2)),
    ],
    ids=repr,
)
def test_step_k_goes_to_the_kth_rank_after(topology: Topology) -> None:
    program = judged(RunAlltoAllVFullMesh(), OP, topology, 1 << 20)
    tasks, size = program.tasks, topology.size
    table = tasks.table
    moves = (tasks.end >= 0) & table.moves_data[tasks.instruction]
    steps = [
        int(program.labels[label].split()[1].split("/")[0])
        for label in table.label[tasks.instruction[moves]]
    ]
    peers = program.transports.peer[tasks.end[moves]]
    pushed = table.kind[tasks.instruction[moves]] == TaskKind.RDMA_WRITE
    distance = (peers - tasks.rank[moves]) % size
    assert (np.where(pushed, distance, (size - distance) % size) == steps).all()
    assert len(steps) == size * (size - 1)


@pytest.mark.parametrize("servers", [1, 8])
def test_cost(servers: int) -> None:
    topology = topology_of(servers=servers, devices=8 // servers)
    program = judged(RunAlltoAllVFullMesh(), OP, topology, 1 << 20)
    link = FORMULA.hccs if servers == 1 else FORMULA.roce
    formula = 7 * (2 * link.alpha_us + 4000 * link.beta_us)
    assert simulate_tasks(program, None, FORMULA).total_us == pytest.approx(formula)


def test_cost_with_skewed_amounts() -> None:
    amounts = np.random.default_rng(5).integers(0, 5000, (6, 6))
    op = OpParam("all_to_all_vc", 5000, DataType.FP32, matrix=tuple(map(tuple, amounts.tolist())))
    program = judged(RunAlltoAllVFullMesh(), op, topology_of(6, preset="mesh"), 1 << 20)
    ranks = np.arange(6)
    steps = [4 * amounts[ranks, (ranks + k) % 6] for k in range(1, 6)]
    most = sum(2 * FORMULA.hccs.alpha_us + sizes.max() * FORMULA.hccs.beta_us for sizes in steps)
    assert simulate_tasks(program, None, FORMULA).total_us <= most * 1.001
