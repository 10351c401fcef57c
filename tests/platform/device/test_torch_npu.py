"""The device platform on the unmodified torch_npu wheel and the fake Ascend runtime: 4 NPUs, whose
plain events do not cross devices.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.platform.npu.runtime import Machine, missing

ROOT = Path(__file__).parents[3]
SCRIPT = "tests.platform.device.torch_npu_calls"


@pytest.mark.xdist_group("torch_npu")
def test_calls_on_npus() -> None:
    if importlib.util.find_spec("torch_npu") is None:
        missing(
            "torch-npu is not installed: pip install hccl-py[npu-test]", "HCCL_PY_DEMAND_TORCH_NPU"
        )
    with Machine(devices=4) as machine:
        variables = machine.environment(SEED=2, DELAY_US=100)
        environment = {**os.environ, **variables, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
        command = [sys.executable, "-W", "ignore", "-m", SCRIPT]
        done = subprocess.run(
            command,
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["wrong"] == {}
    assert found["calls"] > 35
    assert found["total_us"] > 0
