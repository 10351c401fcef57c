"""Every built-in executor on the device platform: on the CPU, and on devices whose streams are
threads with seeded delays, bit for bit against numpy.
"""

from __future__ import annotations

from itertools import islice

import pytest

pytest.importorskip("torch", reason="the device platform needs torch: pip install hccl-py[torch]")

from hccl_executors import EXECUTORS
from hccl_py.plugins.executor import Executor
from tests.platform.device.calls import call_of, calls, fake_platform, measured


@pytest.mark.parametrize("executor", EXECUTORS)
def test_on_the_cpu(executor: type[Executor]) -> None:
    call = call_of(executor)
    if call is None:
        pytest.skip("no small call of several ranks among those drawn")
    with call.communicator("device", device="cpu") as comm:
        assert measured(comm, call, 1).check == call.right


@pytest.mark.sweep
@pytest.mark.parametrize("executor", EXECUTORS)
def test_on_streams_of_a_drawn_order(executor: type[Executor]) -> None:
    call, number = call_of(executor), EXECUTORS.index(executor)
    if call is None:
        pytest.skip("no small call of several ranks among those drawn")
    kind, devices = (("cuda", 1), ("npu", 3), ("cuda", 2))[number % 3]
    with call.communicator(fake_platform(kind, devices=devices, seed=number)) as comm:
        assert measured(comm, call).check == call.right


@pytest.mark.long
@pytest.mark.seeds(68)
def test_more_calls_and_orders(seed: int) -> None:
    executor = EXECUTORS[seed % len(EXECUTORS)]
    for number, call in enumerate(islice(calls(executor, seed, 300), 4)):
        with call.communicator("device", device="cpu") as comm:
            assert measured(comm, call).check == call.right
        for order in range(3):
            platform = fake_platform("npu", devices=1 + number, seed=seed + order)
            with call.communicator(platform) as comm:
                assert measured(comm, call).check == call.right
