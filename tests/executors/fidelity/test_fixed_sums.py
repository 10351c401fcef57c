"""All-reduces whose sums have a fixed order, in one server, held against models of HCCL's."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from hccl_executors import EXECUTORS
from hccl_py.enums import Mode
from hccl_py.topology import Topology, topology_of
from tests.executors.fidelity import fixed_sums
from tests.executors.fidelity.held import Held, Holders
from tests.executors.fidelity.meshes import Mesh
from tests.executors.fidelity.recorded import events_of
from tests.executors.fidelity.transports import Event
from tests.recording import op_of, recorded

KINDS = {executor.__name__: executor.fidelity.kind for executor in EXECUTORS}
SIZES = (4, 516, 4 * 333, 40_000, 1 << 20)
"""Less than a slice for everybody, uneven, and more than 16 KiB for everybody."""


def check(
    name: str,
    ranks: int,
    model: Callable[[Mesh, int, int], None],
    size: int,
    *,
    preset: str = "atlas-800t-a2",
    mode: Mode = Mode.OP_BASE,
    dtype: str = "fp32",
) -> None:
    assert KINDS[name] == "same"
    op = op_of("all_reduce", size // 4, dtype, mode=mode)
    program = recorded(name, op, topology_of(ranks, preset=preset), 1 << 22)
    for rank in range(ranks):
        me = Mesh(rank, ranks, program.streams - 1)
        model(me, op.size, op.unit)
        found = events_of(program, rank)
        assert [found.get(k, []) for k in range(program.streams)] == me.streams


@pytest.mark.parametrize("ranks", range(2, 9))
@pytest.mark.parametrize("size", SIZES)
def test_every_chunk_meets_the_peers_in_turn(ranks: int, size: int) -> None:
    """Two ranks read each other's data in one step."""
    name = "AllReduceMeshOneshotLoopExecutor"
    model = fixed_sums.one_shot if ranks == 2 else fixed_sums.chunk_mesh
    check(name, ranks, model, size)
    if ranks > 2:
        check(name, ranks, fixed_sums.chunk_mesh, size, mode=Mode.GRAPH)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_chunks_are_collected_and_reduced_by_halves(ranks: int, size: int) -> None:
    check("AllReduceMeshMidCountLoopExecutor", ranks, fixed_sums.local_reduce, size)


@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize("size", SIZES)
def test_doubling_into_user_memory(ranks: int, size: int) -> None:
    preset = "300i-duo"
    check("AllReduceDoublingDirect", ranks, fixed_sums.doubling_direct, size, preset=preset)


def _held(name: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """All sizes; the streams that are asked for: one for every peer but, at times, main's."""
    models = {
        "AllReduceMeshOneshotLoopExecutor": fixed_sums.chunk_mesh,
        "AllReduceMeshMidCountLoopExecutor": fixed_sums.local_reduce,
        "AllReduceDoublingDirect": fixed_sums.doubling_direct,
    }
    model = models[name]
    if name == "AllReduceMeshOneshotLoopExecutor" and at.size == 2:
        model = fixed_sums.one_shot

    def run(rank: int, size: int) -> list[list[Event]]:
        me = Mesh(rank, at.size, subs[name])
        model(me, size, 4)
        return me.streams

    subs = dict.fromkeys(models, at.size - 1 - (mode is Mode.GRAPH))
    subs["AllReduceDoublingDirect"] = 0
    for size in SIZES:
        yield Held(op_of("all_reduce", size // 4, mode=mode), partial(run, size=size), 1 << 22)


HELD: Holders = dict.fromkeys(
    (
        "AllReduceMeshOneshotLoopExecutor",
        "AllReduceMeshMidCountLoopExecutor",
        "AllReduceDoublingDirect",
    ),
    _held,
)
