"""Synchronous SGD on scikit-learn's 1 797 digits: every rank has a part of each batch, gradients
are averaged by all_reduce. The loss is that of one process, for any number of ranks.

    torchrun --nproc-per-node 4 examples/torch/sgd_digits.py
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn, optim

import hccl_py.torch  # noqa: F401  (registers the backend)

BATCH, EPOCHS = 60, 10


class Net(nn.Module):
    """64 pixels to 10 digits."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(64, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.log_softmax(self.fc2(F.relu(self.fc1(x))), dim=1)


def average_gradients(model: nn.Module) -> None:
    """Gradient averaging."""
    size = float(dist.get_world_size())
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad.data, op=dist.ReduceOp.SUM)
        parameter.grad.data /= size


def batches(rank: int, size: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return this rank's part of every batch, in an order that all ranks share."""
    digits = load_digits()
    pixels = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(1234))
    whole = order[: len(order) // BATCH * BATCH].split(BATCH)
    return [(pixels[batch[rank::size]], labels[batch[rank::size]]) for batch in whole]


def run(rank: int, size: int) -> None:
    """Distributed synchronous SGD."""
    torch.manual_seed(1234)
    train_set = batches(rank, size)
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
    for epoch in range(EPOCHS):
        epoch_loss = 0.0
        for data, target in train_set:
            optimizer.zero_grad()
            loss = F.nll_loss(model(data), target)
            epoch_loss += loss.item()
            loss.backward()
            average_gradients(model)
            optimizer.step()
        mean = torch.tensor([epoch_loss / len(train_set)])
        dist.all_reduce(mean, op=dist.ReduceOp.AVG)
        if rank == 0:
            print(f"epoch {epoch}: loss {mean.item():.4f}\n", end="", flush=True)


if __name__ == "__main__":
    dist.init_process_group("hccl_py")
    if BATCH % dist.get_world_size():
        raise SystemExit(f"Batches of {BATCH} do not split evenly over the ranks.")
    run(dist.get_rank(), dist.get_world_size())
    dist.destroy_process_group()
