"""Users' arrays: taken as numpy users expect, or refused with a sentence.

Platforms get one flat contiguous array of native byte order per rank and side. Inputs that are not
contiguous, or that overlap their output in a way that HCCL's in-place rules do not cover, are
copied first; outputs that are not contiguous are written at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from hccl_py.enums import DataType
from hccl_py.errors import HcclResult, ParameterError
from hccl_py.op_param import OpParam
from hccl_py.operators.base import Operator
from hccl_py.ops import OPS
from hccl_py.topology.topology import Topology

__all__ = [
    "Array",
    "Arrays",
    "Data",
    "MissingArrayError",
    "Output",
    "Shape",
    "common_type",
    "flat_arrays",
    "one_per_rank",
    "place",
    "taken",
]

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
Output: TypeAlias = Array | Any
"""An array, or None at a rank that has no output; which one, the caller of the op knows."""


class MissingArrayError(ParameterError):
    """A rank has no array where its op needs one (HCCL_E_PTR)."""

    result = HcclResult.E_PTR


@dataclass(frozen=True)
class Data:
    """What the arrays of a call say: its parameters, and what each local rank has.

    `inputs` are the users' arrays, None at ranks without one; `shapes` those of the outputs, None
    at ranks without one. At the ranks in `open` the op leaves open what the output holds.
    """

    op: OpParam
    inputs: Sequence[Array | None]
    shapes: Sequence[Shape | None]
    open: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Arrays:
    """Flat inputs and outputs for a platform, and the arrays that the user gets."""

    op: OpParam
    inputs: list[Array]
    outputs: list[Array]
    results: list[Array | None]

    def finish(self) -> list[Output]:
        """Write outputs back to results that were not contiguous; return the results."""
        for flat, result in zip(self.outputs, self.results, strict=True):
            if result is not None and result.size and not np.may_share_memory(flat, result):
                result[...] = flat.reshape(result.shape)
        return self.results


# ---- from what users give to arrays ----


def one_per_rank(op: str, given: Any, what: str, local_ranks: range) -> Sequence[Any]:
    """Return a sequence with one array per local rank; a bare array stands for exactly one."""
    if isinstance(given, np.ndarray) and len(local_ranks) == 1:
        return [given]
    is_sequence = isinstance(given, (list, tuple)) or (isinstance(given, np.ndarray) and given.ndim)
    if not is_sequence:
        raise ParameterError(
            f"{op} got a {type(given).__name__} as {what}.", "Give a list with one array per rank."
        )
    if len(given) != len(local_ranks):
        raise ParameterError(
            f"{op} got {len(given)} {what} for {len(local_ranks)} ranks.",
            "Give one array per rank, in rank order.",
        )
    sequence: Sequence[Any] = given
    return sequence


def taken(given: Any, rank: int) -> Array:
    """Return a rank's input as an array; ParameterError where it is none."""
    if isinstance(given, np.ma.MaskedArray):
        raise ParameterError(
            f"Rank {rank}'s input is a masked array.", "Fill it first: array.filled(value)."
        )
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise ParameterError(
            f"Rank {rank}'s input is no array: {error}.", "All its rows need the same length."
        ) from None
    return array


def common_type(
    op: str, arrays: Iterable[tuple[int, Array | None]], out: object = None
) -> DataType:
    """Return the data type of all ranks' inputs, or of the outputs where no rank here has one.

    Empty arrays have a say only among themselves: `[]` is float64 for numpy.
    """
    given = [(rank, array) for rank, array in arrays if array is not None]
    given = [pair for pair in given if pair[1].size] or given
    if not given and isinstance(out, (list, tuple)):
        given = [(at, array) for at, array in enumerate(out) if isinstance(array, np.ndarray)]
    if not given:
        raise MissingArrayError(
            f"{op} got no array at all, so its data type is unknown.",
            "Give the input of a rank that has one, or `out`.",
        )
    owner, first = given[0]
    for rank, array in given:
        DataType.of(array.dtype)
        if array.dtype != first.dtype:
            raise ParameterError(
                f"Rank {rank}'s input is {array.dtype.name}, rank {owner}'s is {first.dtype.name}.",
                "All ranks communicate one data type.",
            )
    return DataType.of(first.dtype)


# ---- from arrays to a platform's ----


