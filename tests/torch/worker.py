"""One of the processes in which the torch tests run: functions in, results or tracebacks out.

    python -m tests.torch.worker RANK SIZE STORE_FILE

Requests come on standard input as (module, function, arguments); what the functions print goes to
standard error, so that only answers are on standard output.
"""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from datetime import timedelta
from importlib import import_module
from typing import Any, BinaryIO

import torch
import torch.distributed as dist

import hccl_py.torch  # noqa: F401  (registers the backend)

TIMEOUT = timedelta(seconds=60)


def main() -> None:
    rank, size, store = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    dist.init_process_group(
        "hccl_py", init_method=f"file://{store}", rank=rank, world_size=size, timeout=TIMEOUT
    )
    while (request := _read(sys.stdin.buffer)) is not None:
        module, function, arguments = request
        try:
            answer = True, getattr(import_module(module), function)(rank, size, *arguments)
        except Exception:
            answer = False, traceback.format_exc()
        pickle.dump(answer, answers)
        answers.flush()
    dist.destroy_process_group()


def _read(stream: BinaryIO) -> Any:
    try:
        return pickle.load(stream)
    except EOFError:
        return None


if __name__ == "__main__":
    main()
