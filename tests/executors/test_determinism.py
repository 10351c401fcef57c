"""What an executor says of its `order` of adding is so: with real numbers, whose sum depends on it,
and in many interleavings.

    arrival  some interleaving gives other bits
    fixed    all give the same bits, at least where the call asks for that
    rank     they are the same for every element: of a loop over the ranks, or, in HCCL's
             order-preserved executors, by halving over devices and then over servers
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_executors.all_reduce.doubling import AllReduceDoubling
from hccl_executors.all_reduce.doubling_direct import AllReduceDoublingDirect
from hccl_executors.all_reduce.mesh_mid_count_loop import AllReduceMeshMidCountLoopExecutor
from hccl_executors.all_reduce.mesh_oneshot_loop import AllReduceMeshOneshotLoopExecutor
from hccl_executors.all_reduce.mesh_opbase_loop import AllReduceMeshOpbaseLoopExecutor
from hccl_executors.all_reduce.mesh_opbase_mid_count import (
    AllReduceMeshOpbaseMidCountDeterministicExecutor,
)
from hccl_executors.all_reduce.mesh_small_count import AllReduceMeshSmallCountExecutor
from hccl_executors.all_reduce.order_preserved import (
    AllReduceOrderPreservedExecutor,
    AllReduceOrderPreservedFor91093Executor,
)
from hccl_executors.all_reduce.reduce_plus_bcast import AllReduceReducePlusBcast
from hccl_executors.all_reduce.small_count_for_910 import AllReduceSmallCountFor910
from hccl_executors.flat_v import ReduceScatterVComm, ReduceScatterVFor310PRing
from hccl_executors.reduce_scatter.deter import ReduceScatterDeterExecutor
from hccl_executors.reduce_scatter.mesh_dma_elimination import (
    ReduceScatterMeshDmaEliminationExecutor,
)
from hccl_executors.reduce_scatter.order_preserved import (
    ReduceScatterOrderPreservedExecutor,
    ReduceScatterOrderPreservedFor91093Executor,
)
from hccl_executors.reduce_scatter_v.deter import ReduceScatterVDeterExecutor
from hccl_executors.reduce_scatter_v.mesh import ReduceScatterVMeshExecutor
from hccl_executors.reduce_scatter_v.mesh_opbase import ReduceScatterVMeshOpbaseExecutor
from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, Mode
from hccl_py.operators import make_operator
from hccl_py.plugins.discovery import find_platform
from hccl_py.plugins.platforms import Adversary, Group, Schedule
from hccl_py.program.program import Program
from hccl_py.topology import Topology, topology_of
from hccl_py.verifier import verify
from hccl_py.verifier.numeric import schedules_of
from tests.recording import filled, op_of, recorded

Array = npt.NDArray[Any]

IN_ORDER: list[Any] = [
    AllReduceOrderPreservedExecutor,
    AllReduceOrderPreservedFor91093Executor,
    ReduceScatterOrderPreservedExecutor,
    ReduceScatterOrderPreservedFor91093Executor,
]
FIXED: list[Any] = [
    AllReduceDoubling,
    AllReduceDoublingDirect,
    AllReduceMeshMidCountLoopExecutor,
    AllReduceMeshOneshotLoopExecutor,
    AllReduceMeshOpbaseMidCountDeterministicExecutor,
    AllReduceMeshSmallCountExecutor,
    AllReduceReducePlusBcast,
    AllReduceSmallCountFor910,
    ReduceScatterDeterExecutor,
    ReduceScatterVComm,
    ReduceScatterVDeterExecutor,
    ReduceScatterVFor310PRing,
    ReduceScatterVMeshExecutor,
]
OPEN: list[Any] = [
    AllReduceMeshOpbaseLoopExecutor,
    ReduceScatterMeshDmaEliminationExecutor,
    ReduceScatterVMeshOpbaseExecutor,
]
DTYPES = ("fp16", "bf16", "fp32")
COUNT = 120
RANKS = 4


def op_for(executor: Any, dtype: str = "fp32", ranks: int = RANKS) -> OpParam:
    """Return a call that asks for a fixed order and suits the executor, in op-base mode if that
    does.
    """
    for mode in Mode:
        op = filled(op_of(executor.op, COUNT, dtype, mode=mode), ranks)
        op = replace(op, deterministic=True)
        if executor().suits(op, topology_of(ranks)):
            return op
    raise AssertionError(f"{executor.__name__} suits no call")


def numbers(op: OpParam, ranks: int, seed: int = 0) -> list[Array]:
    """Return inputs of many magnitudes: hardly two orders give the same sum."""
    sizes = make_operator(op.name).user_bytes(op, ranks)[0] // op.unit
    random = np.random.default_rng(seed)
    wide = [random.normal(size=n) * 2.0 ** random.integers(-6, 6, n) for n in sizes.tolist()]
    return [values.astype(op.dtype.numpy) for values in wide]


def outputs(
    program: Program, topology: Topology, inputs: list[Array], schedule: Schedule
) -> list[Array]:
    """Run a program once."""
    sizes = make_operator(program.op.name).user_bytes(program.op, program.ranks)[1]
    found = [np.zeros(n // program.op.unit, program.op.dtype.numpy) for n in sizes.tolist()]
    session = find_platform("emulated").open(
        topology, Config(buffsize_mb=1), schedule, Group.world(topology.size)
    )
    assert session is not None
    try:
        session.run("determinism", program, inputs, found)
    finally:
        session.close()
    return found


def bits_of(executor: Any, dtype: str, schedules: list[Schedule]) -> list[bytes]:
    """Return the output of all ranks, once for each schedule."""
    op = op_for(executor, dtype)
    topology = topology_of(RANKS)
    program = recorded(executor, op, topology)
    inputs = numbers(op, RANKS)
    return [
        b"".join(out.tobytes() for out in outputs(program, topology, inputs, schedule))
        for schedule in schedules
    ]


def by_halving(op: OpParam, inputs: list[Array], team: int) -> list[Array]:
    """Return every rank's part of the sums of teams of so many ranks, then of these: the k-th of
    the upper half is added to the k-th of the lower one, which is the largest power of two below.
    """

    def halved(parts: list[Array]) -> Array:
        while len(parts) > 1:
            low = 1 << (len(parts) - 1).bit_length() - 1
            added = [
                (a + b).astype(op.dtype.numpy) for a, b in zip(parts, parts[low:], strict=False)
            ]
            parts = added + parts[len(added) : low]
        return parts[0]

    teams = [halved(inputs[at : at + team]) for at in range(0, len(inputs), team)]
    return parts_of(op, len(inputs), halved(teams))


def left_fold(op: OpParam, inputs: list[Array]) -> list[Array]:
    """Return every rank's part of ((x0 + x1) + x2) + ..., rounded after every step."""
    total = inputs[0].copy()
    for other in inputs[1:]:
        total = (total + other).astype(op.dtype.numpy)
    return parts_of(op, len(inputs), total)


