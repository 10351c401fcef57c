"""The semi rings of Atlas A3, held against a model of HCCL's unified march, streams and all."""

import pytest

from hccl_executors import EXECUTORS
from hccl_py.enums import Mode
from hccl_py.topology import topology_of
from tests.executors.fidelity import marches
from tests.executors.fidelity.recorded import events_of
from tests.executors.fidelity.streams import Worker
from tests.executors.fidelity.transports import even
from tests.recording import op_of, recorded

KINDS = {executor.__name__: executor.fidelity.kind for executor in EXECUTORS}


@pytest.mark.parametrize("op", ["all_gather", "reduce_scatter"])
def test_semi_rings(op: str) -> None:
    name = {"all_gather": "AllGather", "reduce_scatter": "ReduceScatter"}[op] + "SemiRingExecutor"
    assert KINDS[name] == "same"
    for ranks in (2, 4, 6, 10):
        for count in (1, 32, 77):
            call = op_of(op, count, mode=Mode.GRAPH)
            program = recorded(name, call, topology_of(ranks, preset="atlas-900-a3"), 1 << 20)
            slots = [[slot] for slot in even(ranks, 4 * count)]
            server = range(ranks)
            for rank in range(ranks):
                me = Worker(rank, 2)
                if op == "all_gather":
                    marches.all_gather(me, server, slots, op_base=False)
                else:
                    marches.reduce_scatter(me, server, slots, 4, op_base=False)
                found = events_of(program, rank)
                assert [found.get(k, []) for k in range(program.streams)] == me.streams
