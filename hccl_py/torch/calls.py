"""torch's collectives as calls of a communicator that has one local rank.

An op or a type that HCCL lacks is an all-gather of bytes, and a fold at every rank.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import BARRIER_COUNT
from hccl_py.communicator.collectives import reduction as parsed
from hccl_py.communicator.pending import Result
from hccl_py.enums import DataType
from hccl_py.errors import NotSupportedError
from hccl_py.torch.reductions import TorchReduction
from hccl_py.torch.repeats import CallKey, Repeat, TensorCommunicator
from hccl_py.torch.tensor_arrays import (
    Array,
    array_of,
    flat,
    joined,
    place_of,
    put,
    put_back,
    put_parts,
    unowned,
)
from hccl_py.torch.trace import CallTrace, note

Tensors = Sequence[torch.Tensor]

_BARRIER = CallKey("barrier", None, None, "sum")


def broadcast(comm: TensorCommunicator, tensor: torch.Tensor, root: int) -> None:
    """Give every rank the root's tensor."""
    key = _key("broadcast", tensor, tensor, root=root)
    if not comm.again(key):
        data = flat(tensor)
        _run(key, comm, data, data)
        put_back(tensor, data)


def all_reduce(comm: TensorCommunicator, tensor: torch.Tensor, reduction: TorchReduction) -> None:
    """Give every rank the reduction of all tensors, in place."""
    key = _key("all_reduce", tensor, tensor, reduction.in_hccl)
    if comm.again(key):
        return
    data = flat(tensor)
    try:
        _in_hccl(reduction)
        _run(key, comm, data, data)
    except NotSupportedError:
        put(tensor, _folded(comm, "all_reduce", data, reduction))
        return
    put_back(tensor, data)


def reduce(
    comm: TensorCommunicator, tensor: torch.Tensor, reduction: TorchReduction, root: int
) -> None:
    """Give the root the reduction of all tensors; the others' stay as they are."""
    data = flat(tensor)
    is_root = _rank(comm) == root
    try:
        done = comm.reduce([data], root, _in_hccl(reduction))
    except NotSupportedError:
        result = _folded(comm, "reduce", data, reduction)
    else:
        _note("reduce", comm, done)
        result = done.outputs[0]
    if is_root:
        put(tensor, result)


def all_gather(comm: TensorCommunicator, outputs: Tensors, input: torch.Tensor) -> None:
    """Give every rank all tensors, which may have different sizes."""
    data, counts = flat(input), [array_of(output).size for output in outputs]
    if len(set(counts)) == 1:
        done = comm.all_gather([data])
        counts = [data.size] * comm.size
    else:
        done = comm.all_gather_v([data], counts)
    _note("all_gather", comm, done)
    put_parts(outputs, done.outputs[0], counts)


def all_gather_into(comm: TensorCommunicator, output: torch.Tensor, input: torch.Tensor) -> None:
    """Gather into one tensor: its own memory takes the parts where it is contiguous."""
    key = _key("all_gather", input, output)
    if comm.again(key):
        return
    data, part = flat(output), flat(input)
    fits = data.size == comm.size * part.size and data.dtype == part.dtype
    if fits and not np.may_share_memory(data, part):
        _run(key, comm, part, data)
    else:
        _note("all_gather", comm, comm.all_gather([part], out=[data]))
    put_back(output, data)


def gather(comm: TensorCommunicator, outputs: Tensors, input: torch.Tensor, root: int) -> None:
    """Give the root all tensors."""
    data = flat(input)
    done = comm.gather([data], root)
    _note("gather", comm, done)
    if _rank(comm) == root:
        put_parts(outputs, done.outputs[0], [data.size] * comm.size)


def scatter(comm: TensorCommunicator, output: torch.Tensor, inputs: Tensors, root: int) -> None:
    """Give every rank its part of the root's tensors."""
    data = flat(output)
    parts = joined(inputs) if _rank(comm) == root else None
    done = comm.scatter([parts], root, out=[data])
    _note("scatter", comm, done)
    put(output, data)


