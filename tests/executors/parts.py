"""Ops whose parts differ, for tests of their executors: random calls, and the whole judgement."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from hccl_py.call.op_param import OpParam, Table
from hccl_py.call.ops import ALL_TO_ALL
from hccl_py.enums import DataType, Mode
from hccl_py.operators import make_operator
from hccl_py.orchestration.record import record
from hccl_py.plugins.platforms import Adversary, Schedule
from hccl_py.program.program import Program
from hccl_py.topology import PRESETS, Topology
from hccl_py.verifier import verify
from hccl_py.verifier.classes import Severity
from hccl_py.verifier.numeric import run_numeric
from tests.recording import same_tasks

A2, A3, TRAIN = (PRESETS[name] for name in ("atlas-800t-a2", "atlas-900-a3", "atlas-800-9000"))

EVEN = (
    Topology(A2, (1,)),
    Topology(A2, (4,)),
    Topology(A2, (2, 2, 2)),
    Topology(A2, (3, 3)),
    Topology(A2, (1, 1, 1, 1)),
    Topology(A3, (2, 2, 2, 2), (2, 2)),
    Topology(A3, (3, 3)),
    Topology(TRAIN, (6,)).linked(inter_hccs=True, intra_roce=True),
)
UNEVEN = (
    Topology(A2, (3, 2)),
    Topology(A2, (1, 4)),
    Topology(A3, (2, 1, 3), (2, 1)),
    Topology(A2, (2, 3)).subset([4, 0, 3, 1]),
)
SCHEDULES = [Schedule(seed, adversary) for seed, adversary in enumerate(Adversary)]


@st.composite
def exchanges(
    draw: DrawFn,
    ranks: int,
    *,
    names: Sequence[str] = ALL_TO_ALL,
    modes: Sequence[Mode] = tuple(Mode),
) -> OpParam:
    """Draw a call of the all_to_all family: even, sparse or skewed, with gaps and in any order."""
    name = draw(st.sampled_from(names))
    most, empty = draw(st.sampled_from([7, 300, 1500])), draw(st.sampled_from([0.0, 0.5, 0.9]))
    op = OpParam(name, most, DataType.FP32, mode=draw(st.sampled_from(modes)))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 16)))
    full = rng.random((ranks, ranks)) >= empty
    table = rows_of(full * (most * rng.random((ranks, ranks)) ** 3).astype(int))
    if name == "all_to_all_v":
        ends = draw(st.integers(0, 2))
        places = [rng.permuted(np.tile(np.arange(ranks), (ranks, 1)), axis=1) for _ in range(ends)]
        displs = rows_of((most + 3) * np.hstack(places)) if ends else ()
        return replace(op, counts=table, displs=displs)
    return replace(op, matrix=table) if name == "all_to_all_vc" else op


def rows_of(table: npt.NDArray[Any]) -> Table:
    return tuple(map(tuple, table.tolist()))


def judged(executor: Any, op: OpParam, topology: Topology, ccl_bytes: int) -> Program:
    """Record a call; verify it, run it on data, and hold it against a recording rank by rank."""
    operator = make_operator(op.name)
    operator.check(op, topology)
    program = record(executor, op, topology, operator, ccl_bytes)
    alone = record(executor, op, topology, operator, ccl_bytes, by_rank=True)
    assert same_tasks(program, alone)
    found = verify(program, product=topology.product).findings
    assert not [f.message for f in found if f.severity is not Severity.HINT]
    numeric = run_numeric(program, [SCHEDULES[program.task_count % len(SCHEDULES)]])
    assert numeric.ok, numeric.wrong
    return program
