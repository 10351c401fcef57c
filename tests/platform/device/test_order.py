"""What must wait waits: for the caller, for posts, for reductions into the same place. A seed draws
the order in which streams go on, and with one event less some seed is wrong.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

pytest.importorskip("torch", reason="the device platform needs torch: pip install hccl-py[torch]")

import torch

from hccl_platform.device import DevicePlatform
from hccl_platform.device.devices import Devices
from hccl_py.communicator.communicator import Communicator
from hccl_py.errors import ParameterError
from hccl_py.topology import topology_of
from tests.platform.device.fakeasync import FakeModule

RANKS = 4


def ramp(rank: int, count: int = 600) -> Any:
    return torch.arange(count, dtype=torch.float32) % 13 + rank


class Machine:
    """Devices of one seeded scheduler, the platform on them, and the caller's streams there."""

    def __init__(self, devices: int = 1, **settings: Any) -> None:
        self.module = FakeModule(devices, **settings)
        self.platform = DevicePlatform(Devices("cuda", self.module, memory="cpu"))

    def on(self, streams: list[Any]) -> ExitStack:
        stack = ExitStack()
        for stream in streams:
            stack.enter_context(self.module.stream(stream))
        return stack


def all_reduce(machine: Machine, executor: str, *, calls: int = 1) -> bool:
    """Whether the last of some calls is right."""
    with Communicator(RANKS, platform=machine.platform, buffsize_mb=1) as comm:
        inputs = [ramp(rank) for rank in range(RANKS)]
        for _ in range(calls):
            outputs = comm.all_reduce(inputs, executor=executor).outputs
        comm.synchronize()
    right = torch.stack(inputs).sum(0)
    return all(torch.equal(output, right) for output in outputs)


def test_with_one_wait_less_some_seed_is_wrong() -> None:
    """Of the ring's waits some are implied by others."""
    machine = Machine()
    assert all_reduce(machine, "AllReduceComm")
    assert machine.module.waits > 30
    found = []
    for number in range(6, 30, 2):
        for seed in range(6):
            machine = Machine(seed=seed, dropped=number)
            if not all_reduce(machine, "AllReduceComm"):
                found.append(number)
                break
    assert len(found) >= 5


def test_atomic_reductions_of_several_streams_take_turns() -> None:
    """The mesh adds to each rank's CCL_Out from all others at once."""
    for seed in range(6):
        machine = Machine(2, seed=seed)
        assert all_reduce(machine, "AllReduceMeshOpbaseLoopExecutor", calls=3)


def test_runs_take_their_turn_between_what_the_caller_does() -> None:
    """Inputs are rewritten on the caller's stream right behind each call, which took the old
    ones; outputs are used there right behind it.
    """
    for seed in range(6):
        machine = Machine(2, seed=seed)
        with (
            Communicator(RANKS, platform=machine.platform, buffsize_mb=1) as comm,
        ):
            mine = [machine.module.Stream(index) for index in range(2)]
            inputs = [ramp(rank) for rank in range(RANKS)]
            kept = torch.empty(3, 600)
            for call in range(3):
                with machine.on(mine), machine.on(mine[1:]):
                    outputs = comm.all_reduce(inputs).outputs
                    # Rank 1 lives on device 1, whose stream is the innermost here.
                    kept[call].copy_(outputs[1])
                    inputs[1].add_(1)
            comm.synchronize()
            right = torch.stack([ramp(rank) for rank in range(RANKS)]).sum(0)
            assert all(torch.equal(kept[call], right + call) for call in range(3))


def test_a_stream_of_the_caller_may_be_named() -> None:
    for seed in range(4):
        machine = Machine(seed=seed)
        with (
            Communicator(RANKS, platform=machine.platform, buffsize_mb=1) as comm,
        ):
            mine = machine.module.Stream(0)
            inputs = [torch.zeros(600) for _ in range(RANKS)]
            kept = torch.empty(600)
            with machine.module.stream(mine):
                for rank, tensor in enumerate(inputs):
                    tensor.copy_(ramp(rank))
            outputs = comm.all_reduce(inputs, stream=mine).outputs
            with machine.module.stream(mine):
                kept.copy_(outputs[2])
            comm.synchronize()
            assert torch.equal(kept, torch.stack([ramp(rank) for rank in range(RANKS)]).sum(0))
            with pytest.raises(ParameterError, match="stream is a int"):
                comm.all_reduce(inputs, stream=3)


def test_different_ops_share_buffers_without_waiting() -> None:
    for seed in range(4):
        machine = Machine(3, seed=seed)
        with (
            Communicator(RANKS, platform=machine.platform, buffsize_mb=1) as comm,
        ):
            data = [ramp(rank) for rank in range(RANKS)]
            sums = comm.all_reduce(data).outputs
            gathered = comm.all_gather(sums).outputs
            parts = comm.reduce_scatter(gathered).outputs
            comm.synchronize()
            total = torch.stack(data).sum(0)
            assert all(torch.equal(out, torch.cat([total] * RANKS)) for out in gathered)
            assert all(torch.equal(part, total * RANKS) for part in parts)


def test_events_are_used_again_when_their_run_has_ended() -> None:
    machine = Machine()
    with (
        Communicator(RANKS, platform=machine.platform, buffsize_mb=1) as comm,
    ):
        made = []
        for _ in range(5):
            comm.all_reduce([ramp(rank) for rank in range(RANKS)])
            comm.synchronize()
            made.append(machine.module.events)
        assert made[0] > RANKS
        assert made[1:] == made[:1] * 4


def test_groups_keep_the_devices_of_their_ranks() -> None:
    machine = Machine(2)
    topology = topology_of(RANKS)
    with Communicator(topology=topology, platform=machine.platform, buffsize_mb=1) as comm:
        group = comm.create_group([1, 3])
        assert group is not None
        before = len(machine.module.streams)
        outputs = group.all_reduce([ramp(1), ramp(3)]).outputs
        group.synchronize()
        assert torch.equal(outputs[0], ramp(1) + ramp(3))
        assert {s.device for s in machine.module.streams[before:]} == {1}


def test_what_a_stream_raises_shows_at_synchronize() -> None:
    machine = Machine()
    with Communicator(2, platform=machine.platform, buffsize_mb=1) as comm:
        comm.all_reduce([ramp(0), ramp(1)])
        comm.synchronize()
        machine.module.streams[-1].tasks.append(lambda: 1 // 0)
        with pytest.raises(RuntimeError, match="a task of a stream failed"):
            comm.synchronize()
        machine.module.streams[-1].error = None