def place(
    operator: Operator,
    data: Data,
    out: Sequence[Array | None] | None,
    topology: Topology,
    local_ranks: range,
) -> Arrays:
    """Bring a call's arrays into the form that platforms take, and find out whether it works in
    place.
    """
    op, dtype = data.op, data.op.dtype.numpy
    results = _results(data, out, local_ranks)
    bytes_in, bytes_out = operator.user_bytes(op, topology.size)
    inputs = [
        _flat(array, bytes_in[rank] // op.unit, dtype)
        for rank, array in zip(local_ranks, data.inputs, strict=True)
    ]
    outputs = [
        _flat(
            array if array is not None and array.flags.c_contiguous else None,
            bytes_out[rank] // op.unit,
            dtype,
        )
        for rank, array in zip(local_ranks, results, strict=True)
    ]
    if out is not None:
        _refuse_shared(op.name, inputs, outputs, local_ranks)
        _refuse_tangled(op.name, results, local_ranks)
        offsets = [_offset(i, o) for i, o in zip(inputs, outputs, strict=True)]
        _refuse_in_place(operator, offsets, local_ranks)
        op = replace(op, in_place=_is_in_place(op, offsets, local_ranks))
        if not op.in_place:
            pairs = zip(inputs, offsets, strict=True)
            inputs = [array if offset is None else array.copy() for array, offset in pairs]
        if op.displs:
            _fill_gaps(outputs, results)
    return Arrays(op, inputs, outputs, results)


def flat_arrays(
    operator: Operator, op: OpParam, inputs: Sequence[Array], ranks: int, local_ranks: range
) -> Arrays:
    """Return arrays for flat inputs of the right sizes; in place, each input lies at the beginning
    of its output, or the other way round.
    """
    sizes = operator.user_bytes(op, ranks)[1] // op.unit
    given, taking = [], []
    for rank, array in zip(local_ranks, inputs, strict=True):
        size = int(sizes[rank])
        if op.in_place:
            memory = np.empty(max(array.size, size), array.dtype)
            memory[: array.size] = array
            given.append(memory[: array.size])
            taking.append(memory[:size])
        else:
            given.append(array)
            taking.append(np.empty(size, array.dtype))
    return Arrays(op, given, taking, list(taking))


def _flat(array: Array | None, size: int, dtype: np.dtype[Any]) -> Array:
    """Return an array as one row; memory of its own where there is none, or none is needed."""
    if array is None or array.size != size:
        return np.empty(size, dtype)
    return np.ascontiguousarray(array).reshape(-1)


def _fill_gaps(outputs: list[Array], results: list[Array | None]) -> None:
    """Copy what results hold that are written at the end: gaps between parts stay as they are."""
    for flat, result in zip(outputs, results, strict=True):
        if result is not None and not result.flags.c_contiguous:
            flat[:] = result.reshape(-1)


def _results(
    data: Data, out: Sequence[Array | None] | None, local_ranks: range
) -> list[Array | None]:
    """Return the arrays that the user gets: the given ones, checked, or new ones."""
    op, dtype = data.op, data.op.dtype.numpy
    if out is None:
        make = np.zeros if op.displs else np.empty  # what lies between displaced parts is 0
        return [
            None if shape is None or rank in data.open else make(shape, dtype)
            for rank, shape in zip(local_ranks, data.shapes, strict=True)
        ]
    given = one_per_rank(op.name, out, "outputs", local_ranks)
    for rank, array, shape in zip(local_ranks, given, data.shapes, strict=True):
        needed = shape is not None and rank not in data.open
        if array is not None or needed:
            _check_output(op, rank, array, shape)
    return list(given)


def _check_output(op: OpParam, rank: int, array: Any, shape: Shape | None) -> None:
    if shape is None:
        if isinstance(array, np.ndarray) and not array.size:
            return
        raise ParameterError(f"Rank {rank} has no output in {op.name}.", "Give None for it.")
    if array is None:
        raise MissingArrayError(
            f"Rank {rank} has None as output.", f"{op.name} needs an array of shape {shape} there."
        )
    if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
        raise ParameterError(
            f"Rank {rank}'s output is a {type(array).__name__}.", "Outputs are numpy arrays."
        )
    if array.dtype != op.dtype.numpy or array.shape != shape:
        raise ParameterError(
            f"Rank {rank}'s output is {array.dtype.name} of shape {array.shape}.",
            f"{op.name} needs {op.dtype.numpy_name} of shape {shape}.",
        )
    if not array.flags.writeable:
        raise ParameterError(
            f"Rank {rank}'s output is read-only.", "Give an array that can be written."
        )


# ---- memory that inputs and outputs share ----


def _refuse_shared(op: str, inputs: list[Array], outputs: list[Array], local_ranks: range) -> None:
    """Refuse outputs that overlap another rank's input or output: their order would be anybody's
    guess.
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


def _refuse_tangled(op: str, results: list[Array | None], local_ranks: range) -> None:
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


def _refuse_in_place(operator: Operator, offsets: list[int | None], local_ranks: range) -> None:
    if operator.in_place:
        return
    for rank, offset in zip(local_ranks, offsets, strict=True):
        if offset is not None:
            raise ParameterError(
                f"{operator.name} cannot work in place: rank {rank}'s output shares memory with "
                "its input.",
                "Give it an output of its own.",
            )


def _is_in_place(op: OpParam, offsets: list[int | None], local_ranks: range) -> bool:
    """Whether all ranks' inputs lie in their outputs as HCCL allows it: at the same address, or one
    of both in the rank's own slot of the other.
    """
    slot = op.size * OPS[op.name].own_slot
    pairs = list(zip(local_ranks, offsets, strict=True))
    same = all(offset == 0 for _, offset in pairs)
    return same or all(offset == rank * slot for rank, offset in pairs)


def _bounds(array: Array) -> tuple[int, int]:
    start = array.__array_interface__["data"][0]
    if array.flags.c_contiguous:
        return start, start + array.nbytes
    steps = [(n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True)]
    before, behind = sum(s for s in steps if s < 0), sum(s for s in steps if s > 0)
    return start + before, start + behind + array.itemsize


def _offset(flat_in: Array, flat_out: Array) -> int | None:
    """Return where the input begins in the output, in bytes; None where they do not overlap."""
    (start, stop), (low, high) = _bounds(flat_in), _bounds(flat_out)
    if start >= high or low >= stop or not flat_in.nbytes:
        return None
    return start - low
