"""How long recording takes, and expanding, linking and timing what was recorded.

    python benchmarks/recording.py

Every case runs in a process of its own, so that its peak memory is its own. Kernels are warm: a
first process compiles them.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hccl_py.program.program import Program

CASES = {
    "ring all-reduce, 1 024 ranks": (1024, True),
    "ring all-reduce, 4 096 ranks": (4096, False),
    "ring all-reduce, 16 384 ranks": (16384, False),
}


def measure(ranks: int, expand: bool) -> dict[str, float]:
    """Record, simulate and, where asked, expand and link one ring all-reduce of 64 MiB."""
    import hccl_executors
    from hccl_py.enums import DataType, ReduceOp
    from hccl_py.op_param import OpParam
    from hccl_py.operators import make_operator
    from hccl_py.orchestration.record import record
    from hccl_py.simulate import CostModel, simulate_batches
    from hccl_py.topology import topology_of

    op = OpParam("all_reduce", 16 << 20, DataType.FP32, ReduceOp.SUM)
    operator, cost = make_operator("all_reduce"), CostModel.of("ring")

    def recorded(size: int) -> Program:
        executor = hccl_executors.AllReduceComm()
        return record(executor, op, topology_of(size, preset="ring"), operator, 200 << 20)

    warm = recorded(256)
    simulate_batches(warm, cost)
    assert warm.linked.is_clean
    start = time.perf_counter()
    program = recorded(ranks)
    done = {"tasks": program.task_count, "record_s": time.perf_counter() - start}
    start = time.perf_counter()
    simulate_batches(program, cost)
    done["simulate_s"] = time.perf_counter() - start
    done["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if expand:
        start = time.perf_counter()
        assert program.linked.is_clean
        done["expand_link_s"] = time.perf_counter() - start
        done["expand_peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return done


def main() -> None:
    """Print one line per case."""
    if len(sys.argv) > 1:
        print(json.dumps(measure(int(sys.argv[1]), sys.argv[2] == "True")))
        return
    subprocess.run([sys.executable, __file__, "256", "True"], check=True, capture_output=True)
    for name, arguments in CASES.items():
        command = [sys.executable, __file__, *map(str, arguments)]
        runs = [
            json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            for _ in range(3)
        ]
        best = {key: min(run[key] for run in runs) for key in runs[0]}
        print(f"{name}: " + ", ".join(f"{key} {value:,.3f}" for key, value in best.items()))


if __name__ == "__main__":
    main()
