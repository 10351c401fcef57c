"""Users' arrays: taken as numpy users expect, or refused with a sentence.

Platforms get flat contiguous arrays of native byte order. Inputs that are not contiguous, or that
overlap their output in a way that HCCL's in-place rules do not cover, are copied first; outputs
that are not contiguous are written at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_py.enums import DataType
from hccl_py.errors import ParameterError
from hccl_py.operators.base import Operator

__all__ = ["Arrays", "prepare"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Arrays:
    """Flat inputs and outputs for a platform, and the arrays that the user gets."""

    count: int
    dtype: DataType
    in_place: bool
    inputs: list[Array]
    outputs: list[Array]
    results: list[Array]

    def finish(self) -> list[Array]:
        """Write outputs back to results that were not contiguous; return the results."""
        for flat, result in zip(self.outputs, self.results, strict=True):
            if not np.may_share_memory(flat, result) and result.size:
                result[...] = flat.reshape(result.shape)
        return self.results


def prepare(
    operator: Operator,
    inputs: Sequence[npt.ArrayLike],
    out: Sequence[Array] | None,
    local_ranks: range,
    ranks: int,
) -> Arrays:
    """Check the arrays of a call, one per local rank, and bring them into the form that platforms
    take.
    """
    arrays = _inputs(operator.name, inputs, local_ranks)
    first = arrays[0]
    shape = operator.output_shape(first.shape, ranks)
    results = _outputs(operator.name, out, local_ranks, first, shape)
    flat_in = [np.ascontiguousarray(a).reshape(-1) for a in arrays]
    flat_out = [
        r.reshape(-1) if r.flags.c_contiguous else np.empty(r.size, r.dtype) for r in results
    ]
    in_place = False
    if out is not None:
        _refuse_shared(operator.name, flat_in, flat_out, local_ranks)
        overlaps = [_offset(i, o) for i, o in zip(flat_in, flat_out, strict=True)]
        in_place = all(
            o is not None and o % max(i.nbytes, 1) == 0
            for i, o in zip(flat_in, overlaps, strict=True)
        )
        if not in_place:
            flat_in = [i if o is None else i.copy() for i, o in zip(flat_in, overlaps, strict=True)]
    return Arrays(first.size, DataType.of(first.dtype), in_place, flat_in, flat_out, results)


def _inputs(op: str, inputs: Sequence[npt.ArrayLike], local_ranks: range) -> list[Array]:
    inputs = _one_per_rank(op, inputs, "inputs", local_ranks)
    arrays = []
    for rank, given in zip(local_ranks, inputs, strict=True):
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
        DataType.of(array.dtype)
        arrays.append(array)
    first = arrays[0]
    for rank, array in zip(local_ranks, arrays, strict=True):
        if array.dtype != first.dtype:
            raise ParameterError(
                f"Rank {rank}'s input is {array.dtype.name}, "
                f"rank {local_ranks[0]}'s is {first.dtype.name}.",
                "All ranks communicate one data type.",
            )
        if array.shape != first.shape:
            raise ParameterError(
                f"Rank {rank}'s input has shape {array.shape}, "
                f"rank {local_ranks[0]}'s has {first.shape}.",
                f"All ranks of {op} communicate the same shape.",
            )
    return arrays


def _one_per_rank(op: str, given: Any, what: str, local_ranks: range) -> Sequence[Any]:
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


def _outputs(
    op: str, out: Sequence[Array] | None, local_ranks: range, first: Array, shape: tuple[int, ...]
) -> list[Array]:
    if out is None:
        return [np.empty(shape, first.dtype) for _ in local_ranks]
    out = _one_per_rank(op, out, "outputs", local_ranks)
    for rank, array in zip(local_ranks, out, strict=True):
        if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
            raise ParameterError(
                f"Rank {rank}'s output is a {type(array).__name__}.", "Outputs are numpy arrays."
            )
        if array.dtype != first.dtype or array.shape != shape:
            raise ParameterError(
                f"Rank {rank}'s output is {array.dtype.name} of shape {array.shape}.",
                f"{op} needs {first.dtype.name} of shape {shape}.",
            )
        if not array.flags.writeable:
            raise ParameterError(
                f"Rank {rank}'s output is read-only.", "Give an array that can be written."
            )
    return list(out)


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


def _bounds(array: Array) -> tuple[int, int]:
    start = array.__array_interface__["data"][0]
    return start, start + array.nbytes


def _offset(flat_in: Array, flat_out: Array) -> int | None:
    """Return where the input lies inside the output, in bytes; None where they do not overlap."""
    (start, stop), (low, high) = _bounds(flat_in), _bounds(flat_out)
    if start >= high or low >= stop or not flat_in.nbytes:
        return None
    return start - low