def reduce_scatter(
    comm: TensorCommunicator, output: torch.Tensor, inputs: Tensors, reduction: TorchReduction
) -> None:
    """Give every rank its part of the reduction; parts may have different sizes."""
    data = joined(inputs)
    counts = [array_of(part).size for part in inputs]
    is_even = len(set(counts)) == 1
    try:
        name = _in_hccl(reduction)
        if is_even:
            done = comm.reduce_scatter([data], name)
        else:
            done = comm.reduce_scatter_v([data], counts, name)
    except NotSupportedError:
        rank, part = _rank(comm), array_of(output).size
        begin = rank * part if is_even else sum(counts[:rank])
        result = _folded(comm, "reduce_scatter", data, reduction)[begin : begin + part]
    else:
        _note("reduce_scatter", comm, done)
        result = done.outputs[0]
    put(output, result)


def all_to_all_evenly(comm: TensorCommunicator, output: torch.Tensor, input: torch.Tensor) -> None:
    """Send the same number of elements to every rank."""
    done = comm.all_to_all([flat(input)])
    _note("all_to_all", comm, done)
    put(output, done.outputs[0])


def all_to_all(comm: TensorCommunicator, outputs: Tensors, inputs: Tensors) -> None:
    """Send any number of elements to every rank: the ranks tell each other how many."""
    own = np.array([array_of(part).size for part in inputs], np.int64)
    heard = comm.exchange(own.tobytes())
    matrix = np.stack([np.frombuffer(counts, np.int64) for counts in heard])
    done = comm.all_to_all_v([joined(inputs)], matrix)
    _note("all_to_all", comm, done)
    if done.outputs[0] is not None:
        put_parts(outputs, done.outputs[0], matrix[:, _rank(comm)].tolist())


def barrier(comm: TensorCommunicator) -> None:
    """Hold every rank until all ranks have made the call."""
    if not comm.again(_BARRIER):
        comm.keep(_BARRIER, _first(_BARRIER, comm, *np.zeros((2, BARRIER_COUNT), np.float32)))


def _key(
    op: str,
    into: torch.Tensor,
    out: torch.Tensor,
    reduce: str | None = None,
    root: int | None = None,
) -> CallKey:
    place = place_of(into)
    return CallKey(op, place, place if out is into else place_of(out), reduce, root)


def _run(key: CallKey, comm: TensorCommunicator, into: Array, out: Array) -> None:
    """Run an op on rows of the sizes that it takes, whose `into` is `out` or apart from it: what
    the communicator finds out of a call's arrays is known of these. Keep the call for the next
    time, unless a copy takes a tensor's part.
    """
    if key.into is None or key.out is None:
        _first(key, comm, into, out)
        return
    row = unowned(into)
    comm.keep(key, _first(key, comm, row, row if into is out else unowned(out)))


def _first(key: CallKey, comm: TensorCommunicator, into: Array, out: Array) -> Repeat:
    """Make a call for the first time."""
    found = parsed(key.reduce) if key.reduce else None
    op = OpParam(
        *(key.op, into.size, DataType.of(into.dtype), found and found.op, key.root),
        mode=comm.config.mode,
        in_place=into is out,
    )
    call = comm.bind(op, [into], [out])
    trace = CallTrace.of(key.op, _rank(comm), call.result)
    repeat = Repeat(call, trace, found is not None and found.average)
    repeat.run()
    return repeat


def _in_hccl(reduction: TorchReduction) -> str:
    if reduction.in_hccl is None:
        raise NotSupportedError(f"HCCL has no {reduction.name} of {reduction.dtype}.")
    return reduction.in_hccl


def _folded(comm: TensorCommunicator, call: str, data: Array, reduction: TorchReduction) -> Array:
    """Gather the bytes of all ranks and reduce them here, in rank order."""
    done = comm.all_gather([data.view(np.uint8)])
    _note(call, comm, done, folded=True)
    return reduction.fold(done.outputs[0].view(data.dtype).reshape(comm.size, -1))


def _rank(comm: TensorCommunicator) -> int:
    return comm.local_ranks[0]


def _note(call: str, comm: TensorCommunicator, done: Result, folded: bool = False) -> None:
    note(CallTrace.of(call, _rank(comm), done, folded=folded))
