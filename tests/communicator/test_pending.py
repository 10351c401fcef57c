"""Calls that nobody waits for yet: order, errors, time-outs, callbacks, closing."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import hccl_py as hccl
from hccl_platform.emulated import EmulatedPlatform
from hccl_platform.emulated.session import EmulatedSession
from hccl_py.errors import ExecTimeoutError, ParameterError
from hccl_py.plugins.platforms import Work

LATEST_S = 30.0
"""What takes longer hangs."""


class GatedSession(EmulatedSession):
    """Runs when the gate is open; writes down the tags in the order of the runs."""

    gate: threading.Event
    begun: threading.Event
    tags: list[str]

    def run(self, tag: str, *given: Any) -> Work:
        self.begun.set()
        assert self.gate.wait(LATEST_S)
        self.tags.append(tag.partition("_")[0])
        if "Broadcast" in tag:
            raise ZeroDivisionError("the run's own error")
        return super().run(tag, *given)


class GatedPlatform(EmulatedPlatform):
    def __init__(self) -> None:
        self.gate, self.begun = threading.Event(), threading.Event()
        self.tags: list[str] = []

    def open(self, topology: Any, config: Any, schedule: Any, group: Any) -> GatedSession:
        session = GatedSession(topology.size, config.ccl_bytes)
        session.gate, session.begun, session.tags = self.gate, self.begun, self.tags
        return session


@pytest.fixture
def platform() -> Iterator[GatedPlatform]:
    platform = GatedPlatform()
    yield platform
    platform.gate.set()


def ones(value: int = 1) -> list[Any]:
    return [np.full(4, value, np.int32) for _ in range(2)]


def test_a_pending_call_gives_its_result() -> None:
    with hccl.Communicator(2) as comm:
        pending = comm.all_reduce(ones(3), async_op=True)
        assert [o.tolist() for o in pending.wait(LATEST_S).outputs] == [[6] * 4] * 2
        assert pending.is_completed()
        assert pending.result is pending.wait()
        assert pending.result.selection.op == "all_reduce"
        assert comm.barrier(async_op=True).wait().outputs == []
        nothing = comm.all_reduce([[], []], async_op=True).wait()
        assert [o.tolist() for o in nothing.outputs] == [[], []]


def test_calls_run_in_the_order_in_which_they_were_made(platform: GatedPlatform) -> None:
    with hccl.Communicator(2, platform=platform) as comm:
        data = ones()
        first = comm.all_reduce(data, out=data, async_op=True)
        assert platform.begun.wait(LATEST_S)
        strided = [each[::2] for each in data]  # read when it is their turn: after the first
        second = comm.all_gather(strided, async_op=True)
        third = threading.Thread(target=comm.all_to_all, args=(data,))
        third.start()
        assert not first.is_completed()
        with pytest.raises(ParameterError, match="all_reduce has not ended"):
            _ = first.result
        platform.gate.set()
        assert [o.tolist() for o in second.wait(LATEST_S).outputs] == [[2] * 4] * 2
        third.join(LATEST_S)
        assert first.is_completed()
    assert platform.tags == ["AllReduce", "AllGather", "AlltoAll"]


def test_waiting_ends_in_time_and_the_call_goes_on(platform: GatedPlatform) -> None:
    with hccl.Communicator(2, platform=platform) as comm:
        pending = comm.all_reduce(ones(), async_op=True)
        with pytest.raises(ExecTimeoutError, match="has not ended after 0") as late:
            pending.wait(0.01)
        assert (late.value.code, bool(late.value.hint)) == ("EI0002", True)
        platform.gate.set()
        assert pending.wait(LATEST_S).outputs[0].tolist() == [2] * 4


def test_errors_of_the_run_come_out_of_wait(platform: GatedPlatform) -> None:
    platform.gate.set()
    with hccl.Communicator(2, platform=platform) as comm:
        broken = comm.broadcast(ones(), async_op=True)
        after = comm.all_reduce(ones(), async_op=True)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError, match="the run's own error"):
                broken.wait(LATEST_S)
        assert broken.is_completed()
        assert after.wait(LATEST_S).outputs[0].tolist() == [2] * 4
        with pytest.raises(ParameterError, match="Rank 1's input has shape"):
            comm.all_reduce([np.ones(3), np.ones(4)], async_op=True)


def test_nothing_is_locked_while_a_program_runs(platform: GatedPlatform) -> None:
    with hccl.Communicator(2, platform=platform) as comm:
        running = comm.all_reduce(ones(), async_op=True)
        assert platform.begun.wait(LATEST_S)
        assert comm.local_ranks == range(2)
        op = hccl.OpParam("all_gather", 5, hccl.DataType.INT32)
        assert comm.plan(op).program.task_count
        assert comm.create_group([1]) is not None
        assert not running.is_completed()
        platform.gate.set()
        running.wait(LATEST_S)


def test_callbacks_may_call_and_wait() -> None:
    done: list[Any] = []
    over = threading.Event()
    with hccl.Communicator(2) as comm:

        def then(pending: hccl.Pending) -> None:
            total = pending.result.outputs
            again = comm.all_reduce(total, async_op=True).wait(LATEST_S).outputs
            done.append(comm.all_reduce(again).outputs[0].tolist())
            over.set()

        def fails(pending: hccl.Pending) -> None:
            raise SystemExit

        first = comm.all_reduce(ones(), async_op=True)
        first.add_done_callback(fails)
        first.add_done_callback(then)
        behind = [comm.all_gather(ones(), async_op=True) for _ in range(5)]
        assert all(each.wait(LATEST_S).outputs for each in behind)
        assert over.wait(LATEST_S)
    assert done == [[8] * 4]


def test_closing_waits_for_pending_calls(platform: GatedPlatform) -> None:
    before = threading.active_count()
    with hccl.Communicator(2, platform=platform) as comm:
        pending = [comm.all_reduce(ones(), async_op=True) for _ in range(3)]
        platform.gate.set()
    assert [each.result.outputs[0].tolist() for each in pending] == [[2] * 4] * 3
    assert threading.active_count() == before
    with pytest.raises(ParameterError, match="is closed"):
        comm.all_reduce(ones(), async_op=True)
    comm.close()


def test_an_error_in_the_block_fails_calls_that_have_not_begun(platform: GatedPlatform) -> None:
    def leave() -> None:
        with hccl.Communicator(2, platform=platform) as comm:
            pending.append(comm.all_reduce(ones(), async_op=True))
            assert platform.begun.wait(LATEST_S)
            pending.append(comm.all_reduce(ones(), async_op=True))
            pending[1].add_done_callback(lambda _: platform.gate.set())
            raise KeyError("the block's own error")

    pending: list[hccl.Pending] = []
    with pytest.raises(KeyError, match="the block's own error"):
        leave()
    assert pending[0].result.outputs[0].tolist() == [2] * 4
    with pytest.raises(ParameterError, match="The communicator was closed") as caught:
        pending[1].wait(LATEST_S)
    assert caught.value.hint


def test_the_worker_ends_with_a_communicator_that_nobody_closed() -> None:
    def started() -> list[threading.Thread]:
        return [each for each in threading.enumerate() if each.name == "hccl-py calls"]

    comm = hccl.Communicator(2)
    comm.all_reduce(ones(), async_op=True).wait(LATEST_S)
    workers, gone = started(), weakref.ref(comm)
    assert workers
    del comm
    gc.collect()
    assert gone() is None
    for worker in workers:
        worker.join(LATEST_S)
    assert not started()
