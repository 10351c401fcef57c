"""What every process of a job does in tests: all ops, checked, and who it is.

usage: job.py RANKS [OP ...]
"""

from __future__ import annotations

import sys

from hccl_py.call.call_spec import CallSpec, ClusterSpec
from hccl_py.communicator.communicator import Communicator
from hccl_py.communicator.measurement import Measurement
from hccl_py.operators import OPERATORS


def failures(comm: Communicator, ops: list[str] | None = None) -> list[str]:
    """Run ops twice with data made up, and say which are wrong anywhere."""
    measurement = Measurement(comm, iters=1, warmup=1, check=True)
    found = []
    for op in ops or list(OPERATORS):
        spec = CallSpec(op, cluster=ClusterSpec(ranks=comm.size))
        plan = comm.plan(spec.sized(4096).param(comm.size))
        row = measurement.row(plan, lambda: None)
        found += [] if row.check == "success" else [f"{op}: {row.first_wrong}"]
    return found


def main(ranks: str, *ops: str) -> None:
    with Communicator(ranks=int(ranks), platform="distributed") as comm:
        wrong = failures(comm, list(ops))
        sessions = type(comm._session).__name__
        sys.stdout.write(f"rank {comm.local_ranks[0]} {sessions}: {wrong or 'right'}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
