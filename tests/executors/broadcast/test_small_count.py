"""The small broadcast: a tree, whatever the root."""

import pytest

from hccl_executors.broadcast.small_count import BroadCastSmallCountExecutor
from hccl_py.enums import Mode
from hccl_py.op_param import OpParam
from hccl_py.platforms import Schedule
from hccl_py.topology import Topology, topology_of
from hccl_py.verifier.numeric import run_numeric
from tests.executors.flat import moves
from tests.recording import op_of, recorded


def rooted(root: int, count: int = 100, mode: Mode = Mode.OP_BASE) -> OpParam:
    op = op_of("broadcast", count, mode=mode)
    return OpParam(op.name, op.count, op.dtype, root=root, mode=mode)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("servers", [(1,), (2,), (5,), (8,), (13,), (3, 2), (1, 1, 1, 1, 1)])
def test_everybody_receives_once(servers: tuple[int, ...], mode: Mode) -> None:
    topology = Topology(topology_of(preset="mesh").product, servers)
    for root in {0, topology.size // 2, topology.size - 1}:
        program = recorded(BroadCastSmallCountExecutor, rooted(root, mode=mode), topology)
        assert sum(moves(program)[0]) == topology.size - 1
        assert run_numeric(program, [Schedule(root)]).wrong is None


def test_links_and_batches_of_many_ranks() -> None:
    program = recorded(BroadCastSmallCountExecutor, rooted(3), topology_of(1024, preset="mesh"))
    assert program.transports.far.size == 2 * 1023
    assert len(program.batches) <= 12