def parts_of(op: OpParam, ranks: int, total: Array) -> list[Array]:
    """Return what every rank gets of all sums."""
    sizes = make_operator(op.name).user_bytes(op, ranks)[1] // op.unit
    if op.name == "all_reduce":
        return [total] * ranks
    return np.split(total, np.cumsum(sizes)[:-1].tolist())


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("executor", FIXED + IN_ORDER, ids=lambda e: e.__name__)
def test_all_interleavings_give_the_same_bits(executor: Any, dtype: str) -> None:
    assert executor.order in ("fixed", "rank")
    assert len(set(bits_of(executor, dtype, schedules_of(3)))) == 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("executor", OPEN, ids=lambda e: e.__name__)
def test_some_interleavings_give_other_bits(executor: Any, dtype: str) -> None:
    assert executor.order == "arrival"
    assert len(set(bits_of(executor, dtype, schedules_of(3)))) > 1


@pytest.mark.parametrize("executor", [e for e in FIXED + OPEN if e.op == "all_reduce"])
def test_all_ranks_have_the_same_bits(executor: Any) -> None:
    for found in bits_of(executor, "fp16", [Schedule(1)]):
        each = len(found) // RANKS
        assert {found[k * each : (k + 1) * each] for k in range(RANKS)} == {found[:each]}


