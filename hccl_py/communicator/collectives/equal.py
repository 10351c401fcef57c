"""Layout of ops in which all ranks have the same amount."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import BARRIER_COUNT, OPS
from hccl_py.communicator.arrays import (
    Array,
    Data,
    MissingArrayError,
    Shape,
    common_type,
    one_per_rank,
)
from hccl_py.communicator.collectives.ranks import (
    Inputs,
    Ranks,
    all_given,
    common_shape,
    given,
    index_of,
)
from hccl_py.communicator.device_arrays import is_array
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import ParameterError
from hccl_py.operators import make_operator


def same(
    name: str,
    inputs: Inputs,
    ranks: Ranks,
    *,
    reduce: ReduceOp | None = None,
    root: int | None = None,
) -> Data:
    """Lay out an op whose ranks all have an input of one shape."""
    arrays = all_given(name, inputs, ranks)
    dtype = common_type(name, zip(ranks.local, arrays, strict=True))
    shape = common_shape(name, zip(ranks.local, arrays, strict=True))
    root = None if root is None else index_of(root, f"The root of {name}")
    op = OpParam(name, _count(name, shape, ranks), dtype, reduce, root)
    result = make_operator(name).output_shape(shape, ranks.size)
    others = frozenset(ranks.local) - {root} if root is not None else frozenset()
    if name == "gather":
        return Data(op, arrays, [None if rank in others else result for rank in ranks.local])
    return Data(op, arrays, [result] * len(arrays), open=others)


def from_root(name: str, inputs: Inputs, ranks: Ranks, root: int, out: object) -> Data:
    """Lay out broadcast or scatter: the root's input counts, others have None or any array.

    In broadcast theirs have the same shape, as in HCCL, where they are the outputs too.
    """
    root = index_of(root, f"The root of {name}")
    arrays = given(name, inputs, ranks)
    known = [(rank, array) for rank, array in zip(ranks.local, arrays, strict=True)]
    if not 0 <= root < ranks.size:
        return _without_root(name, arrays, ranks, root)
    if root in ranks.local and arrays[ranks.local.index(root)] is None:
        raise MissingArrayError(f"Rank {root} has no input.", f"It is the root of {name}.")
    if name == "scatter":
        known = [(rank, array) for rank, array in known if rank == root]
    dtype = common_type(name, known, out)
    full = [(r, a) for r, a in known if a is not None and (r == root or a.size)]
    if not full:
        shape = _shape_without_input(name, [a for _, a in known if a is not None], ranks, out)
        op = OpParam(name, prod(shape), dtype, root=root)
    else:
        given_shape = common_shape(name, full)
        op = OpParam(name, _count(name, given_shape, ranks), dtype, root=root)
        shape = make_operator(name).output_shape(given_shape, ranks.size)
    return Data(op, arrays, [shape] * len(arrays))


def _without_root(name: str, arrays: Sequence[Array | None], ranks: Ranks, root: int) -> Data:
    """Refuse a root that is no rank, unless there is nothing to send: HCCL looks at that first."""
    known = [array for array in arrays if array is not None]
    elsewhere = len(ranks.local) < ranks.size and not known
    has_data = elsewhere or any(array.size for array in known)
    op = OpParam(name, int(has_data), DataType.INT8, root=root)
    if has_data:
        make_operator(name).check(op, ranks.topology)
    return Data(op, arrays, [None] * len(arrays))


def barrier(ranks: Ranks) -> Data:
    """Lay out HCCL's barrier, which adds up 8 elements in memory of its own."""
    op = OpParam("barrier", BARRIER_COUNT, DataType.FP32, ReduceOp.SUM)
    templates = ranks.templates or [None] * len(ranks.local)
    zeros = [np.zeros(BARRIER_COUNT, np.float32, like=like) for like in templates]
    return Data(op, zeros, [(BARRIER_COUNT,)] * len(zeros))


def _count(name: str, shape: Shape, ranks: Ranks) -> int:
    """Return the op's count for an input of a shape, which may have to hold one part per rank."""
    if not OPS[name].slots_in:
        return prod(shape)
    if not shape or shape[0] % ranks.size:
        raise ParameterError(
            f"An input of shape {shape} does not split into {ranks.size} parts in {name}.",
            "Its first axis is a multiple of the number of ranks.",
        )
    return prod(shape) // ranks.size


def _shape_without_input(name: str, empty: list[Array], ranks: Ranks, out: object) -> Shape:
    """Return the shape of the outputs where no rank here has an input with data."""
    outputs = [] if out is None else one_per_rank(name, out, "outputs", ranks.local)
    arrays = [array for array in outputs if is_array(array)] or empty
    if not arrays:
        raise MissingArrayError(
            f"Rank {ranks.local[0]} has neither input nor output in {name}, so the shape of what "
            "it gets is unknown.",
            "Give an array for the output in `out`.",
        )
    return arrays[0].shape
