"""What every process of a job of MPI does in a test: built-in executors over messages of MPI.

usage: job_executors.py KIND SEED
"""

from __future__ import annotations

import sys

from hccl_executors import EXECUTORS
from hccl_platform.distributed.between_hosts import MessageSession
from hccl_platform.distributed.messages import open_messenger
from hccl_platform.processes.world import world_of_environment
from hccl_py.plugins.platforms import Group
from tests.platform.distributed.sessions import CCL_BYTES, places, runs_of


def main(kind: str, seed: str) -> None:
    world = world_of_environment()
    group, key = Group.world(world.size), world.key_of("world")
    messages = open_messenger("mpi", world, group, key, 60.0)
    hosts = places(kind, world.size)
    session = MessageSession(world.rank, hosts, world.store, key, CCL_BYTES, messages, 60.0)
    wrong, count = [], 0
    for executor in EXECUTORS:
        for run in runs_of(executor, (world.size,), tries=200, most=3, seed=int(seed)):
            wrong += [text] if (text := run.wrong(session, world.rank)) else []
            count += 1
    session.close()
    sys.stdout.write(f"rank {world.rank} {count > 50}: {wrong or 'right'}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
