"""Real processes in tests: forked once by the launcher, whatever they then do."""

from __future__ import annotations

import os
import pickle
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

from hccl_platform.processes.launch import launch
from hccl_platform.processes.world import World, world_of_environment

T = TypeVar("T")


def in_processes(ranks: int, body: Callable[[World], T]) -> list[T]:
    """Call a function in every process; return what they return, in the order of ranks.

    What one of them raises fails here, with its traceback.
    """
    results = [os.memfd_create(f"result of rank {rank}") for rank in range(ranks)]

    def work() -> int:
        world = world_of_environment()
        try:
            found: tuple[bool, Any] = (True, body(world))
        except BaseException:
            found = (False, traceback.format_exc())
        os.write(results[world.rank], pickle.dumps(found))
        return 0 if found[0] else 1

    try:
        status = launch(ranks, work)
        found = [_read(result) for result in results]
    finally:
        for result in results:
            os.close(result)
    failed = [f"rank {r}: {value}" for r, (is_right, value) in enumerate(found) if not is_right]
    assert not status, f"exit status {status}\n" + "\n".join(failed)
    return [value for _, value in found]


def _read(descriptor: int) -> tuple[bool, Any]:
    os.lseek(descriptor, 0, os.SEEK_SET)
    with open(descriptor, "rb", closefd=False) as file:
        data = file.read()
    return pickle.loads(data) if data else (False, "it left no result")
