"""Users' arrays: taken as numpy users expect, or refused with a sentence.

Platforms get one flat contiguous array of native byte order per rank and side. Inputs that are not
contiguous, or that overlap their output in a way that HCCL's in-place rules do not cover, are
copied when the call begins; outputs that are not contiguous are written at its end.

Programs for calls in place differ from others. Where all ranks' arrays are in this process, their
addresses decide. Where some are in other processes, the op and the presence of an `out` decide,
which are the same in all processes, and arrays that lie otherwise are copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import OPS
from hccl_py.communicator.device_arrays import DeviceArray, is_array
from hccl_py.communicator.overlaps import (
    is_in_place,
    offset_of,
    refuse_in_place,
    refuse_shared,
    refuse_tangled,
)
from hccl_py.enums import DataType, InPlace
from hccl_py.errors import HcclResult, ParameterError
from hccl_py.operators.base import Operator
from hccl_py.topology.topology import Topology

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
Output: TypeAlias = Array | Any
"""An array, or None at a rank that has no output; the op's caller knows which."""
Templates: TypeAlias = Sequence[DeviceArray | None] | None
"""For each local rank an example array on its device, or None for the host."""
Copies: TypeAlias = list[tuple[Array, Array]]
"""Pairs of a target and a source."""


class MissingArrayError(ParameterError):
    """A rank has no array where its op needs one (HCCL_E_PTR)."""

    result = HcclResult.E_PTR


@dataclass(frozen=True)
class Data:
    """A call laid out: its parameters, and the arrays and shapes of each local rank.

    `inputs` are the users' arrays, None at ranks without one; `shapes` those of the outputs, None
    at ranks without one. At the ranks in `open` the op leaves open what the output holds.
    """

    op: OpParam
    inputs: Sequence[Array | None]
    shapes: Sequence[Shape | None]
    open: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Arrays:
    """Flat inputs and outputs for a platform, and the arrays that the user gets. `loads` are the
    copies, to and from, that the run begins with.
    """

    op: OpParam
    inputs: list[Array]
    outputs: list[Array]
    results: list[Array | None]
    loads: Copies = field(default_factory=list)

    def begin(self) -> None:
        """Copy the arrays that the platform cannot take as they are."""
        for flat, array in self.loads:
            flat.reshape(array.shape)[...] = array

    def finish(self) -> list[Output]:
        """Write outputs back to results that were not contiguous; return the results."""
        for flat, result in zip(self.outputs, self.results, strict=True):
            if result is not None and result.size and not np.may_share_memory(flat, result):
                result[...] = flat.reshape(result.shape)
        return self.results


# ---- from what users give to arrays ----


