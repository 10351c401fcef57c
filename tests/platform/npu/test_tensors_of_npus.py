"""The npu platform over the unmodified torch_npu wheel, on the fake runtime: tensors go in and come
out in order with torch's own ops.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.platform.npu.runtime import Machine, missing

SCRIPTS = [Path(__file__).parent / name for name in ("tensor_checks.py", "backend_checks.py")]
CHECKS = [
    (script, check)
    for script in SCRIPTS
    for check in re.findall(r"^def (check_\w+)", script.read_text("utf-8"), re.MULTILINE)
]
DEMANDED = "HCCL_PY_DEMAND_TORCH_NPU"
RUN = ("run", "all_reduce", "--platform", "npu", "--ranks")

pytestmark = pytest.mark.xdist_group("torch_npu")


def run(command: list[str], devices: int = 4, **knobs: object) -> subprocess.CompletedProcess[str]:
    if importlib.util.find_spec("torch_npu") is None:
        missing("torch-npu is not installed: pip install hccl-py[npu-test]", DEMANDED)
    with Machine(devices) as machine:
        variables = machine.environment(**knobs)
        environment = {**os.environ, **variables, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
        root = str(Path(__file__).parents[3])
        environment["PYTHONPATH"] = os.pathsep.join(
            filter(None, [root, os.environ.get("PYTHONPATH")])
        )
        return subprocess.run(
            [sys.executable, "-W", "ignore", *command],
            env=environment,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    found: dict[str, str] = {}
    for script in SCRIPTS:
        folder = tmp_path_factory.mktemp(script.stem)
        done = run([str(script), str(folder)], SEED=5, DELAY_US=200)
        assert done.returncode == 0, done.stderr
        found |= json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(("script", "check"), CHECKS, ids=[check for _, check in CHECKS])
def test_tensors(outcomes: dict[str, str], script: Path, check: str) -> None:
    assert check not in outcomes, f"{script.name}: {outcomes[check]}"


def command(*arguments: str, devices: int, **knobs: object) -> subprocess.CompletedProcess[str]:
    return run(["-m", "hccl_py", *arguments], devices, **knobs)


def test_the_command_runs_on_npus() -> None:
    arguments = [
        "run",
        "all_reduce",
        "--platform",
        "npu",
        "--ranks",
        "2",
        "-b",
        "64K",
        "-n",
        "2",
        "-w",
        "1",
        "--json",
    ]
    done = command(*arguments, devices=2)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert document["platform"] == "npu"
    assert [row["check"] for row in document["rows"]] == ["success"]


def test_more_ranks_than_npus_are_refused() -> None:
    done = command(
        *["run", "all_reduce", "--platform", "npu", "--ranks", "3", "-b", "1K"], devices=2
    )
    assert done.returncode == 2
    assert "and this process sees 2 NPUs" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_lost_npu_ends_the_command() -> None:
    arguments = [*RUN, "2", "-b", "64K", "-n", "50"]
    done = command(*arguments, devices=2, FAULT="device=1:kind=lost:after=300")
    assert done.returncode not in (0, 3)
    assert "Traceback" not in done.stderr
    assert "rank" in done.stderr
