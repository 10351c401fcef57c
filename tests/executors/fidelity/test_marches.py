"""The semi rings of Atlas A3, held against a model of HCCL's unified march, streams and all."""

from collections.abc import Iterator
from functools import partial

import pytest

from hccl_py.enums import Mode
from hccl_py.topology import Topology, topology_of
from tests.executors.fidelity import marches
from tests.executors.fidelity.held import Held, Holders, compare
from tests.executors.fidelity.streams import Worker
from tests.executors.fidelity.transports import Event, even
from tests.recording import op_of

NAMES = {
    "AllGatherSemiRingExecutor": "all_gather",
    "ReduceScatterSemiRingExecutor": "reduce_scatter",
}


def _march(rank: int, op: str, ranks: int, count: int) -> list[list[Event]]:
    slots, me = [[slot] for slot in even(ranks, 4 * count)], Worker(rank, 2)
    if op == "all_gather":
        marches.all_gather(me, range(ranks), slots, op_base=False)
    else:
        marches.reduce_scatter(me, range(ranks), slots, 4, op_base=False)
    return me.streams


def _held(name: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """One element, even and uneven halves."""
    op = NAMES[name]
    for count in (1, 32, 77):
        known = partial(_march, op=op, ranks=at.size, count=count)
        yield Held(op_of(op, count, mode=mode), known)


HELD: Holders = dict.fromkeys(NAMES, _held)


@pytest.mark.parametrize("name", NAMES)
def test_two_ranks(name: str) -> None:
    """HCCL takes other executors for a pair; a march works there, too."""
    at = topology_of(2, preset="atlas-900-a3")
    for call in _held(name, at, Mode.GRAPH):
        compare(name, at, call)
