"""Local reduces: the order of adding is the one that the docstring says."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_executors.templates.local_reduce import local_tree
from hccl_py.call.config import Config
from hccl_py.enums import TaskKind
from hccl_py.plugins.discovery import find_platform
from hccl_py.plugins.executor import OpParam, Rank, RankView, ResourceRequest, Topology
from hccl_py.plugins.platforms import Adversary, Group, Schedule
from hccl_py.topology import topology_of
from tests.recording import op_of, recorded

COUNT = 32


class InTree:
    """Reduces n pieces of its own input, in CCL_In, over one stream more than `subs`."""

    op = "all_reduce"
    algorithm = "level0:NA"
    subs = 2

    def suits(self, op: OpParam, topology: Topology) -> bool:
        return topology.size == 1

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        return ResourceRequest(sub_streams=self.subs)

    def orchestrate(self, op: OpParam, rank: Rank[Any, Any]) -> None:
        pieces = rank.ccl_in.head(op.size).split(op.count // COUNT, align=1)
        rank.main.copy(pieces, rank.user_in.split(op.count // COUNT, align=1))
        local_tree(rank, list(pieces))
        rank.main.copy(rank.user_out.head(pieces[0].size), pieces[0])


def tree(pieces: list[Any]) -> Any:
    while len(pieces) > 1:
        pairs = [pieces[i : i + 2] for i in range(0, len(pieces), 2)]
        pieces = [pair[0] + pair[1] if len(pair) == 2 else pair[0] for pair in pairs]
    return pieces[0]


def run(inputs: Any, schedule: Schedule) -> Any:
    program = recorded(InTree, op_of("all_reduce", inputs.size), topology_of(1))
    found = np.zeros(inputs.size, np.float32)
    session = find_platform("emulated").open(
        topology_of(1), Config(buffsize_mb=1), schedule, Group.world(1)
    )
    assert session is not None
    try:
        session.run("local", program, [inputs], [found])
    finally:
        session.close()
    return found[:COUNT]


@given(
    n=st.integers(1, 9),
    seed=st.integers(0, 1 << 20),
    adversary=st.sampled_from(Adversary),
)
def test_the_order_of_adding(n: int, seed: int, adversary: Adversary) -> None:
    random = np.random.default_rng(seed)
    inputs = (random.normal(size=n * COUNT) * 2.0 ** random.integers(-6, 6, n * COUNT)).astype("f4")
    pieces = np.split(inputs, n)
    assert (run(inputs, Schedule(seed, adversary)) == tree(pieces)).all()


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_a_tree_shares_its_streams(n: int) -> None:
    tasks = recorded(InTree, op_of("all_reduce", n * COUNT), topology_of(1)).tasks
    reduces = tasks.kind == int(TaskKind.REDUCE)
    assert reduces.sum() == n - 1
    assert len(set(tasks.stream[reduces].tolist())) == min(n // 2, 3)
