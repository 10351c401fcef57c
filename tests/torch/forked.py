"""Run scripts as torchrun would, every rank forked from this process: what takes seconds to import
is imported once.

    python -m tests.torch.forked

A request on standard input is a line of JSON, [script, ranks]; the answer on standard output is
another, [whether all ranks ended well, what they printed, their errors].
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import sklearn.datasets  # noqa: F401
import torch._dynamo  # noqa: F401  (which the first optimizer imports)

import hccl_py.torch  # noqa: F401


def main() -> None:
    for request in sys.stdin:
        script, ranks = json.loads(request)
        print(json.dumps(_run(script, ranks)), flush=True)


def _run(script: str, ranks: int) -> tuple[bool, str, str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(probe.getsockname()[1])}
    with _file() as printed, _file() as errors:
        started = []
        for rank in range(ranks):
            numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks}
            variables = shared | {name: str(number) for name, number in numbers.items()}
            started.append(os.fork())
            if not started[-1]:
                _be_rank(script, variables, printed, errors)
        return _end(started), _text(printed), _text(errors)


def _end(started: list[int]) -> bool:
    """Wait for all ranks, and end them as soon as one fails, as torchrun does."""
    left = set(started)
    is_well = True
    while left:
        process, status = os.waitpid(-1, 0)
        left.discard(process)
        if status and is_well:
            is_well = False
            for other in left:
                os.kill(other, signal.SIGKILL)
    return is_well


@contextmanager
def _file() -> Iterator[TextIO]:
    """Return a file whose end all ranks write to."""
    with tempfile.NamedTemporaryFile("a+", encoding="utf-8") as file:
        yield file  # type: ignore[misc]


def _text(file: TextIO) -> str:
    file.seek(0)
    return file.read()


def _be_rank(script: str, variables: dict[str, str], printed: TextIO, errors: TextIO) -> None:
    """Run the script in this process and end it."""
    os.environ |= variables
    os.dup2(printed.fileno(), 1)
    os.dup2(errors.fileno(), 2)
    status = 1
    try:
        runpy.run_path(script, run_name="__main__")
        status = 0
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
