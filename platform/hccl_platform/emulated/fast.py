"""The fast path: every data task once, in an order that the program allows, as fast as possible.

Little data runs as numpy slices, one after the other, without numba. Much data runs in tiles on all
cores (tiling.py), compiled. The cheaper way is chosen by an estimate; a session loads numba once
its runs with numpy have cost as much as loading it.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from hccl_platform.emulated.prepared import Prepared
from hccl_platform.emulated.tiling import TileLimits, TilePlan, plan_tiles
from hccl_platform.lowering.kernels import compiled_tiles, run_tiles
from hccl_platform.lowering.moves import Bytes, address_of, run_step
from hccl_py.enums import DataType

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


Addresses: TypeAlias = dict[int, int]

_ALIGN = 64


@dataclass(frozen=True)
class Thresholds:
    """Costs from which tiles are worth it, in estimated microseconds of numpy slices.

    One run must cost `run_us` or more, and all such runs of a session together `load_us`, the cost
    of loading numba.
    """

    run_us: float = 100.0
    load_us: float = 50_000.0
    limits: TileLimits = field(default_factory=TileLimits)


class FastPath:
    """Runs prepared programs; keeps threads until it is closed."""

    def __init__(self, threads: int | None = None, thresholds: Thresholds | None = None) -> None:
        self._workers = TileWorkers(threads)
        self._thresholds = thresholds or Thresholds()
        self._spent_us = 0.0

    def run(self, prepared: Prepared, slots: Sequence[Bytes]) -> None:
        """Execute every move on these slots."""
        if self._is_worth_tiles(prepared):
            addresses = {slot: address_of(slots[slot]) for slot in prepared.moves.slots}
            plan = self._plan(prepared, slots, addresses)
            if plan is not None:
                self._run_plan(prepared, plan, slots, addresses)
                return
        with np.errstate(all="ignore"):
            for step in prepared.moves.steps:
                run_step(slots, step)

    def expect(self, prepared: Prepared, runs: int) -> None:
        """Prepare for `runs` runs: if one of them would load numba, the first one does."""
        limits = self._thresholds
        will_spend = self._spent_us + prepared.cost_us * runs
        if prepared.cost_us >= limits.run_us and will_spend >= limits.load_us:
            self._spent_us = max(self._spent_us, limits.load_us)

    def close(self) -> None:
        """Stop the threads."""
        self._workers.close()

    def _is_worth_tiles(self, prepared: Prepared) -> bool:
        if prepared.cost_us < self._thresholds.run_us or not prepared.is_uniform:
            return False
        self._spent_us += prepared.cost_us
        if self._spent_us < self._thresholds.load_us:
            return False
        return run_tiles.compiled is not run_tiles.plain  # not with NUMBA_DISABLE_JIT

    def _plan(
        self, prepared: Prepared, slots: Sequence[Bytes], addresses: Addresses
    ) -> TilePlan | None:
        """Return the plan for the overlaps of inputs and outputs; None if an address is not a
        multiple of the element size.
        """
        unit = prepared.dtype.itemsize if prepared.dtype else 1
        if any(address % unit for address in addresses.values()):
            return None
        overlaps = prepared.overlaps(slots)
        if overlaps not in prepared.plans:
            origins = prepared.origins(overlaps)
            limits, threads = self._thresholds.limits, self._workers.threads
            prepared.plans[overlaps] = plan_tiles(prepared.moves, origins, unit, threads, limits)
        return prepared.plans[overlaps]

    def _run_plan(
        self, prepared: Prepared, plan: TilePlan, slots: Sequence[Bytes], addresses: Addresses
    ) -> None:
        run = _bind(prepared.dtype, plan, slots, addresses)
        for phase in plan.phases:
            if phase.move >= 0:
                with np.errstate(all="ignore"):
                    run_step(slots, prepared.moves.steps[phase.move])
            else:
                self._workers.run(run, phase.ranges)


def _bind(
    dtype: DataType | None, plan: TilePlan, slots: Sequence[Bytes], addresses: Addresses
) -> RangeRun:
    """Return a function that runs a range of the plan's tiles on these slots."""
    low = min(addresses.values()) // _ALIGN * _ALIGN
    high = max(address + len(slots[slot]) for slot, address in addresses.items())
    bases = np.zeros(len(slots), np.int64)
    for slot, address in addresses.items():
        bases[slot] = address - low
    memory = np.asarray(_Window(low, -(-(high - low) // _ALIGN) * _ALIGN))
    words, is_bf16 = _words(dtype)
    typed = memory.view(words)
    kernel = compiled_tiles()

    def run(first: int, last: int) -> None:
        kernel(memory, typed, is_bf16, bases, plan.tiles, plan.first, plan.entries, first, last)

    return run


class _Window:
    """An address range for numpy. Not all of it is allocated: only ranges of moves are accessed."""

    def __init__(self, address: int, size: int) -> None:
        shape, data = (size,), (address, False)
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": shape, "data": data}


def _words(dtype: DataType | None) -> tuple[npt.DTypeLike, bool | None]:
    """Return the kernel's type of memory, and its argument `is_bf16`."""
    if dtype in (DataType.BF16, DataType.FP16):
        return np.uint16, dtype is DataType.BF16
    return (dtype.numpy if dtype else np.uint8), None


RangeRun: TypeAlias = Callable[[int, int], None]


class TileWorkers:
    """The calling thread and its helpers, in all one per core; helpers start when first needed."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or _cores()
        self._pool: ThreadPoolExecutor | None = None

    def run(self, work: RangeRun, ranges: Sequence[tuple[int, int]]) -> None:
        """Call `work` for every range, in any order; a thread that is free takes the next one."""
        numbers = itertools.count()  # its next() is atomic

        def take() -> None:
            while (number := next(numbers)) < len(ranges):
                work(*ranges[number])

        helpers = [self._submit(take) for _ in range(min(self.threads, len(ranges)) - 1)]
        take()
        for helper in helpers:
            helper()

    def close(self) -> None:
        """Stop the helpers."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _submit(self, take: Callable[[], None]) -> Callable[[], None]:
        """Start a helper; return a function that waits for it."""
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(self.threads - 1, "hccl-emulated")
        return self._pool.submit(take).result


def _cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
