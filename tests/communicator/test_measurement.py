"""Measuring as hccl_test does: the mean of the timed iterations, the check of the last one."""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from hccl_py import Communicator
from hccl_py.call.op_param import OpParam
from hccl_py.communicator.arrays import Arrays
from hccl_py.communicator.measurement import Measurement
from hccl_py.communicator.planning import Plan
from hccl_py.enums import DataType, ReduceOp
from hccl_py.program.usage import overwrites_inputs
from hccl_py.topology import topology_of
from tests.recording import recorded

OP = OpParam("all_gather", 64, DataType.FP32)


class Watched(Communicator):
    """Calls `before` with the number of the iteration; runs nothing where that is False."""

    before: Callable[[int, Arrays], bool]
    inside_s: list[float]

    def run_plan(self, plan: Plan, arrays: Arrays) -> None:
        if self.before(len(self.inside_s), arrays):
            start = time.perf_counter()
            super().run_plan(plan, arrays)
            self.inside_s.append(time.perf_counter() - start)


def watched(before: Callable[[int, Arrays], bool] = lambda number, arrays: True) -> Watched:
    comm = Watched(ranks=2)
    comm.before, comm.inside_s = before, []
    return comm


def test_the_time_is_the_mean_of_the_timed_iterations() -> None:
    stamps: list[float] = []
    comm = watched()
    with comm:
        measurement = Measurement(comm, iters=40, warmup=3, check=True)
        row = measurement.row(comm.plan(OP), lambda: stamps.append(time.perf_counter()))
    assert len(stamps) == len(comm.inside_s) == 43
    total = row.time_us * 1e-6 * 40
    assert sum(comm.inside_s[3:]) <= total * (1 + 1e-9)
    assert total <= (stamps[-1] - stamps[2]) * (1 + 1e-9)


def test_outputs_are_made_wrong_before_the_last_iteration_only() -> None:
    seen: list[list[bytes]] = []

    def look(number: int, arrays: Arrays) -> bool:
        seen.append([np.asarray(output).tobytes() for output in arrays.outputs])
        return True

    comm = watched(look)
    with comm:
        row = Measurement(comm, iters=4, warmup=0, check=True).row(comm.plan(OP), lambda: None)
    assert row.check == "success"
    assert seen[1] == seen[2]
    right, last = (np.frombuffer(values[0], np.uint8) for values in (seen[2], seen[3]))
    assert not (right == last).any()


@pytest.mark.parametrize(("check", "verdict"), [(True, "failed"), (False, "NULL")])
def test_a_last_iteration_that_writes_nothing(check: bool, verdict: str) -> None:
    comm = watched(lambda number, arrays: number < 2)
    with comm:
        row = Measurement(comm, iters=3, warmup=0, check=check).row(comm.plan(OP), lambda: None)
    assert len(comm.inside_s) == 2
    assert row.check == verdict
    assert (row.first_wrong is not None) == check


def test_an_input_that_is_overwritten_is_given_anew() -> None:
    """A reduce-scatter on registered memory adds up in its input; the right output is known of the
    first run only.
    """
    topology = topology_of(4, preset="atlas-900-a3")
    call = OpParam("reduce_scatter", 64, DataType.INT32, ReduceOp.SUM)
    with Communicator(topology=topology, zero_copy=True) as comm:
        plan = comm.plan(call, "ReduceScatterRingZerocopyExecutor")
        assert overwrites_inputs(plan.program)
        row = Measurement(comm, iters=3, warmup=2, check=True).row(plan, lambda: None)
    assert row.check == "success"


def test_which_programs_overwrite_inputs() -> None:
    assert not overwrites_inputs(recorded("AllGatherComm", OP, topology_of(2), 1 << 20))
    in_place = replace(OP, in_place=True)
    assert overwrites_inputs(recorded("AllGatherComm", in_place, topology_of(2), 1 << 20))
