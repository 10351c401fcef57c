"""How long the contended walk takes, against expanding, linking and timing the same tasks alone.

    python benchmarks/contended.py

Every case runs in a process of its own, so that its peak memory is its own, and once before with
few ranks: kernels are loaded then. Budget: at most 5 x expand + link + simulate_tasks for the ring,
under 2.5 GB. How times compare with SimGrid's is in benchmarks/simgrid/.
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
    from hccl_py.topology import Topology

RING, FULL = "AllReduceComm", "RunAlltoAllVFullMesh"
DIRECT = "RunAlltoAllDirectFullmesh"
CASES = {
    "ring all-reduce, 1 024 ranks": (RING, "ring", 1024),
    "all-to-all in pairs, torus of 16 x 16": (FULL, "torus:16x16", None),
    "all-to-all in pairs, fat-tree of 1 024 ranks": (FULL, "fat-tree:16", None),
    "all-to-all in pairs, torus of 32 x 32": (FULL, "torus:32x32", None),
    "all-to-all all at once, torus of 16 x 16": (DIRECT, "torus:16x16", None),
}
SMALL = {"ring": ("ring", 8), "torus": ("torus:4x4", None), "fat-tree": ("fat-tree:4", None)}


def recorded(executor: str, topology: Topology) -> Program:
    """Return a new program: 64 MiB of all-reduce, or 4 KiB to everybody."""
    import hccl_executors
    from hccl_py.enums import DataType, ReduceOp
    from hccl_py.op_param import OpParam
    from hccl_py.operators import make_operator
    from hccl_py.orchestration.record import record

    cls = next(cls for cls in hccl_executors.EXECUTORS if cls.__name__ == executor)
    op = OpParam("all_to_all", 1024 * topology.size, DataType.FP32)
    if executor == RING:
        op = OpParam("all_reduce", 16 << 20, DataType.FP32, ReduceOp.SUM)
    return record(cls(), op, topology, make_operator(op.name), 200 << 20)


def measure(executor: str, preset: str, ranks: int | None) -> dict[str, float]:
    """Simulate a small case to warm up, and the case itself with a clock."""
    from hccl_py.program import kernels
    from hccl_py.simulator import CostModel, simulate_contended, simulate_tasks
    from hccl_py.topology import topology_of

    def run(preset: str, ranks: int | None) -> dict[str, float]:
        topology = topology_of(ranks, preset=preset)
        program, cost = recorded(executor, topology), CostModel.of(topology.product.name)
        times = [time.perf_counter()]
        program.linked.check(program)
        times.append(time.perf_counter())
        alone = simulate_tasks(program, topology, cost).total_us
        times.append(time.perf_counter())
        shared = simulate_contended(program, topology, cost).total_us
        times.append(time.perf_counter())
        return {
            "tasks": program.task_count,
            "expand_link_s": times[1] - times[0],
            "alone_s": times[2] - times[1],
            "contended_s": times[3] - times[2],
            "ratio": (times[3] - times[2]) / (times[2] - times[0]),
            "alone_us": alone,
            "contended_us": shared,
        }

    kernels.WORTH_COMPILING = 0
    run(*SMALL[preset.partition(":")[0]])
    found = run(preset, ranks)
    return found | {"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def main() -> None:
    """Print one line per case."""
    if len(sys.argv) > 1:
        print(json.dumps(measure(*json.loads(sys.argv[1]))))
        return
    for name, arguments in CASES.items():
        command = [sys.executable, __file__, json.dumps(arguments)]
        found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        print(f"{name}: " + ", ".join(f"{key} {value:,.3f}" for key, value in found.items()))


if __name__ == "__main__":
    main()
