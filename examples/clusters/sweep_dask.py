"""A sweep on a Dask cluster; give the address of its scheduler, or a cluster of two processes on
this machine does the work.

python sweep_dask.py all_reduce.csv [tcp://scheduler:8786]
"""

import sys

from distributed import Client

from hccl_py.call.call_spec import CallSpec, ClusterSpec
from hccl_py.simulator import CostModel
from hccl_py.tuning.points import Point
from hccl_py.tuning.sweep import sweep
from hccl_py.tuning.tune import alternatives

if __name__ == "__main__":
    path, *address = sys.argv[1:]
    local = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    cost = CostModel.of("atlas-800t-a2")
    call = CallSpec("all_reduce", cluster=ClusterSpec(servers=2, devices=2))
    sizes = 1 << 10, 1 << 20, 1 << 30
    calls = [Point(call=call.sized(size), cost=cost) for size in sizes]
    points = [way for call in calls for way in alternatives(call)]
    with Client(*address, **({} if address else local)) as client:
        found = sweep(points, path, executor=client.get_executor())
    print(f"{found.computed} of {len(found.points)} points timed")
