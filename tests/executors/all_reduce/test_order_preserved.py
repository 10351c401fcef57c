"""AllReduce in rank order, and by a star. Their sums: test_determinism.py."""

import pytest

from hccl_executors.all_reduce.order_preserved import AllReduceOrderPreservedExecutor
from hccl_py.topology import Topology, topology_of
from tests.executors.flat import moves
from tests.recording import op_of, recorded


@pytest.mark.parametrize(("servers", "devices"), [(1, 4), (2, 4), (3, 2)])
def test_chunks_go_inside_servers_and_then_between(servers: int, devices: int) -> None:
    """Of each server, a chunk goes to all other devices, then one between equal devices; back, a
    device reads a chunk of each other one, and NHR brings the blocks of servers.
    """
    topology = topology_of(servers=servers, devices=devices)
    p = servers * devices
    program = recorded(AllReduceOrderPreservedExecutor, op_of("all_reduce", 32 * p), topology)
    chunks = (devices - 1) * (servers + 1) + (servers - 1) * (1 + devices)
    assert moves(program)[1] == [chunks * 128] * p


def test_servers_must_be_equal() -> None:
    uneven = Topology(topology_of().product, (3, 1, 2))
    verdict = AllReduceOrderPreservedExecutor().suits(op_of("all_reduce"), uneven)
    assert "equal sizes" in repr(verdict)


def test_few_batches_whatever_the_ranks() -> None:
    """Who keeps what is at the end of a server's slots differs by device, not by server. With less
    data some slots are empty, and what servers send of the others is in other pieces.
    """
    topology = topology_of(servers=32, devices=8)
    program = recorded(AllReduceOrderPreservedExecutor, op_of("all_reduce", 1 << 17), topology)
    assert len(program.batches) <= 64