def one_per_rank(op: str, given: Any, what: str, local_ranks: range) -> Sequence[Any]:
    """Return a sequence with one array per local rank; a bare array stands for exactly one."""
    if is_array(given) and len(local_ranks) == 1:
        return [given]
    is_sequence = isinstance(given, (list, tuple)) or (is_array(given) and given.ndim)
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
    if isinstance(given, DeviceArray):
        return given  # type: ignore[return-value]
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
        given = [(at, array) for at, array in enumerate(out) if is_array(array)]
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
    templates: Templates = None,
) -> Arrays:
    """Bring a call's arrays into the form that platforms take, and find out if it works in place.
    New arrays are on the devices of `templates`.
    """
    op, dtype = data.op, data.op.dtype.numpy
    templates = templates or [None] * len(local_ranks)
    results = _results(data, out, local_ranks, templates)
    bytes_in, bytes_out = operator.user_bytes(op, topology.size)
    loads: Copies = []
    inputs = [
        _flat_input(array, bytes_in[rank] // op.unit, dtype, like, loads)
        for rank, array, like in zip(local_ranks, data.inputs, templates, strict=True)
    ]
    outputs = [
        _flat_output(array, bytes_out[rank] // op.unit, dtype, like)
        for rank, array, like in zip(local_ranks, results, templates, strict=True)
    ]
    offsets: list[int | None] = [None] * len(inputs)
    if out is not None:
        refuse_shared(op.name, inputs, outputs, local_ranks)
        refuse_tangled(op.name, results, local_ranks)
        offsets = [offset_of(i, o) for i, o in zip(inputs, outputs, strict=True)]
        refuse_in_place(operator, offsets, local_ranks)
        op = replace(op, in_place=is_in_place(op, offsets, local_ranks))
        if op.displs:
            loads += _gaps(outputs, results)
    if len(local_ranks) < topology.size:
        op = replace(op, in_place=_is_in_place_by_form(op, out))
        if op.in_place:
            _move_in(inputs, outputs, data.inputs, offsets, loads)
    if out is not None and not op.in_place:
        _move_out(inputs, offsets, loads)
    return Arrays(op, inputs, outputs, results, loads)


def flat_arrays(
    operator: Operator,
    op: OpParam,
    inputs: Sequence[Array],
    ranks: int,
    local_ranks: range,
    templates: Templates = None,
) -> Arrays:
    """Return arrays for flat inputs of the right sizes; in place, each input lies in its output, or
    the other way round: at the beginning, or in the rank's own slot where the op says so. They are
    on the devices of `templates`.
    """
    sizes = operator.user_bytes(op, ranks)[1] // op.unit
    given, taking = [], []
    for rank, array, like in zip(
        local_ranks, inputs, templates or [None] * len(local_ranks), strict=True
    ):
        size = int(sizes[rank])
        if op.in_place or like is not None:
            room = max(array.size, size) if op.in_place else array.size
            memory = np.empty(room, array.dtype, like=like)
            begins = _own_slot(op, rank)
            here, there = memory[begins[0] :], memory[begins[1] :]
            here[: array.size] = array
            given.append(here[: array.size])
            taking.append(there[:size] if op.in_place else np.empty(size, array.dtype, like=like))
        else:
            given.append(array)
            taking.append(np.empty(size, array.dtype))
    return Arrays(op, given, taking, list(taking))


def _own_slot(op: OpParam, rank: int) -> tuple[int, int]:
    """Return the first element of the input and of the output in the memory that they share."""
    slot = OPS[op.name].own_slot if op.in_place == InPlace.SLOT else 0
    begin = rank * op.size // op.unit
    return begin * (slot > 0), begin * (slot < 0)


def _flat_input(
    array: Array | None, size: int, dtype: np.dtype[Any], like: DeviceArray | None, loads: Copies
) -> Array:
    """Return an array as one row; new memory where there is no array, or none is needed."""
    if array is None or array.size != size:
        return np.empty(size, dtype, like=like)
    if array.flags.c_contiguous:
        return array.reshape(-1)
    flat = np.empty(size, array.dtype, like=like)
    loads.append((flat, array))
    return flat


def _flat_output(
    array: Array | None, size: int, dtype: np.dtype[Any], like: DeviceArray | None
) -> Array:
    """Return an array as one row; new memory also where the array has gaps."""
    if array is None or array.size != size or not array.flags.c_contiguous:
        return np.empty(size, dtype, like=like)
    return array.reshape(-1)


def _gaps(outputs: list[Array], results: list[Array | None]) -> Copies:
    """Return the copies that keep the gaps between parts in results that are not contiguous."""
    return [
        (flat, result)
        for flat, result in zip(outputs, results, strict=True)
        if result is not None and not result.flags.c_contiguous
    ]


def _is_in_place_by_form(op: OpParam, out: object) -> bool:
    """Return True if a call of several processes works in place: an op whose inputs and outputs are
    equally long does where there is an `out`, one with a root always, as its ranks may give
    different arrays.
    """
    facts = OPS[op.name]
    return facts.in_place and not facts.has_slots and (facts.rooted or out is not None)


def _move_in(
    inputs: list[Array],
    outputs: list[Array],
    given: Sequence[Array | None],
    offsets: Sequence[int | None],
    loads: Copies,
) -> None:
    """Have inputs copied into their outputs where they do not begin there."""
    columns = zip(inputs, outputs, given, offsets, strict=True)
    for at, (flat, memory, array, offset) in enumerate(columns):
        if offset != 0:
            inputs[at] = memory[: flat.size]
            if array is not None and array.size == flat.size:
                loads.append((inputs[at], flat))


def _move_out(inputs: list[Array], offsets: Sequence[int | None], loads: Copies) -> None:
    """Have inputs that overlap their outputs copied to memory of their own."""
    for at, (flat, offset) in enumerate(zip(inputs, offsets, strict=True)):
        if offset is not None:
            inputs[at] = np.empty_like(flat)
            loads.append((inputs[at], flat))


def _results(
    data: Data,
    out: Sequence[Array | None] | None,
    local_ranks: range,
    templates: Sequence[DeviceArray | None],
) -> list[Array | None]:
    """Return the arrays that the user gets: the given ones, checked, or new ones."""
    op, dtype = data.op, data.op.dtype.numpy
    if out is None:
        made: list[Array | None] = [
            None if shape is None or rank in data.open else np.empty(shape, dtype, like=like)
            for rank, shape, like in zip(local_ranks, data.shapes, templates, strict=True)
        ]
        for array in made if op.displs else ():  # what lies between displaced parts is 0
            if array is not None:
                array[...] = np.zeros(array.shape, dtype)
        return made
    given = one_per_rank(op.name, out, "outputs", local_ranks)
    for rank, array, shape in zip(local_ranks, given, data.shapes, strict=True):
        needed = shape is not None and rank not in data.open
        if array is not None or needed:
            _check_output(op, rank, array, shape)
    return list(given)


def _check_output(op: OpParam, rank: int, array: Any, shape: Shape | None) -> None:
    if shape is None:
        if is_array(array) and not array.size:
            return
        raise ParameterError(f"Rank {rank} has no output in {op.name}.", "Give None for it.")
    if array is None:
        raise MissingArrayError(
            f"Rank {rank} has None as output.", f"{op.name} needs an array of shape {shape} there."
        )
    if not is_array(array):
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
