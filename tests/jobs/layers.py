"""Layers of a model as jobs have them: kernels, sums of tensor parallelism, sums of gradients."""

from __future__ import annotations

from hccl_py.communicator.communicator import Communicator
from hccl_py.communicator.groups import ParallelGroups
from hccl_py.jobs import Job
from tests.recording import op_of


def three_layers(world: Communicator, groups: ParallelGroups) -> Job:
    """Return three layers on 8 ranks, ranks 0 and 5 with kernels of their own."""
    job = Job(world.topology)
    compute, tp, dp = (job.stream(name) for name in ("compute", "tp", "dp"))
    for layer in range(3):
        compute.on([0, 5]).compute([7.0, 9.0])
        compute.compute(30.0)
        tp.wait(compute.record())
        tp.run(groups.tp, op_of("all_reduce", 2000), f"tp {layer}")
        compute.wait(tp.record())
        dp.wait(compute.record())
        dp.run(groups.dp, op_of("all_reduce", 5000), f"dp {layer}")
    return job
