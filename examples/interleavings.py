"""The same program in many interleavings of its asynchronous streams, the nastiest included."""

import numpy as np

import hccl_py as hccl

# Twelve ranks are two servers: the ring has SDMA and RDMA links.
inputs = [np.arange(1000, dtype=np.int32) + rank for rank in range(12)]
wanted = np.sum(inputs, axis=0)

for adversary in hccl.Adversary:
    for seed in range(3):
        schedule = hccl.Schedule(seed, adversary)
        with hccl.Communicator(ranks=12, schedule=schedule) as comm:
            result = comm.all_reduce(inputs)
        assert all((output == wanted).all() for output in result.outputs)
    print(f"{adversary.value}: right in 3 interleavings, {result.program.task_count} tasks each")
