"""HCCL_DETERMINISTIC, from the setting to the bits that a communicator gives."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hccl_py import Communicator, DataType, OpParam, ReduceOp, Schedule
from hccl_py.plugins.platforms import Adversary

Array = npt.NDArray[Any]

WHERE: list[dict[str, Any]] = [
    {"ranks": 8},
    {"servers": 2, "devices": 4},
    {"servers": 5, "devices": 1},
    {"topology": "atlas-800-9000", "ranks": 8},
    {"topology": "atlas-900-a3", "ranks": 8},
    {"topology": "atlas-900-a3", "superpods": 2, "servers": 2, "devices": 2},
    {"topology": "300i-duo", "ranks": 5},
]
OLD = ("atlas-800-9000", "300i-duo")
"""HCCL refuses to add in rank order there."""

SCHEDULES = [
    Schedule(0),
    Schedule(1, Adversary.LATE_WIRE),
    Schedule(2, Adversary.SLOW_RANK),
    Schedule(3, Adversary.STARVED_STREAM),
]


def numbers(ranks: int) -> list[Array]:
    """Return fp16 inputs of many magnitudes: hardly two orders give the same sum."""
    random, count = np.random.default_rng(ranks), 40 * ranks
    return [
        (random.normal(size=count) * 2.0 ** random.integers(-6, 6, count)).astype(np.float16)
        for _ in range(ranks)
    ]


def bits(op: str, where: dict[str, Any], **settings: Any) -> list[bytes]:
    """Return what the ranks get, once for each schedule."""
    found = []
    for schedule in SCHEDULES:
        with Communicator(**where, schedule=schedule, **settings) as comm:
            more = {"root": 1} if op == "reduce" else {}
            outputs = getattr(comm, op)(numbers(comm.size), **more).outputs
        found.append(b"".join(out.tobytes() for out in outputs if out is not None))
    return found


def halved(parts: list[Array]) -> Array:
    """Add the k-th of what exceeds a power of two to the k-th, then of the upper halves."""
    while len(parts) > 1:
        low = 1 << (len(parts) - 1).bit_length() - 1
        above = parts[low:]
        parts = [a + b for a, b in zip(parts, above, strict=False)] + parts[len(above) : low]
    return parts[0]


def in_rank_order(op: str, where: dict[str, Any]) -> bytes:
    """Return sums by halves over servers, or superpods of A3, then over these, as the ranks get
    them; servers of one device are one.
    """
    with Communicator(**where) as comm:
        ranks, topology = comm.size, comm.topology
    teams = len(topology.superpods if where.get("topology") == "atlas-900-a3" else topology.servers)
    each = ranks // (teams if teams < ranks else 1)
    inputs = numbers(ranks)
    total = halved([halved(inputs[at : at + each]) for at in range(0, ranks, each)])
    return total.tobytes() * (ranks if op == "all_reduce" else 1)


@pytest.mark.sweep
@pytest.mark.parametrize("mode", ["op_base", "graph"])
@pytest.mark.parametrize("op", ["all_reduce", "reduce_scatter", "reduce"])
@pytest.mark.parametrize("where", WHERE, ids=str)
def test_deterministic_sums_do_not_depend_on_timing(
    where: dict[str, Any], op: str, mode: str
) -> None:
    assert len(set(bits(op, where, mode=mode, deterministic="true"))) == 1


@pytest.mark.sweep
@pytest.mark.parametrize("mode", ["op_base", "graph"])
@pytest.mark.parametrize("op", ["all_reduce", "reduce_scatter"])
@pytest.mark.parametrize("where", [w for w in WHERE if w.get("topology") not in OLD], ids=str)
def test_strict_sums_have_one_order(where: dict[str, Any], op: str, mode: str) -> None:
    assert set(bits(op, where, mode=mode, deterministic="strict")) == {in_rank_order(op, where)}


@pytest.mark.parametrize("mode", ["op_base", "graph"])
@pytest.mark.parametrize("op", ["reduce_scatter", "reduce"])
def test_other_sums_may_depend_on_timing(op: str, mode: str) -> None:
    assert len(set(bits(op, {"ranks": 4}, mode=mode, deterministic="false"))) > 1


def test_strict_keeps_a_fixed_order_where_nobody_adds_in_rank_order() -> None:
    op = OpParam("reduce_scatter_v", 10, DataType.FP16, ReduceOp.SUM, counts=(10,) * 8)
    with Communicator(8, deterministic="strict") as comm:
        selection = comm.plan(op).selection
    assert selection.executor == "ReduceScatterVDeterExecutor"
    assert selection.hccl_executor == "ReduceScatterVDeterExecutor"
    assert selection.reasons[-1].endswith("ReduceScatterVDeterExecutor does not add in rank order")
