"""Run by test_torch_npu.py: the device platform on NPUs of the fake runtime, over the torch_npu
wheel. Prints, as JSON, the calls that were made and what is wrong with which.
"""

import json
import traceback

from hccl_executors import EXECUTORS
from hccl_py.communicator.communicator import Communicator
from hccl_py.communicator.measurement import Measurement
from hccl_py.plugins.executor import Executor
from tests.platform.device.calls import FEW_TASKS, Call, counted_calls, measured
from tests.recording import op_of

TYPES = ("int8", "int32", "int64", "fp16", "fp32", "bf16")
"""What the fake runtime computes with."""

TIMES = 2
"""Communicators for each call: a wait too few between devices shows in one of a hundred."""


def computed_call(executor: type[Executor]) -> Call | None:
    """Return the first call of few tasks that the fake runtime can compute."""
    for count, call in counted_calls(executor):
        if call.op.dtype.value in TYPES and count <= FEW_TASKS:
            return call
    return None


def main() -> None:
    wrong: dict[str, str] = {}
    made = [call for executor in EXECUTORS if (call := computed_call(executor)) is not None]
    for call in [call for call in made for _ in range(TIMES)]:
        try:
            with call.communicator("device", device="npu") as comm:
                row = measured(comm, call)
            if row.check != call.right:
                wrong[call.name] = str(row.first_wrong)
        except Exception:
            wrong[call.name] = traceback.format_exc()
            break  # after an op that fails, torch_npu does nothing more in its process
    with Communicator(4, platform="device", device="npu", buffsize_mb=1) as comm:
        plan = comm.plan(op_of("all_reduce", 3000), "AllReduceComm")
        total_us = Measurement(comm, 1, 1, check=False).timeline(plan).total_us
    print(json.dumps({"calls": len(made), "wrong": wrong, "total_us": total_us}))


main()
