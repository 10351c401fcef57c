"""A3's rings for blocks of different sizes: those of even blocks, and what differs."""

from dataclasses import replace

import numpy as np
import pytest

from hccl_executors.rings import superpods, superpods_v
from hccl_py.enums import Mode
from hccl_py.orchestration.rank import RankView
from hccl_py.plugins.executor import with_levels
from hccl_py.simulator.chain import longest_chain
from hccl_py.topology import topology_of
from hccl_py.verifier import verify
from hccl_py.verifier.numeric import run_numeric
from tests.executors.flat import in_turn
from tests.recording import op_of, recorded, same_tasks

A3 = "atlas-900-a3"
PAIRS = [
    ("AlignedAllGatherVDoubleRingFor91093Executor", "AlignedAllGatherDoubleRingFor91093Executor"),
    ("AllGatherVRingFor91093Executor", "AllGatherRingFor91093Executor"),
    (
        "AlignedReduceScatterVDoubleRingFor91093Executor",
        "AlignedReduceScatterDoubleRingFor91093Executor",
    ),
    (
        "ReduceScatterVFastDoubleRingFor91093Executor",
        "ReduceScatterFastDoubleRingFor91093Executor",
    ),
    ("ReduceScatterVRingFor91093Executor", "ReduceScatterRingFor91093Executor"),
]


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(("name", "even"), PAIRS)
def test_equal_blocks_are_the_even_op(name: str, even: str, mode: Mode) -> None:
    """HCCL's executors of blocks are those of the even ops with other slices."""
    topology = topology_of(superpods=2, servers=2, devices=4, preset=A3)
    executor = getattr(superpods_v, name)
    counts, displs = (100,) * 16, tuple(range(0, 1600, 100))
    blocks = replace(op_of(executor.op, mode=mode), counts=counts, displs=displs)
    blocks = replace(blocks, level1="ring", level2="NHR")
    op = op_of(getattr(superpods, even).op, 100, mode=mode)
    op = replace(op, level1="ring", level2="NHR")
    assert same_tasks(recorded(name, blocks, topology), recorded(even, op, topology))


@pytest.mark.parametrize("name", [name for name, _ in PAIRS])
def test_blocks_of_any_size(name: str) -> None:
    """Some without data, with gaps between them in user memory; on data in another order."""
    topology = topology_of(servers=2, devices=4, preset=A3)
    counts = (5000, 0, 17, 320, 1, 4096, 64, 0)
    displs = (7, 6000, 6000, 6100, 6500, 7000, 12000, 0)
    op = replace(op_of(superpods_v.__dict__[name].op), counts=counts, displs=displs, level1="NHR")
    program = recorded(name, op, topology)
    assert verify(program, product=topology.product).ok
    assert run_numeric(program, in_turn(3)).wrong is None


def test_the_largest_block_goes_all_the_way_round() -> None:
    """In halves, the two ways; one step more is the barrier."""
    size, topology = 4096, topology_of(8, preset=A3)
    op = replace(op_of("all_gather_v"), counts=(size // 4,) + (0,) * 7)
    program = recorded("AlignedAllGatherVDoubleRingFor91093Executor", op, topology)
    assert longest_chain(program)[:2] == (8, 7 * size // 2)


@pytest.mark.parametrize(("dtype", "unit", "lands"), [("fp32", 4, 1), ("int64", 8, 2)])
def test_scratch_holds_the_blocks(dtype: str, unit: int, lands: int) -> None:
    """In graph mode, once more where raw data lands; rounds are for blocks as large as any."""
    topology = topology_of(8, preset=A3)
    executor = superpods_v.AlignedReduceScatterVDoubleRingFor91093Executor()
    for mode, scratch in ((Mode.OP_BASE, 0), (Mode.GRAPH, 36 * unit * lands)):
        op = replace(op_of("reduce_scatter_v", dtype=dtype, mode=mode), counts=tuple(range(1, 9)))
        op = with_levels(executor, op)
        request = executor.resources(op, RankView(np.arange(8), op, topology, 1 << 20))
        assert request.scratch_bytes == scratch
        assert request.sub_streams == (3 if mode is Mode.OP_BASE else 1)
        assert request.max_count == (1 << 20) // 8 // unit


@pytest.mark.parametrize("counts", [(256,) * 8, (5000, 0, 17, 320, 1, 4096, 64, 0)])
@pytest.mark.parametrize("name", [name for name, _ in PAIRS])
def test_many_rounds(name: str, counts: tuple[int, ...]) -> None:
    """Also one without data, where blocks fill the buffer to the last byte."""
    topology = topology_of(servers=2, devices=4, preset=A3)
    op = replace(op_of(superpods_v.__dict__[name].op), counts=counts, level1="NHR")
    program = recorded(name, op, topology, 8 * 512)
    assert program.rounds > 1
    assert verify(program, product=topology.product).ok
    assert run_numeric(program, in_turn(3)).wrong is None
