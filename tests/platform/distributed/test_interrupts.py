"""Nothing on the way of a call swallows an interrupt."""

from __future__ import annotations

import enum
import sys
from collections import Counter

import pytest

from hccl_platform.distributed import fences
from hccl_platform.processes.world import World
from hccl_py.call.call_spec import CallSpec, ClusterSpec
from hccl_py.communicator.communicator import Communicator
from hccl_py.operators import OPERATORS
from tests.platform.distributed.job import failures
from tests.platform.distributed.processes import in_processes


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="enums have no __getattr__ any more")
def test_numpy_asks_no_enum_for_its_own_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    """numpy asks the class of what it computes with for `__array_ufunc__` and clears every error,
    a KeyboardInterrupt too (numpy's issue 14801); up to Python 3.11 an enum answers in Python,
    where an interrupt may be raised.
    """
    asked: Counter[str] = Counter()
    answer = enum.EnumMeta.__getattr__  # type: ignore[attr-defined]

    def spy(kind: enum.EnumMeta, name: str) -> object:
        if name.startswith("__array"):
            caller = sys._getframe(1)
            asked[f"{caller.f_code.co_filename}:{caller.f_lineno} {kind.__name__}"] += 1
        return answer(kind, name)

    monkeypatch.setattr(enum.EnumMeta, "__getattr__", spy)

    def body(world: World) -> dict[str, int]:
        with Communicator(ranks=4, platform="distributed") as comm:
            for op in OPERATORS:
                spec = CallSpec(op, cluster=ClusterSpec(ranks=comm.size))
                for size in (1 << 10, 1 << 20):
                    comm.plan(spec.sized(size).param(comm.size))
            assert failures(comm) == []
        return dict(asked)

    assert in_processes(4, body) == [{}] * 4


def test_a_fence_may_be_interrupted_between_its_halves() -> None:
    fences.fence()
    fences._lock.lock.release()
    fences.fence()
    assert fences._lock.lock.locked()
