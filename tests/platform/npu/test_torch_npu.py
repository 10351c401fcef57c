"""The unmodified torch_npu wheel on the fake runtime: what a platform may use of it."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.platform.npu.runtime import Machine, missing

SCRIPT = Path(__file__).parent / "torch_npu_checks.py"
CHECKS = re.findall(r"^def (check_\w+)", SCRIPT.read_text(), re.MULTILINE)
DEMANDED = "HCCL_PY_DEMAND_TORCH_NPU"


def run(*names: str) -> dict[str, str | None]:
    """What went wrong with each check, all in one process."""
    if importlib.util.find_spec("torch_npu") is None:
        missing("torch-npu is not installed: pip install hccl-py[npu-test]", DEMANDED)
    with Machine(devices=4) as machine:
        variables = machine.environment(SEED=1, DELAY_US=500)
        # Otherwise `import torch` loads torch_npu by itself, and warns.
        environment = {**os.environ, **variables, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
        command = [sys.executable, "-W", "ignore", str(SCRIPT), *names]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
    assert done.returncode == 0, done.stderr
    outcomes: dict[str, str | None] = json.loads(done.stdout.splitlines()[-1])
    return outcomes


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str | None]:
    return run(*CHECKS)


@pytest.mark.xdist_group("torch_npu")
@pytest.mark.parametrize("check", CHECKS)
def test_what_is_there(outcomes: dict[str, str | None], check: str) -> None:
    assert outcomes[check] is None, outcomes[check]


def test_ops_outside_raise() -> None:
    assert run("outside_what_is_there") == {"outside_what_is_there": None}
