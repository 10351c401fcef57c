"""Scheduler, slices and tiles give numpy's result for every executor, link and interleaving."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, ReduceOp
from hccl_py.plugins.platforms import Adversary
from hccl_py.program.program import Program
from hccl_py.testing.calls import fitting
from hccl_py.testing.strategies import ops
from hccl_py.topology import Topology, topology_of
from hccl_py.verifier.sweeps.rounds import elements_per_round
from tests.platform.running import FAST, expected, run, same_bits, scheduled, whole_numbers
from tests.recording import BY_NAME, recorded

LAYOUTS = {
    "SDMA and RDMA": topology_of(12),
    "RDMA": topology_of(servers=4, devices=1),
    "both at every rank": topology_of(servers=3, devices=2),
}


class Case(NamedTuple):
    name: str
    op: OpParam
    topology: Topology
    ccl_bytes: int

    @property
    def program(self) -> Program:
        return recorded(self.name, self.op, self.topology, self.ccl_bytes)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    name = draw(st.sampled_from(sorted(BY_NAME)))
    executor = BY_NAME[name]()
    drawn = [topology_of(draw(st.integers(1, 8))), LAYOUTS[draw(st.sampled_from(sorted(LAYOUTS)))]]
    topology = next((t for t in drawn if fitting(executor, t)), None)
    assume(topology is not None)
    assert topology is not None
    count = st.sampled_from([0, 1, 5, 333, 1000])
    op = replace(draw(ops(executor, topology, count=count)), in_place=False)
    several_rounds = 256 * topology.size
    if elements_per_round(executor, op, topology, several_rounds) < 16:
        several_rounds += 4 * 16384 * topology.size
    awkward = several_rounds + draw(st.integers(0, 999))
    return Case(name, op, topology, draw(st.sampled_from([several_rounds, awkward, 1 << 20])))


@given(case=cases(), adversary=st.sampled_from(Adversary), seed=st.integers(0, 10**6))
def test_every_way_equals_numpy(case: Case, adversary: Adversary, seed: int) -> None:
    program = case.program
    inputs = whole_numbers(case.op, program.ranks, seed)
    wanted = expected(case.op, inputs)
    for way in (*FAST, scheduled(seed, adversary)):
        assert same_bits(run(program, inputs, way), wanted), way


def test_several_rounds_are_really_several() -> None:
    op = OpParam("all_reduce", 1000, DataType.FP64, ReduceOp.SUM)
    assert recorded("AllReduceComm", op, 4, 2048).rounds == 4


@pytest.mark.parametrize("name", ["AllReduceComm", "AllReduceMeshOpbaseLoopExecutor"])
@pytest.mark.parametrize("dtype", [DataType.FP16, DataType.BF16, DataType.FP32, DataType.FP64])
def test_rounded_sums_stay_within_their_bound(name: str, dtype: DataType) -> None:
    op = OpParam("all_reduce", 2000, dtype, ReduceOp.SUM)
    program = recorded(name, op, 8)
    rng = np.random.default_rng(5)
    inputs = [rng.standard_normal(op.count).astype(dtype.numpy) for _ in range(8)]
    exact = np.sum([i.astype(np.float64) for i in inputs], axis=0)
    size = np.sum([np.abs(i.astype(np.float64)) for i in inputs], axis=0)
    eps = {DataType.FP16: 2.0**-10, DataType.BF16: 2.0**-7, DataType.FP32: 2.0**-23}
    bound = 2 * 8 * eps.get(dtype, 2.0**-52) * size
    results = [run(program, inputs, way) for way in (*FAST, scheduled(1))]
    for outputs in results:
        for output in outputs:
            assert (np.abs(output.astype(np.float64) - exact) <= bound).all()
    assert same_bits(results[1], results[0]), "tiles keep the order of numpy slices"
    assert same_bits(results[2], results[0]), "threads keep it too"


def test_a_ring_reduces_in_the_same_order_in_every_interleaving() -> None:
    op = OpParam("all_reduce", 500, DataType.FP32, ReduceOp.SUM)
    program = recorded("AllReduceComm", op, topology_of(12))
    rng = np.random.default_rng(6)
    inputs = [rng.standard_normal(op.count).astype(np.float32) for _ in range(12)]
    wanted = run(program, inputs)
    for adversary in Adversary:
        assert same_bits(run(program, inputs, scheduled(3, adversary)), wanted)


@pytest.mark.parametrize("reduce", [ReduceOp.MAX, ReduceOp.MIN])
@pytest.mark.parametrize("dtype", [DataType.FP16, DataType.BF16, DataType.FP32, DataType.FP64])
def test_nan_wins_in_max_and_min(reduce: ReduceOp, dtype: DataType) -> None:
    op = OpParam("all_reduce", 64, dtype, reduce)
    program = recorded("AllReduceComm", op, 4)
    inputs = whole_numbers(op, 4)
    inputs[1][5] = inputs[2][7] = np.nan
    inputs[3][9] = np.inf
    for way in (*FAST, scheduled()):
        for output in run(program, inputs, way):
            assert np.flatnonzero(np.isnan(output)).tolist() == [5, 7]
            assert np.isinf(output[9]) == (reduce is ReduceOp.MAX)


def test_overflow_is_no_warning() -> None:
    op = OpParam("all_reduce", 64, DataType.FP16, ReduceOp.SUM)
    program = recorded("AllReduceComm", op, 4)
    inputs = [np.full(64, 60000, np.float16)] * 4
    for way in (*FAST, scheduled()):
        assert all(np.isinf(output).all() for output in run(program, inputs, way))
