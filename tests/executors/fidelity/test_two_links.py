"""Two dies over SIO and HCCS at once, held against models of HCCL's: every post, wait, transfer."""

from collections.abc import Iterator
from functools import partial

import pytest

from hccl_executors import EXECUTORS
from hccl_py.clocks.links import ports_of
from hccl_py.enums import Mode
from hccl_py.program.program import Program
from hccl_py.topology import Topology, topology_of
from hccl_py.topology.networks import ProductNetwork
from hccl_py.topology.networks.product import MEDIA
from hccl_py.topology.presets import PRESETS
from tests.executors.fidelity.held import Held, Holders
from tests.executors.fidelity.recorded import events_of
from tests.executors.fidelity.two_links import (
    LINKS,
    all_gather_hccs_sio,
    reduce_scatter_hccs_sio,
)
from tests.recording import op_of, recorded

KINDS = {executor.__name__: executor.fidelity.kind for executor in EXECUTORS}
MODELS = {
    "AllGatherHccsSioExecutor": ("all_gather", all_gather_hccs_sio),
    "ReduceScatterHccsSioExecutor": ("reduce_scatter", reduce_scatter_hccs_sio),
}
CCL = 2100
"""Room for 512 elements of four bytes, as slices are of 128."""

A3 = PRESETS["atlas-900-a3"]
PLACES = {
    "the first package": topology_of(2, preset="atlas-900-a3"),
    "another package": Topology.placed(A3, [0, 0], [6, 7]),
}


def media(program: Program, topology: Topology, rank: int, stream: int) -> set[str]:
    """The sorts of links over which a stream of a rank meets its peer."""
    tasks, ends = program.tasks, program.transports
    ports, network = ports_of(topology, ends), ProductNetwork(topology)
    rows = range(int(tasks.first[rank]), int(tasks.first[rank + 1]))
    used = {int(tasks.end[k]) for k in rows if tasks.stream[k] == stream} - {-1}
    found = network.media(ends.rank, ends.peer, ports)
    return {MEDIA[found[end]] for end in used}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", ["fp32", "int8"])
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("name", MODELS)
def test_two_dies(name: str, mode: Mode, dtype: str, place: str) -> None:
    """One element, an odd number, a full round, and several rounds."""
    assert KINDS[name] == "same"
    op, model = MODELS[name]
    topology, graph = PLACES[place], mode is Mode.GRAPH
    for count in (1, 2, 333, 512, 513, 1333, 5001):
        call = op_of(op, count, dtype, mode=mode)
        program = recorded(name, call, topology, CCL)
        for rank in range(2):
            hccl = model(rank, count, call.dtype.itemsize, CCL, graph=graph)
            found = events_of(program, rank)
            assert [found.get(k, []) for k in range(len(hccl))] == hccl, (count, rank)
            assert program.streams == len(hccl)
            for stream, link in enumerate(LINKS, start=1):
                assert media(program, topology, rank, stream) == {link}


def _held(name: str, _: Topology, mode: Mode) -> Iterator[Held]:
    """A round, and several."""
    op, model = MODELS[name]
    for count in (333, 1333):
        known = partial(model, count=count, unit=4, ccl=CCL, graph=mode is Mode.GRAPH)
        yield Held(op_of(op, count, mode=mode), known, CCL)


HELD: Holders = dict.fromkeys(MODELS, _held)
