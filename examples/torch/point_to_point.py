"""A tensor goes from rank 0 to rank 1 and back; the script starts both processes itself.

python examples/torch/point_to_point.py
"""

import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import hccl_py.torch  # noqa: F401  (registers the backend)

SIZE = 2


def run(rank: int) -> None:
    tensor = torch.zeros(1)
    if rank == 0:
        tensor += 1
        dist.send(tensor, dst=1)
        print(f"after send, Rank {rank} has data {tensor[0]}\n", end="", flush=True)
        dist.recv(tensor, src=1)
        print(f"after recv, Rank {rank} has data {tensor[0]}\n", end="", flush=True)
    else:
        dist.recv(tensor, src=0)
        print(f"after recv, Rank {rank} has data {tensor[0]}\n", end="", flush=True)
        tensor += 1
        dist.send(tensor, dst=0)
        print(f"after send, Rank {rank} has data {tensor[0]}\n", end="", flush=True)


def start(rank: int, path: str) -> None:
    """Join the processes: the first one's place is a file that all of them can see."""
    dist.init_process_group("hccl_py", init_method=f"file://{path}", rank=rank, world_size=SIZE)
    run(rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(start, args=(os.path.join(folder, "store"),), nprocs=SIZE)
