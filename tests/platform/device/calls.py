"""Calls of built-in executors for tests of the device platform, through communicators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from random import Random
from typing import Any

from hccl_platform.device import DevicePlatform
from hccl_platform.device.devices import Devices
from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import OPS
from hccl_py.communicator.communicator import Communicator
from hccl_py.communicator.measurement import Measurement, SizeResult
from hccl_py.plugins.executor import Executor, declarations_of
from hccl_py.topology.topology import Topology
from hccl_py.verifier.sweeps.cases import Cases
from hccl_py.verifier.sweeps.space import random_cases
from tests.platform.device.fakeasync import FakeModule

MOST_RANKS = 8
FEW_TASKS, LOOKED_AT = 500, 8


@dataclass(frozen=True)
class Call:
    """What a test measures."""

    name: str
    op: OpParam
    topology: Topology
    zero_copy: bool = False

    @property
    def right(self) -> str:
        """What `SizeResult.check` says of a right run: a barrier has no result to check."""
        return "NULL" if OPS[self.op.name].meets else "success"

    def communicator(self, platform: Any, **settings: Any) -> Communicator:
        return Communicator(
            topology=self.topology,
            platform=platform,
            mode=self.op.mode,
            zero_copy=self.zero_copy,
            buffsize_mb=1,
            **settings,
        )


def calls(executor: type[Executor], seed: int = 3, tries: int = 2_000) -> Iterator[Call]:
    """Yield drawn calls of an executor by several ranks."""
    made = executor()
    for case in random_cases(made, Cases(), Random(seed), tries):
        is_small = case.op.extent * case.topology.size < 4 << 20
        has_gaps = bool(case.op.displs)  # between displaced parts anything may stand
        if 2 <= case.topology.size <= MOST_RANKS and case.op.extent and is_small and not has_gaps:
            yield Call(executor.__name__, case.op, case.topology, declarations_of(made).zero_copy)


def counted_calls(executor: type[Executor]) -> Iterator[tuple[int, Call]]:
    """Yield the first drawn calls of an executor, each with the number of its tasks."""
    for call in islice(calls(executor), LOOKED_AT):
        with call.communicator("emulated") as comm:
            yield comm.plan(call.op, call.name).program.task_count, call


@cache
def call_of(executor: type[Executor]) -> Call | None:
    """Return the first call of few tasks, or the one of fewest; None for no call."""
    found: dict[int, Call] = {}
    for count, call in counted_calls(executor):
        if count <= FEW_TASKS:
            return call
        found.setdefault(count, call)
    return found[min(found)] if found else None


def measured(comm: Communicator, call: Call, runs: int = 2) -> SizeResult:
    """Run a call some times on known data, the result of the last one checked against numpy."""
    plan = comm.plan(call.op, call.name)
    return Measurement(comm, runs, 0, check=True).row(plan, lambda: None)


def fake_platform(kind: str = "cuda", **settings: Any) -> DevicePlatform:
    """Give the platform on devices whose streams run in an order that `seed` draws."""
    module = FakeModule(plain_events_cross=kind != "npu", **settings)
    return DevicePlatform(Devices(kind, module, memory="cpu"))
