"""`hccl-py doctor` as a whole: on a machine without anything, on the fake runtime, and with
libraries that are broken in every way. torch and torch_npu are stubs here, quick to import.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hccl_platform.checks import TORCH, installed
from hccl_platform.distributed.checks import CHECKS as OF_PROCESSES
from hccl_platform.npu.checks import CHECKS, CONSTRUCTORS, facts_of_cann, facts_of_driver
from hccl_py.plugins.platforms import DiagnosticsProvider, Fact
from tests.platform.npu.runtime import Machine

pytestmark = pytest.mark.npu

TORCH_STUB = """
__version__ = "2.13.0"
class cuda:
    device_count = staticmethod(lambda: 0)
"""
DISTRIBUTED_STUB = "is_available = is_gloo_available = lambda: True"
GOOD = f"class _C: {CONSTRUCTORS[0]} = {CONSTRUCTORS[1]} = None"

BARE = {"ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_RT_VISIBLE_DEVICES", "LD_LIBRARY_PATH"}


class Patient:
    """A machine with stubs of torch and torch_npu."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "torch" / "distributed").mkdir(parents=True)
        (folder / "torch" / "__init__.py").write_text(TORCH_STUB)
        (folder / "torch" / "distributed" / "__init__.py").write_text(DISTRIBUTED_STUB)

    def torch_npu(self, source: str) -> None:
        (self.folder / "torch_npu").mkdir()
        (self.folder / "torch_npu" / "__init__.py").write_text(source)

    def examined(self, environment: dict[str, str], *options: str) -> Doctored:
        own = {k: v for k, v in os.environ.items() if k not in BARE}
        done = subprocess.run(
            [sys.executable, "-m", "hccl_py", "doctor", "--json", *options],
            env={**own, **environment, "PYTHONPATH": str(self.folder)},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return Doctored(json.loads(done.stdout))


class Doctored:
    """What the command said."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.facts = {fact["name"]: fact for check in document["checks"] for fact in check["facts"]}

    def npu(self) -> dict[str, Any]:
        found: dict[str, Any] = next(p for p in self.document["platforms"] if p["name"] == "npu")
        return found


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    return Patient(tmp_path)


def on_the_fake(patient: Patient, devices: int = 4, **knobs: object) -> Doctored:
    patient.torch_npu(GOOD)
    with Machine(devices) as machine:
        return patient.examined(machine.environment(**knobs))


def test_a_machine_without_anything(patient: Patient) -> None:
    found = patient.examined({})
    assert found.npu()["ready"] is False
    assert {"libascendcl.so", "NPUs"} <= set(found.npu()["lacks"])
    assert "Install CANN 8.5 or newer" in found.facts["libascendcl.so"]["hint"]
    ready = [p["name"] for p in found.document["platforms"] if p["ready"]]
    assert ready == ["emulated", "distributed", "device"]
    assert "--platform emulated" in found.document["next"]


def test_the_fake_runtime(patient: Patient) -> None:
    found = on_the_fake(patient, ASCEND_IS="left alone")
    assert found.npu()["ready"] is True, found.npu()
    good = ("libascendcl.so", "import torch_npu", "NPUs", "access to peers", "notifies")
    assert all(
        found.facts[name]["good"] for name in (*good, "memory for peers", "memory is shared by")
    )
    assert found.facts["NPUs"]["value"] == "4, Ascend910B1"
    assert found.facts["access to peers"]["value"] == "all 4"
    assert found.facts["reductions"]["value"] == "18 of 18 in its own memory"
    assert found.facts["errors"]["value"] == "name the task"
    assert found.facts["time-outs"]["value"] == "in seconds"
    assert found.facts["runtime"]["value"] == "aclrt 1.16.0"
    assert "--platform npu --ranks 2" in found.facts["by several processes only"]["hint"]
    assert "--platform npu --ranks 2 -b 1K -e 1M" in found.document["next"]


@pytest.mark.parametrize(
    ("knobs", "name", "good", "words"),
    [
        ({"P2P": 0}, "access to peers", False, "none"),
        ({"devices": 1}, "access to peers", None, "this process sees one"),
        ({"IPC": "list"}, "memory is shared by", True, "keys with lists"),
        ({"VISIBLE": "2,1"}, "numbers on the board", None, "2, 1"),
        ({"IPC": "none"}, "memory is shared by", False, "207000"),
        ({"NOTIFIES": 0}, "notifies", False, "no notify left"),
        ({"FAULT": "device=0:kind=silent:after=0"}, "notifies", False, "107020"),
        ({"FAULT": "device=0:kind=silent:after=1"}, "time-outs", None, "aclrtSynchronizeStream"),
        ({"REDUCE": "local"}, "reductions", None, "18 of 18"),
    ],
)
def test_what_a_runtime_lacks(
    patient: Patient, knobs: dict[str, Any], name: str, good: bool | None, words: str
) -> None:
    found = on_the_fake(patient, **knobs)
    assert found.facts[name]["good"] is good, found.facts[name]
    assert words in found.facts[name]["value"]
    assert found.npu()["ready"] is (good is not False)
    if good is False:
        assert found.facts[name]["hint"]
        assert "Next, for npu, which lacks" in found.document["next"]


def test_a_runtime_that_lacks_functions(patient: Patient) -> None:
    with Machine(1) as machine:
        shutil.copy(machine.folder / "libhccl.so", patient.folder / "libascendcl.so")
    found = patient.examined({"LD_LIBRARY_PATH": str(patient.folder)})
    fact = found.facts["libascendcl.so"]
    assert fact["value"].startswith("lacks 40 functions: aclInit, ")
    assert "8.5" in fact["hint"]
    assert found.npu()["ready"] is False


@pytest.mark.parametrize(
    ("source", "name", "words"),
    [
        ("raise ImportError('libhccl.so: no such file')", "import torch_npu", "ImportError: libh"),
        ("import os; os.abort()", "torch_npu", "ended by SIGABRT"),
        ("import signal; signal.pause()", "torch_npu", "no answer in 8 s"),
        ("raise SystemExit(4)", "torch_npu", "SystemExit: 4"),
    ],
)
def test_a_torch_npu_that_is_broken(patient: Patient, source: str, name: str, words: str) -> None:
    patient.torch_npu(source)
    found = patient.examined({}, "--limit", "8")
    bad = [f for c in found.document["checks"] if c["name"] == "torch_npu" for f in c["facts"]]
    assert (bad[-1]["name"], bad[-1]["good"]) == (name, False)
    assert words in bad[-1]["value"]
    assert bad[-1]["hint"]
    assert found.npu()["ready"] is False
    assert found.facts["import torch"]["good"], "nothing else is harmed"


def test_a_torch_npu_that_prints_and_lacks_private_functions(patient: Patient) -> None:
    patient.torch_npu("import os; print('Warning'); os.system('echo from C')")
    found = patient.examined({})
    assert found.facts["import torch_npu"]["good"]
    assert "prod" in found.facts["tensors of given memory"]["hint"]


def test_a_torch_that_is_broken(patient: Patient) -> None:
    (patient.folder / "torch" / "__init__.py").write_text("raise OSError('libc10.so')")
    found = patient.examined({})
    assert "libc10.so" in found.facts["import torch"]["value"]
    device = next(p for p in found.document["platforms"] if p["name"] == "device")
    assert device["lacks"] == ["import torch"]
    assert next(p for p in found.document["platforms"] if p["name"] == "distributed")["ready"]


# ---- what is read from files ----


def named(facts: Any) -> dict[str, Fact]:
    return {fact.name: fact for fact in facts}


def test_the_driver_and_its_device_files(tmp_path: Path) -> None:
    version = tmp_path / "version.info"
    version.write_text("Version=25.5.0\nascendhal_version=7.35.23\n")
    for name in ("davinci0", "davinci1", "davinci10", "davinci_manager", "devmm_svm", "hisi_hdc"):
        (tmp_path / name).touch()
    found = named(facts_of_driver(tmp_path, version))
    assert found["driver"].value == "25.5.0"
    assert found["device files"] == Fact("device files", "3: davinci0, davinci1, davinci10", True)
    (tmp_path / "devmm_svm").unlink()
    found = named(facts_of_driver(tmp_path, version))
    assert found["device files"].is_good is False
    assert "closed to this process: devmm_svm" in found["device files"].value
    assert found["device files"].hint


def test_cann_that_is_installed_and_not_sourced(tmp_path: Path) -> None:
    home = tmp_path / "cann"
    home.mkdir()
    (home / "set_env.sh").touch()
    (home / "version.cfg").write_text("# version\nruntime_running_version=[7.7.0.1:8.5.0]\n")
    lacking = str(tmp_path / "libascendcl.so")
    found = named(facts_of_cann(lacking, [tmp_path / "none", home], {}))
    assert found["CANN"].value == f"8.5.0 in {home}"
    assert found[lacking].is_good is False
    assert found[lacking].hint == f"source {home}/set_env.sh"
    (home / "ascend_toolkit_install.info").write_text("package_name=cann\nversion=9.0.0\n")
    found = named(facts_of_cann(lacking, [], {"ASCEND_HOME_PATH": str(home)}))
    assert found["CANN"].value == f"9.0.0 in {home}"
    assert found["ASCEND_HOME_PATH"].value == str(home)
    assert "Install CANN" in found[lacking].hint


def test_platforms_share_what_they_need() -> None:
    from hccl_platform import PLATFORMS

    assert all(isinstance(platform(), DiagnosticsProvider) for platform in PLATFORMS)
    assert TORCH in CHECKS
    assert TORCH._replace(is_needed=False) in OF_PROCESSES
    assert installed("no such distribution") == ""
