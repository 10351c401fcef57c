"""Times of the verifier: all checks, the op twice back to back, and a sweep over an executor.

    python benchmarks/verifying.py

Every case runs in a process of its own on one core, so that its peak memory is its own. Kernels are
warm: a first process compiles them, and each process verifies once before it measures. The bound is
the untimed walk over the same tasks, which links posts to waits and looks at nothing else.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hccl_py.program.program import Program

CASES = ("mesh all_gather, 64", "ring all_reduce, 64", "ring all_reduce, 256", "sweep")


def recorded(name: str, ranks: int) -> Program:
    """Return a new program of a case."""
    import hccl_executors
    from hccl_py.call.op_param import OpParam
    from hccl_py.enums import DataType, ReduceOp
    from hccl_py.operators import make_operator
    from hccl_py.orchestration.record import record
    from hccl_py.topology import topology_of

    mesh = name.startswith("mesh")
    executor = (
        hccl_executors.AllGatherMeshOpbaseExecutor() if mesh else hccl_executors.AllReduceComm()
    )
    op = OpParam(executor.op, ranks << 10, DataType.FP32, None if mesh else ReduceOp.SUM)
    topology = topology_of(ranks, preset="mesh" if mesh else "ring")
    return record(executor, op, topology, make_operator(op.name), 200 << 20)


def measure(case: str) -> dict[str, float]:
    """Verify a case once to warm up, and once more with a clock."""
    import hccl_executors
    from hccl_py.verifier import verify_executor, verify_program
    from hccl_py.verifier.analysis.unrolled import unrolled

    if case == "sweep":
        start = time.perf_counter()
        reports = [verify_executor(cls()) for cls in hccl_executors.EXECUTORS]
        assert all(report.ok for report in reports)
        seconds = time.perf_counter() - start
        return {"calls": sum(report.cases for report in reports), "s": seconds, "peak_mb": peak()}
    name, ranks = case.rsplit(",", 1)
    assert verify_program(recorded(name, int(ranks))).ok
    program = recorded(name, int(ranks))
    tasks = len(program.tasks)
    start = time.perf_counter()
    assert not len(unrolled(program, 2).stuck)
    walk = time.perf_counter() - start
    program = recorded(name, int(ranks))
    start = time.perf_counter()
    assert verify_program(program).ok
    seconds = time.perf_counter() - start
    return {"tasks": tasks, "s": seconds, "x_walk": seconds / walk, "peak_mb": peak()}


def peak() -> float:
    """Return the peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Print one line per case: the best of three runs."""
    if len(sys.argv) > 1:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        print(json.dumps(measure(sys.argv[1])))
        return
    subprocess.run([sys.executable, __file__, CASES[0]], check=True, capture_output=True)
    for case in CASES:
        command = [sys.executable, __file__, case]
        runs = [
            json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            for _ in range(3)
        ]
        best = {key: min(run[key] for run in runs) for key in runs[0]}
        print(f"{case}: " + ", ".join(f"{key} {value:,.3f}" for key, value in best.items()))


if __name__ == "__main__":
    main()
