"""Data x tensor parallelism: every rank is in two groups at once.

Ranks 0 1 | 2 3 share a layer (tensor parallel); ranks 0 2 | 1 3 share its parameters (data
parallel). The sums of both groups are the sum over the world.

    torchrun --nproc-per-node 4 examples/torch/hybrid_groups.py
"""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

import hccl_py.torch  # noqa: F401  (registers the backend)

TENSOR = 2

if __name__ == "__main__":
    dist.init_process_group("hccl_py")
    rank, size = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (size // TENSOR, TENSOR), mesh_dim_names=("data", "tensor"))
    tensor, data = mesh.get_group("tensor"), mesh.get_group("data")
    print(
        f"rank {rank}: tensor group {dist.get_process_group_ranks(tensor)}, "
        f"data group {dist.get_process_group_ranks(data)}\n",
        end="",
        flush=True,
    )

    value = torch.tensor([float(rank + 1)])
    partial = value.clone()
    dist.all_reduce(partial, group=tensor)
    total = partial.clone()
    dist.all_reduce(total, group=data)
    print(
        f"rank {rank}: {value.item():.0f} -> {partial.item():.0f} in its tensor group -> "
        f"{total.item():.0f} in all\n",
        end="",
        flush=True,
    )
    dist.destroy_process_group()
