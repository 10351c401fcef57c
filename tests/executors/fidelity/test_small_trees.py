"""The broadcast of small data, held against a model of HCCL's template."""

from dataclasses import replace

import pytest

from hccl_executors.broadcast.small_count import BroadCastSmallCountExecutor
from hccl_py.topology import topology_of
from tests.executors.fidelity.recorded import events_of
from tests.executors.fidelity.small_trees import BroadcastHD
from tests.recording import op_of, recorded


@pytest.mark.parametrize("ranks", [*range(3, 9), 16])
def test_every_post_wait_and_transfer(ranks: int) -> None:
    assert BroadCastSmallCountExecutor.fidelity.is_same
    topology = topology_of(ranks, preset="atlas-900-a3" if ranks > 8 else "atlas-800t-a2")
    for root in range(ranks):
        op = replace(op_of("broadcast", 100), root=root, in_place=True)
        program = recorded(BroadCastSmallCountExecutor, op, topology)
        for rank in range(ranks):
            found = events_of(program, rank)
            wanted = BroadcastHD(rank, ranks, root, 400).run()
            assert [found.get(0, []), found.get(1, [])] == wanted, (root, rank)