@pytest.mark.parametrize("executor", FIXED, ids=lambda e: e.__name__)
def test_a_fixed_order_need_not_be_that_of_a_loop(executor: Any) -> None:
    assert executor.order == "fixed"
    op = op_for(executor)
    loop = b"".join(part.tobytes() for part in left_fold(op, numbers(op, RANKS)))
    assert bits_of(executor, "fp32", [Schedule()]) != [loop]


@given(
    executor=st.sampled_from(IN_ORDER),
    dtype=st.sampled_from(DTYPES),
    servers=st.integers(1, 4),
    devices=st.integers(1, 6),
    mode=st.sampled_from(Mode),
    count=st.integers(0, 300),
    schedule=st.builds(Schedule, st.integers(0, 1 << 30), st.sampled_from(Adversary)),
)
def test_order_preserving_sums_have_one_order(
    executor: Any,
    dtype: str,
    servers: int,
    devices: int,
    mode: Mode,
    count: int,
    schedule: Schedule,
) -> None:
    in_pods = executor.__name__.endswith("For91093Executor")
    topology = topology_of(servers=servers, devices=devices)
    if in_pods:
        shape = {"superpods": servers, "servers": devices, "devices": 2}
        topology = topology_of(preset="atlas-900-a3", **shape)
    op = op_of(executor.op, count, dtype, mode=mode)
    inputs = numbers(op, topology.size, schedule.seed)
    program = recorded(executor, op, topology, 1 << 13)
    found = outputs(program, topology, inputs, schedule)
    assert executor.order == "rank"
    team = devices * (2 if in_pods else 1)
    # Servers of one device are one team.
    wanted = by_halving(op, inputs, len(inputs) if team == 1 else team)
    for out, right in zip(found, wanted, strict=True):
        assert out.tobytes() == right.tobytes()


@pytest.mark.parametrize("executor", IN_ORDER + FIXED + OPEN, ids=lambda e: e.__name__)
def test_the_verifier_agrees(executor: Any) -> None:
    topology = topology_of(RANKS)
    report = verify(recorded(executor, op_for(executor), topology), product=topology.product)
    names = {finding.name for finding in report.findings}
    assert ("REDUCE_ORDER_NONDET" in names) == (executor.order == "arrival")


@pytest.mark.parametrize("executor", OPEN[1:], ids=lambda e: e.__name__)
def test_where_links_cannot_reduce_nothing_is_open(executor: Any) -> None:
    op, topology = op_for(executor, "fp64"), topology_of(RANKS, preset="mesh")
    assert not topology.reduces_inline(DataType.FP64, op.reduce)
    report = verify(recorded(executor, op, topology), product=topology.product)
    assert "REDUCE_ORDER_NONDET" not in {finding.name for finding in report.findings}


def test_one_that_could_do_either_way_looks_at_the_call() -> None:
    op, topology = op_for(ReduceScatterVMeshExecutor), topology_of(RANKS)
    program = recorded(ReduceScatterVMeshExecutor, replace(op, deterministic=False), topology)
    report = verify(program, product=topology.product)
    assert "REDUCE_ORDER_NONDET" in {finding.name for finding in report.findings}
    inputs = numbers(op, RANKS)
    runs = [outputs(program, topology, inputs, schedule) for schedule in schedules_of(3)]
    assert len({b"".join(out.tobytes() for out in found) for found in runs}) > 1
