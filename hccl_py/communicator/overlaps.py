"""Memory that inputs and outputs share: in place as HCCL defines it, or an error."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import OPS
from hccl_py.communicator.device_arrays import address_of
from hccl_py.errors import ParameterError
from hccl_py.operators.base import Operator

Array: TypeAlias = npt.NDArray[Any]


def refuse_shared(op: str, inputs: list[Array], outputs: list[Array], local_ranks: range) -> None:
    """Refuse outputs that overlap another rank's input or output: the order of writes would be
    undefined.
    """
    spans = []
    for rank, i, o in zip(local_ranks, inputs, outputs, strict=True):
        spans += [
            (*_bounds(a), rank, what) for a, what in ((i, "input"), (o, "output")) if a.nbytes
        ]
    spans.sort()
    # Of the spans so far, per kind: where the furthest ends, and the furthest of any other rank.
    furthest: dict[str, list[tuple[int, int]]] = {"input": [], "output": []}
    for start, stop, rank, what in spans:
        for other in ("input", "output"):
            for end, owner in furthest[other]:
                if "output" in (what, other) and start < end and owner != rank:
                    raise ParameterError(
                        f"Rank {rank}'s {what} shares memory with rank {owner}'s {other} in {op}.",
                        "Give every rank an output of its own; only its own input may share it.",
                    )
        ends = {owner: end for end, owner in furthest[what]}
        ends[rank] = max(stop, ends.get(rank, 0))
        furthest[what] = sorted([(end, owner) for owner, end in ends.items()], reverse=True)[:2]


def refuse_tangled(op: str, results: list[Array | None], local_ranks: range) -> None:
    """Refuse outputs that have elements in common where one of both has gaps: contiguous ones were
    compared before.
    """
    found = [(rank, a) for rank, a in zip(local_ranks, results, strict=True) if a is not None]
    if all(array.flags.c_contiguous for _, array in found):
        return
    begun: list[tuple[int, int, Array]] = []
    for rank, array in sorted(found, key=lambda pair: _bounds(pair[1])[0]):
        start, stop = _bounds(array)
        begun = [other for other in begun if other[0] > start]
        for _, owner, other in begun:
            if np.shares_memory(array, other):
                raise ParameterError(
                    f"Rank {rank}'s output shares memory with rank {owner}'s output in {op}.",
                    "Give every rank an output of its own.",
                )
        begun.append((stop, rank, array))


def refuse_in_place(operator: Operator, offsets: list[int | None], local_ranks: range) -> None:
    """Refuse inputs that overlap their outputs in an op that never works in place."""
    if operator.in_place:
        return
    for rank, offset in zip(local_ranks, offsets, strict=True):
        if offset is not None:
            raise ParameterError(
                f"{operator.name} cannot work in place: rank {rank}'s output shares memory with "
                "its input.",
                "Give it an output of its own.",
            )


def is_in_place(op: OpParam, offsets: list[int | None], local_ranks: range) -> bool:
    """Return True if all ranks' inputs lie in their outputs as HCCL allows: at the same address, or
    one of the two in the rank's own slot of the other.
    """
    slot = op.size * OPS[op.name].own_slot
    pairs = list(zip(local_ranks, offsets, strict=True))
    same = all(offset == 0 for _, offset in pairs)
    return same or all(offset == rank * slot for rank, offset in pairs)


def _bounds(array: Array) -> tuple[int, int]:
    start = address_of(array)
    if array.flags.c_contiguous:
        return start, start + array.nbytes
    steps = [(n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True)]
    before, behind = sum(s for s in steps if s < 0), sum(s for s in steps if s > 0)
    return start + before, start + behind + array.itemsize


def offset_of(flat_in: Array, flat_out: Array) -> int | None:
    """Return the byte of the output at which the input begins; None where they do not overlap."""
    (start, stop), (low, high) = _bounds(flat_in), _bounds(flat_out)
    if start >= high or low >= stop or not flat_in.nbytes:
        return None
    return start - low
