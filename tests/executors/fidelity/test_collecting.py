"""ReduceScatterV in a fixed order, held against a model of HCCL's."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from hccl_executors import EXECUTORS
from hccl_py.enums import Mode
from hccl_py.topology import Topology, topology_of
from tests.executors.fidelity.collecting import Collector, reduce_scatter_v_deter, streams
from tests.executors.fidelity.held import Held, Holders, form_of
from tests.executors.fidelity.recorded import events_of
from tests.executors.fidelity.transports import Event
from tests.recording import op_of, recorded

NAME = "ReduceScatterVDeterExecutor"
KINDS = {executor.__name__: executor.fidelity.kind for executor in EXECUTORS}


def check(servers: int, devices: int, mode: Mode) -> None:
    """Compare all ranks and streams, with blocks of several sizes, some of them empty."""
    assert KINDS[NAME] == "same"
    where = topology_of(servers=servers, devices=devices)
    counts = tuple((7 * rank) % 5 * 16 for rank in range(where.size))
    op = replace(op_of("reduce_scatter_v", 0, mode=mode), counts=counts)
    program = recorded(NAME, op, where, 1 << 20)
    assert program.declared.sub_streams.tolist() == [streams(devices, servers)] * where.size
    for rank in range(where.size):
        me = Collector(rank, servers, devices, counts)
        reduce_scatter_v_deter(me)
        found = events_of(program, rank)
        assert [found.get(k, []) for k in range(program.streams)] == me.streams


@pytest.mark.parametrize("mode", Mode, ids=str)
@pytest.mark.parametrize(("servers", "devices"), [(1, 2), (1, 5), (1, 8), (2, 3), (3, 2)])
def test_blocks_are_collected_and_added(servers: int, devices: int, mode: Mode) -> None:
    check(servers, devices, mode)


@pytest.mark.sweep
def test_blocks_of_every_layout() -> None:
    for devices in range(2, 9):
        for servers in (1, 2, 5):
            check(servers, devices, Mode.OP_BASE)


def _held(_: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """Blocks of several sizes, some of them empty."""
    form, counts = form_of(at), tuple((7 * rank) % 5 * 16 for rank in range(at.size))

    def run(rank: int) -> list[list[Event]]:
        me = Collector(rank, form.all_servers, form.devices, counts)
        firsts = form.joined[:: form.devices]
        me.near = [number == form.joined[rank] for number in firsts]
        reduce_scatter_v_deter(me)
        return me.streams

    yield Held(replace(op_of("reduce_scatter_v", 0, mode=mode), counts=counts), run)


HELD: Holders = {NAME: _held}
