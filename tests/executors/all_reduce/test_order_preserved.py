"""AllReduce in rank order: two steps, on every layout. Its sums: test_determinism.py."""

import pytest

from hccl_executors.all_reduce.order_preserved import AllReduceOrderPreservedExecutor
from hccl_executors.all_reduce.reduce_plus_bcast import AllReduceReducePlusBcast
from hccl_py.topology import Topology, topology_of
from tests.executors.flat import moves
from tests.recording import op_of, recorded


@pytest.mark.parametrize("servers", [(4,), (4, 4), (3, 1, 2)])
def test_everybody_writes_every_chunk_twice(servers: tuple[int, ...]) -> None:
    topology = Topology(topology_of().product, servers)
    p = topology.size
    count = 32 * p
    program = recorded(AllReduceOrderPreservedExecutor, op_of("all_reduce", count), topology)
    assert moves(program) == ([2 * (p - 1)] * p, [2 * (p - 1) * 128] * p)


def test_many_ranks_are_one_batch() -> None:
    topology = topology_of(256, preset="mesh")
    program = recorded(AllReduceOrderPreservedExecutor, op_of("all_reduce"), topology)
    assert len(program.batches) == 1


def test_reduce_and_broadcast_only_load_rank_0() -> None:
    program = recorded(AllReduceReducePlusBcast, op_of("all_reduce"), 4)
    assert moves(program)[0] == [3, 1, 1, 1]
    assert program.transports.far.size == 6
