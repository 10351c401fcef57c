"""Runs torch's own tests of backends, torch.testing._internal.distributed.distributed_test, in four
forked processes each: one line per test, `ok`, `skip` or `FAIL`, its name, and why.

    python -m tests.torch.torchs_own hccl_py|gloo [test ...]

torch's tests skip themselves by the name of the backend, those of sub-groups below 8 ranks, and
those of one GPU where there is none. Here they all try, and move a tensor to the GPU by leaving it
where it is; what takes a real GPU fails or is skipped with any backend. Their bodies tell `gloo`
from `nccl` to make CPU or GPU models, so `gloo` is what they read, and the group is made with the
backend that is asked for.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import unittest
import warnings
from typing import Any

import torch
import torch.distributed as dist

FOLDER = tempfile.TemporaryDirectory()
os.environ |= {"BACKEND": "gloo", "WORLD_SIZE": "4", "TEMP_DIR": FOLDER.name}
os.environ |= {"MASTER_ADDR": "127.0.0.1", "PYTORCH_PRINT_REPRO_ON_FAILURE": "0"}
os.environ["INIT_METHOD"] = f"file://{FOLDER.name}/again"
warnings.simplefilter("ignore")

from torch.testing._internal import common_distributed, common_utils  # noqa: E402

common_utils.skip_but_pass_in_sandcastle_if = lambda is_other, why: lambda test: test
common_distributed.skip_if_small_worldsize = lambda test: test
common_distributed.skip_if_no_gpu = lambda test: test
common_distributed.init_multigpu_helper = lambda ranks, _: {rank: ["cpu"] for rank in range(ranks)}
torch.Tensor.cuda = lambda tensor, *_: tensor
torch.cuda.set_device = lambda _: None
torch.cuda.current_stream = lambda *_: None

from torch.testing._internal.distributed import distributed_test as theirs  # noqa: E402

import hccl_py.torch.group  # noqa: E402, F401  (registers the backend; loaded before the forks)
from tests.torch.making import making  # noqa: E402

STARTED = "fork"
ABOUT_NAMES = ("test_Backend_enum_class", "test_get_backend")
"""Tests that compare the name of the backend."""

BACKEND_TESTS: Any = theirs.TestDistBackend
CASES: Any = theirs.DistributedTest._DistTestBase


class TorchsOwn(BACKEND_TESTS, CASES):  # type: ignore[misc]
    def setUp(self) -> None:
        super().setUp()
        self._start_processes(torch.multiprocessing.get_context(STARTED).Process)


def main() -> None:
    dist.init_process_group = making(sys.argv[1])
    torch.set_num_threads(1)
    names = sys.argv[2:] or [name for name in dir(TorchsOwn) if name.startswith("test_")]
    for name in names:
        theirs.BACKEND = sys.argv[1] if name in ABOUT_NAMES else "gloo"
        result = unittest.TestResult()
        with contextlib.redirect_stderr(io.StringIO()):
            TorchsOwn(name).run(result)
        wrong = result.failures + result.errors
        outcome = "skip" if result.skipped else "FAIL" if wrong else "ok"
        why = wrong[0][1].strip().splitlines()[-1] if wrong else ""
        why = result.skipped[0][1] if result.skipped else why
        print(outcome, name, why, flush=True)


if __name__ == "__main__":
    main()
