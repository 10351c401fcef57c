"""The broadcast of small data, held against a model of HCCL's template."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest

from hccl_executors.broadcast.small_count import BroadCastSmallCountExecutor
from hccl_py.enums import Mode
from hccl_py.topology import Topology, topology_of
from tests.executors.fidelity.held import Held, Holders
from tests.executors.fidelity.recorded import events_of
from tests.executors.fidelity.small_trees import BroadcastHD
from tests.executors.fidelity.transports import Event
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


def _held(_: str, at: Topology, mode: Mode) -> Iterator[Held]:
    def streams(rank: int, root: int) -> list[list[Event]]:
        return BroadcastHD(rank, at.size, root, 400).run()

    for root in {0, at.size * 2 // 3}:
        op = replace(op_of("broadcast", 100, mode=mode), root=root, in_place=True)
        yield Held(op, partial(streams, root=root))


HELD: Holders = {"BroadCastSmallCountExecutor": _held}
