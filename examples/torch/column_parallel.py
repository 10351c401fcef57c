"""Tensor parallelism: C = A B, where every rank has some columns of B; all_gather joins C's.

torchrun --nproc-per-node 4 examples/torch/column_parallel.py
"""

import torch
import torch.distributed as dist

import hccl_py.torch

ROWS, INNER, COLUMNS = 6, 8, 12

if __name__ == "__main__":
    dist.init_process_group("hccl_py")
    rank, size = dist.get_rank(), dist.get_world_size()
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(ROWS, INNER, generator=generator)
    b = torch.randn(INNER, COLUMNS, generator=generator)

    mine = a @ b.chunk(size, dim=1)[rank]  # ROWS x COLUMNS / size
    parts = [torch.empty_like(mine) for _ in range(size)]
    dist.all_gather(parts, mine)
    c = torch.cat(parts, dim=1)

    print(
        f"rank {rank}: my columns {tuple(mine.shape)}, all {tuple(c.shape)}, "
        f"equal to A B: {torch.allclose(c, a @ b, atol=1e-6)}\n",
        end="",
        flush=True,
    )
    if rank == 0:
        print(f"  {hccl_py.torch.last_trace()}\n", end="", flush=True)
    dist.destroy_process_group()
