"""The rows of `hccl-py run`: time an op for every size, and check it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hccl_py.arrays import Arrays, flat_arrays
from hccl_py.cli.call import Request, check_memory, check_tasks, data_size
from hccl_py.cli.options import Call, Sizes
from hccl_py.cli.progress import Bar
from hccl_py.cli.sizes import last_size, row_sizes
from hccl_py.communicator import Plan
from hccl_py.data import Array, WrongElement, expected_outputs, first_wrong, inputs_of, poison
from hccl_py.op_param import OpParam
from hccl_py.platforms import Schedule
from hccl_py.trace.units import spell_size

__all__ = ["Measurement", "Row"]


@dataclass(frozen=True)
class Row:
    """One size: what ran, how long it took on average, and what the check found.

    `check` is `success`, `failed`, or `NULL` where nothing was checked.
    """

    bytes: int
    count: int
    executor: str
    algorithm: Mapping[str, str]
    time_us: float
    bus_factor: float
    check: str
    first_wrong: WrongElement | None

    @property
    def algbw_gbps(self) -> float:
        """10^9 bytes of data size per second."""
        return self.bytes / self.time_us * 1e-3 if self.time_us else 0.0

    @property
    def busbw_gbps(self) -> float:
        """The same, times what each link carries per byte of data size."""
        return self.algbw_gbps * self.bus_factor


class Measurement:
    """What to measure: sizes, iterations, kind of check."""

    def __init__(
        self,
        call: Call,
        sizes: Sizes,
        iters: int,
        warmup: int,
        check: int,
        schedule: Schedule | None,
    ) -> None:
        self.request = Request(call, schedule)
        self.request.check_sizes(sizes)
        self.sizes, self.maxbytes = self._sizes(call, sizes)
        self.iters, self.warmup, self.check = iters, warmup, check
        self.schedule = schedule
        for size in (self.sizes[0], self.sizes[-1]):
            self._check(self.request.op(size))  # before anything is printed
        _ = self.request.comm.local_ranks  # opens the session: the platform looks at the schedule

    def rows(self) -> Iterator[Row]:
        """Measure size after size."""
        for size in self.sizes:
            yield self._row(size)

    def _sizes(self, call: Call, sizes: Sizes) -> tuple[Sequence[int], int]:
        """Return the sizes of all rows, and the last one that was asked for."""
        if self.request.is_fixed:
            return [self.request.minbytes], self.request.minbytes
        return row_sizes(call.minbytes, sizes), last_size(call.minbytes, sizes)

    def _row(self, size: int) -> Row:
        request = self.request
        op = request.op(size)
        plan = request.plan(op)
        check_tasks(plan.program)
        ranks, comm = request.topology.size, request.comm
        inputs = inputs_of(op, ranks)
        local = comm.local_ranks
        mine = [inputs[rank] for rank in local]
        arrays = flat_arrays(request.operator, op, mine, ranks, local)
        expected = expected_outputs(request.operator, op, inputs) if self.check else []
        right = [expected[rank] for rank in local] if self.check else []
        seconds = self._time(plan, arrays, mine, right)
        wrong = first_wrong(arrays.outputs, right, local) if self.check else None
        verdict = ("failed" if wrong else "success") if self.check else "NULL"
        return Row(
            bytes=data_size(request, op),
            count=op.count,
            executor=plan.selection.executor,
            algorithm=plan.selection.algorithm,
            time_us=seconds * 1e6,
            bus_factor=request.operator.bus_factor(ranks),
            check=verdict,
            first_wrong=wrong,
        )

    def _time(
        self, plan: Plan, arrays: Arrays, inputs: list[Array], right: list[Array | None]
    ) -> float:
        """Return seconds per timed iteration; outputs are made wrong before the last one, and
        inputs, which a run in place overwrites, right before every one.
        """
        title = spell_size(data_size(self.request, plan.op))
        total = 0.0
        self.request.comm.expect(plan, self.warmup + self.iters)
        with Bar(title, self.warmup + self.iters) as bar:
            for iteration in range(-self.warmup, self.iters):
                if self.check and iteration == self.iters - 1:
                    poison(arrays.outputs, right)
                if plan.op.in_place:
                    for memory, values in zip(arrays.inputs, inputs, strict=True):
                        memory[:] = values
                start = time.perf_counter()
                self.request.comm.run_plan(plan, arrays)
                if iteration >= 0:
                    total += time.perf_counter() - start
                bar.advance()
        return total / self.iters

    def _check(self, op: OpParam) -> None:
        """Raise where the call is illegal, or too large for this machine."""
        self.request.select(op)
        check_memory(self._bytes_needed(op), "The buffers of all ranks together")

    def _bytes_needed(self, op: OpParam) -> int:
        """Estimate inputs, outputs and touched CCL memory of all ranks, and the right result."""
        ranks = self.request.topology.size
        into, out_of = self.request.operator.user_bytes(op, ranks)
        touched = np.minimum(2 * self.request.comm.config.ccl_bytes, into + out_of)
        return int((into + out_of + touched).sum() + 2 * out_of.max())
