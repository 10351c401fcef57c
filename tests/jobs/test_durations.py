"""Kernels that take another time at every rank: one batch, and the same program as rank by rank."""

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import hccl_py
from hccl_py.enums import DataType, ReduceOp, TaskKind
from hccl_py.jobs import Job, JobProgram
from hccl_py.simulator import CostModel
from hccl_py.simulator.batches import simulate_batches

RANKS = 4
WORLD = hccl_py.Communicator(ranks=RANKS)
OP = hccl_py.OpParam("all_reduce", 4096, DataType.FP32, ReduceOp.SUM)


def program_of(durations: list[list[float]], *, one_by_one: bool) -> JobProgram:
    job = Job(WORLD.topology)
    compute, comm = job.stream("compute"), job.stream("comm")
    for us in durations:
        if one_by_one:
            for rank in range(RANKS):
                compute.on([rank]).compute(us[rank], "kernel")
        else:
            compute.compute(us, "kernel")
        comm.wait(compute.record())
        comm.run(WORLD, OP)
    compute.wait(comm.record())
    return job.program()


DURATIONS = st.lists(
    st.lists(st.sampled_from([0.0, 1.5, 7.0, 400.0]), min_size=RANKS, max_size=RANKS), max_size=4
)


@given(DURATIONS)
def test_it_is_the_program_of_ranks_one_by_one(durations: list[list[float]]) -> None:
    together = program_of(durations, one_by_one=False)
    apart = program_of(durations, one_by_one=True)
    alike = program_of([[1.0] * RANKS for _ in durations], one_by_one=False)
    assert len(together.batches) == len(alike.batches)
    assert together.digest == apart.digest
    kernels = together.tasks.kind == TaskKind.COMPUTE
    us = together.tasks.table.duration_us[together.tasks.instruction[kernels]]
    assert us.reshape(RANKS, -1).T.tolist() == durations
    cost, topology = CostModel.of("atlas-800t-a2"), WORLD.topology
    expected = hccl_py.simulate(apart, topology, cost).total_us
    assert hccl_py.simulate(together, topology, cost).total_us == expected
    assert np.isclose(simulate_batches(together, topology, cost).total_us, expected)


def test_files_keep_them(tmp_path: Path) -> None:
    durations = [[1.5, 2.0, 1.5, 3.0], [9.0, 9.0, 9.0, 8.0]]
    program = program_of(durations, one_by_one=False)
    for suffix in ("npz", "json"):
        program.save(tmp_path / f"job.{suffix}")
        loaded = hccl_py.load(tmp_path / f"job.{suffix}")
        tasks = loaded.tasks
        kernels = tasks.instruction[tasks.kind == TaskKind.COMPUTE]
        assert tasks.table.duration_us[kernels].reshape(RANKS, -1).T.tolist() == durations
    program.save(tmp_path / "job.npz")
    assert hccl_py.load(tmp_path / "job.npz").digest == program.digest


def test_some_of_the_ranks_are_seen_alone() -> None:
    from hccl_py.program.tasks import expand

    program = program_of([[1.5, 2.0, 4.0, 3.0]], one_by_one=False)
    tasks = expand(program, [1, 3])
    kernels = tasks.kind == TaskKind.COMPUTE
    assert tasks.table.duration_us[tasks.instruction[kernels]].tolist() == [2.0, 3.0]
