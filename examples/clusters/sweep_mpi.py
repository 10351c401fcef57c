"""A sweep over MPI: rank 0 hands out the points, the other ranks time them.

mpiexec -n 3 python -m mpi4py.futures sweep_mpi.py all_reduce.csv
"""

import sys

from mpi4py.futures import MPIPoolExecutor

from hccl_py.call.call_spec import CallSpec, ClusterSpec
from hccl_py.simulator import CostModel
from hccl_py.tuning.points import Point
from hccl_py.tuning.sweep import sweep
from hccl_py.tuning.tune import alternatives

if __name__ == "__main__":
    cost = CostModel.of("atlas-800t-a2")
    call = CallSpec("all_reduce", cluster=ClusterSpec(servers=2, devices=2))
    sizes = 1 << 10, 1 << 20, 1 << 30
    calls = [Point(call=call.sized(size), cost=cost) for size in sizes]
    points = [way for call in calls for way in alternatives(call)]
    with MPIPoolExecutor() as executor:
        found = sweep(points, sys.argv[1], executor=executor)
    print(f"{found.computed} of {len(found.points)} points timed")
