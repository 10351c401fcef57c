"""Measuring a plan as hccl_test does: warm up, time some iterations, check the last result."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

import numpy as np

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import OPS
from hccl_py.communicator.arrays import Arrays, flat_arrays
from hccl_py.communicator.communicator import Communicator
from hccl_py.communicator.data import (
    Array,
    WrongElement,
    expected_outputs,
    first_wrong,
    inputs_of,
    poison,
)
from hccl_py.communicator.device_arrays import host_copy
from hccl_py.communicator.planning import Plan
from hccl_py.operators import make_operator
from hccl_py.program.usage import overwrites_inputs

if TYPE_CHECKING:
    from hccl_py.simulator.timeline import Timeline


@dataclass(frozen=True)
class SizeResult:
    """One size: what ran, how long it took on average, and what the check found.

    `check` is `success`, `failed`, or `NULL` where nothing was checked.
    """

    bytes: int
    count: int
    executor: str
    algorithm: Mapping[str, str]
    time_us: float
    algbw_gbps: float
    busbw_gbps: float
    check: str
    first_wrong: WrongElement | None


@dataclass(frozen=True)
class Measurement:
    """A way to measure plans: `warmup` iterations, then `iters` timed ones; with `check` the result
    of the last one is checked. `progress` is called after every iteration.
    """

    comm: Communicator
    iters: int
    warmup: int
    check: bool

    def row(self, plan: Plan, progress: Callable[[], None]) -> SizeResult:
        """Run a plan on data made up for its op; raises what the platform raises.

        Where other processes own ranks too, all of them measure: the time is that of the slowest,
        and the first wrong element that of the lowest rank that has one.
        """
        op, ranks, local = plan.op, self.comm.size, self.comm.local_ranks
        operator = make_operator(op.name)
        mine, right = self._data(plan)
        is_checked = self.check and not OPS[plan.program.op.name].meets
        given = [values.copy() for values in mine] if overwrites_inputs(plan.program) else mine
        arrays = flat_arrays(operator, op, given, ranks, local, self.comm.placement_templates)
        seconds = self._time(plan, arrays, mine, right, progress)
        found = [host_copy(output) for output in arrays.outputs] if is_checked else []
        wrong = first_wrong(found, right, local) if is_checked else None
        seconds, wrong = self._of_all(seconds, wrong)
        verdict = ("failed" if wrong else "success") if is_checked else "NULL"
        size, time_us = operator.data_size(op, ranks), seconds * 1e6
        algbw, busbw = operator.bandwidths(size, time_us, ranks)
        return SizeResult(
            bytes=size,
            count=op.count,
            executor=plan.selection.executor,
            algorithm=plan.selection.algorithm,
            time_us=time_us,
            algbw_gbps=algbw,
            busbw_gbps=busbw,
            check=verdict,
            first_wrong=wrong,
        )

    def timeline(self, plan: Plan) -> Timeline:
        """Run a plan as often as `row` warms up, and then once more with the time of every task
        taken; NotSupportedError where the platform does not take it.
        """
        from hccl_py.clocks.cost import CostModel
        from hccl_py.clocks.links import Links
        from hccl_py.simulator.timeline import Timeline

        op, program, topology = plan.op, plan.program, self.comm.topology
        mine, _ = self._data(plan)
        local, templates = self.comm.local_ranks, self.comm.placement_templates
        arrays = flat_arrays(make_operator(op.name), op, mine, self.comm.size, local, templates)
        for _ in range(self.warmup):
            self.comm.run_plan(plan, arrays)
        self.comm.synchronize()
        times = self.comm.time_tasks(plan, arrays)
        links = Links(topology, CostModel.of(topology.product.name))
        behind = np.full(len(program.tasks), -1, np.int32)
        return Timeline(program, links, times.start_us, times.end_us, times.end_us, behind)

    def _data(self, plan: Plan) -> tuple[list[Array], list[Array | None]]:
        """Return inputs and right outputs of the local ranks, those of the op that was recorded; no
        outputs where none are checked.
        """
        local, operator = self.comm.local_ranks, make_operator(plan.program.op.name)
        inputs = inputs_of(plan.op, self.comm.size)
        right = expected_outputs(operator, plan.op, inputs) if self.check else []
        return [inputs[rank] for rank in local], [right[rank] for rank in local if self.check]

    def _of_all(
        self, seconds: float, wrong: WrongElement | None
    ) -> tuple[float, WrongElement | None]:
        """Return the longest time, and the first wrong element, of all processes."""
        found = None if wrong is None else astuple(wrong)
        everything = [
            json.loads(d) for d in self.comm.exchange(json.dumps((seconds, found)).encode())
        ]
        elements = [WrongElement(*element) for _, element in everything if element is not None]
        return max(s for s, _ in everything), next(iter(elements), None)

    def _time(
        self,
        plan: Plan,
        arrays: Arrays,
        inputs: Sequence[Array],
        right: list[Array | None],
        progress: Callable[[], None],
    ) -> float:
        """Return seconds per timed iteration; outputs are made wrong before the last one, and
        inputs right before every one, where a run overwrites them.
        """
        total, overwritten = 0.0, overwrites_inputs(plan.program)
        self.comm.expect(plan, self.warmup + self.iters)
        self.comm.exchange(b"")  # all processes begin at once
        for iteration in range(-self.warmup, self.iters):
            if self.check and iteration == self.iters - 1:
                poison(arrays.outputs, right)
            if overwritten:
                for memory, values in zip(arrays.inputs, inputs, strict=True):
                    memory[:] = values
            self.comm.synchronize()
            start = time.perf_counter()
            self.comm.run_plan(plan, arrays)
            self.comm.synchronize()
            if iteration >= 0:
                total += time.perf_counter() - start
            progress()
        return total / self.iters


def bytes_needed(comm: Communicator, op: OpParam) -> int:
    """Estimate inputs, outputs and touched CCL memory of all ranks, and the right result."""
    into, out_of = make_operator(op.name).user_bytes(op, comm.size)
    touched = np.minimum(2 * comm.config.ccl_bytes, into + out_of)
    return int((into + out_of + touched).sum() + 2 * out_of.max())
