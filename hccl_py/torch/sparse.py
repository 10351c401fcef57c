"""all_reduce of sparse tensors: indices and values are gathered, then summed at every rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.distributed import ReduceOp

from hccl_py.errors import NotSupportedError
from hccl_py.torch.repeats import TensorCommunicator
from hccl_py.torch.tensor_arrays import flat, is_on_host
from hccl_py.torch.trace import CallTrace, note


def sparse_all_reduce(comm: TensorCommunicator, tensor: torch.Tensor, op: Any) -> None:
    """Sum a COO tensor over all ranks, in place; how many values each rank has may differ."""
    if tensor.layout is not torch.sparse_coo or getattr(op, "op", op) != ReduceOp.RedOpType.SUM:
        raise NotSupportedError(
            f"all_reduce does not take {op} of a {tensor.layout} tensor.",
            "Of sparse tensors, those of layout sparse_coo are summed.",
        )
    if not is_on_host(tensor):
        raise NotSupportedError(
            f"all_reduce does not take a sparse tensor on {tensor.device}.", "Give tensor.cpu()."
        )
    own = tensor.detach().coalesce()
    indices, values = own.indices(), own.values()
    number = np.array([values.shape[0]], np.int64)
    counts = comm.all_gather([number]).outputs[0]
    row = values[0].numel() if values.shape[0] else int(np.prod(values.shape[1:]))
    places = comm.all_gather_v([flat(indices.t())], counts * indices.shape[0]).outputs[0]
    done = comm.all_gather_v([flat(values)], counts * row)
    note(CallTrace.of("all_reduce", comm.local_ranks[0], done, folded=True))
    total = int(counts.sum())
    all_indices = torch.from_numpy(np.ascontiguousarray(places)).reshape(total, -1).t()
    gathered = torch.from_numpy(np.ascontiguousarray(done.outputs[0]))
    all_values = gathered.reshape(total, *values.shape[1:])
    with torch.no_grad():
        tensor.copy_(torch.sparse_coo_tensor(all_indices, all_values, tensor.shape).coalesce())
