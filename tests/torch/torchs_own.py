"""Runs torch's own tests of backends, torch.testing._internal.distributed.distributed_test, in four
forked processes each: one line per test, `ok`, `skip` or `FAIL`, its name, and why.

    python -m tests.torch.torchs_own hccl_py|gloo [test ...]
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

FOLDER = tempfile.TemporaryDirectory()
# Read when the module below is imported: its decorators leave out what torch has for gloo only.
os.environ |= {"BACKEND": "gloo", "WORLD_SIZE": "4", "TEMP_DIR": FOLDER.name}
os.environ |= {"MASTER_ADDR": "127.0.0.1", "PYTORCH_PRINT_REPRO_ON_FAILURE": "0"}
warnings.simplefilter("ignore")

from torch.testing._internal.distributed import distributed_test as theirs  # noqa: E402

import hccl_py.torch  # noqa: E402, F401  (registers the backend)

STARTED = "fork"


BACKEND_TESTS: Any = theirs.TestDistBackend
CASES: Any = theirs.DistributedTest._DistTestBase


class TorchsOwn(BACKEND_TESTS, CASES):  # type: ignore[misc]
    def setUp(self) -> None:
        super().setUp()
        self._start_processes(torch.multiprocessing.get_context(STARTED).Process)


def main() -> None:
    theirs.BACKEND = sys.argv[1]
    torch.set_num_threads(1)
    names = sys.argv[2:] or [name for name in dir(TorchsOwn) if name.startswith("test_")]
    for name in names:
        result = unittest.TestResult()
        with contextlib.redirect_stderr(io.StringIO()):
            TorchsOwn(name).run(result)
        wrong = result.failures + result.errors
        outcome = "skip" if result.skipped else "FAIL" if wrong else "ok"
        why = wrong[0][1].strip().splitlines()[-1] if wrong else ""
        print(outcome, name, why, flush=True)


if __name__ == "__main__":
    main()
