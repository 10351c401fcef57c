"""Runs torch-npu's edition of torch's suites of FSDP2, DTensor and pipelines on CPU tensors: one
line per case, `ok`, `skip` or `FAIL`, its name, and why.

    python -m tests.torch.npus_own CHECKOUT hccl_py|gloo [PART ...]

CHECKOUT is a checkout of the repository Ascend/pytorch; a PART chooses the cases whose names begin
with it. These suites say `npu` where torch's say `cuda`, and are read with `cpu` in its place; what
needs an operator of torch_npu fails with any backend. Cases that run in one process are left out,
as they make no group of this backend. Processes are forked, and have 60 s a case.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import unittest
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.pipelining
from torch.nn.parallel import DistributedDataParallel

os.environ |= {"PYTORCH_PRINT_REPRO_ON_FAILURE": "0", "MASTER_ADDR": "127.0.0.1"}
warnings.simplefilter("ignore")

from torch.testing._internal import common_distributed, common_fsdp, common_utils  # noqa: E402
from torch.testing._internal.distributed._tensor import common_dtensor  # noqa: E402

import hccl_py.torch.group  # noqa: E402, F401  (registers the backend; loaded before the forks)
from tests.torch.making import making  # noqa: E402

DEVICES, SECONDS = 4, 60
SUITES = ("fsdp2", "_composable/fsdp", "_tensor", "tensor", "tensor/parallel", "pipelining")
IN_PROCESSES = (common_distributed.MultiProcessTestCase, common_distributed.MultiProcContinuousTest)


def stand_in_for_npus() -> None:
    """Have torch count CPU devices where the suites count NPUs, and name its own test classes."""
    torch.accelerator.device_count = torch.cpu.device_count = lambda: DEVICES
    torch.cpu.manual_seed = torch.cpu.manual_seed_all = torch.manual_seed
    torch.cpu.initial_seed = torch.initial_seed
    torch.npu = torch.cpu
    common_fsdp.DEVICE_COUNT = DEVICES
    _leave_ddp_on_the_host()
    names: dict[str, Any] = {
        "": {},
        ".contrib": {"transfer_to_npu": None},
        ".distributed": {},
        ".distributed.pipelining": {"pipeline": torch.distributed.pipelining.pipeline},
        ".testing": {},
        ".testing.common_distributed": {
            "with_comms": common_dtensor.with_comms,
            "skipIfUnsupportMultiNPU": _on_enough_devices,
        },
        ".testing.common_utils": {"SupportedDevices": lambda _: lambda case: case},
        ".testing.testcase": {"run_tests": None, "TestCase": common_utils.TestCase},
        ".testing._internal": {},
        ".testing._internal.common_fsdp": {"FSDPNPUTest": common_fsdp.FSDPTest},
        ".testing._internal.common_dtensor": {"NPUDTensorTestBase": common_dtensor.DTensorTestBase},
    }
    for name, contents in names.items():
        module = sys.modules[f"torch_npu{name}"] = ModuleType(f"torch_npu{name}")
        vars(module).update(contents, __path__=[])


def _leave_ddp_on_the_host() -> None:
    init = DistributedDataParallel.__init__

    def without_devices(
        self: Any, module: Any, device_ids: Any = None, output_device: Any = None, **named: Any
    ) -> None:
        init(self, module, **named)

    DistributedDataParallel.__init__ = without_devices


def _on_enough_devices(devices: int) -> Any:
    return unittest.skipIf(devices > DEVICES, f"needs {devices} devices")


def fork() -> None:
    """Have torch's test classes fork their processes, which spares each the import of torch."""
    context = torch.multiprocessing.get_context("fork")
    torch.multiprocessing.get_context = lambda _: context
    torch.multiprocessing.set_start_method("fork")
    torch.multiprocessing.set_start_method = lambda _: None
    common_distributed.TIMEOUT_DEFAULT = SECONDS


def cases(folder: Path, parts: list[str]) -> Iterator[tuple[str, unittest.TestCase]]:
    """Yield the cases that run in processes of their own, with their files, classes and names."""
    for suite in SUITES:
        sys.path.insert(0, str(folder / suite))
        for file in sorted((folder / suite).glob("test_*.py")):
            place = str(file.relative_to(folder))
            if not any(place.startswith(part) or part.startswith(place) for part in parts):
                continue
            try:
                module = _read(file)
            except Exception as error:
                print(f"FAIL {place} {_in_one_line(repr(error))}", flush=True)
                continue
            for case in _of(unittest.defaultTestLoader.loadTestsFromModule(module)):
                _, kind, name = case.id().rsplit(".", 2)
                full = f"{place}::{kind}.{name}"
                if isinstance(case, IN_PROCESSES) and full.startswith(tuple(parts)):
                    yield full, case


def _read(file: Path) -> ModuleType:
    text = re.sub(r"(?<=[\"'])npu(?=[:\"'])|(?<=\.)npu(?=\()", "cpu", file.read_text())
    module = sys.modules[file.stem] = ModuleType(file.stem)
    module.__file__ = str(file)
    exec(compile(text, str(file), "exec"), vars(module))
    return module


def _of(suite: Any) -> Iterator[Any]:
    for test in suite:
        yield from _of(test) if isinstance(test, unittest.TestSuite) else (test,)


def outcome(case: unittest.TestCase) -> tuple[str, str]:
    """Run one case, in processes that no other has used; return how it ended, and why."""
    case.__class__ = type(type(case).__name__, (type(case),), {})  # it keeps them in its class
    result = unittest.TestResult()
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        unittest.TestSuite([case]).run(result)
    wrong = result.failures + result.errors
    if wrong:
        return "FAIL", _in_one_line(wrong[0][1])
    return ("skip", result.skipped[0][1]) if result.skipped else ("ok", "")


def _in_one_line(trace: str) -> str:
    errors = [line for line in trace.splitlines() if re.match(r"\S*(Error|Exception)\b", line)]
    return (errors or trace.splitlines() or [""])[-1][:200]


def main() -> None:
    checkout, backend, *parts = sys.argv[1:]
    torch.set_num_threads(1)
    stand_in_for_npus()
    fork()
    dist.init_process_group = dist.device_mesh.init_process_group = making(backend)
    for name, case in cases(Path(checkout) / "test/distributed", parts or [""]):
        ended, why = outcome(case)
        print(ended, name, why, flush=True)


if __name__ == "__main__":
    main()
