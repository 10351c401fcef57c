"""Checks of the arrays of all ranks against each other."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from hccl_py.call.op_param import Numbers, OpParam, Table
from hccl_py.communicator.arrays import Array, MissingArrayError, Shape, one_per_rank, taken
from hccl_py.communicator.device_arrays import DeviceArray, is_array
from hccl_py.errors import ParameterError
from hccl_py.operators.base import MAX_COUNT
from hccl_py.topology.topology import Topology

Inputs: TypeAlias = Sequence[npt.ArrayLike | None] | Array
T = TypeVar("T")


def _alone(data: bytes) -> list[bytes]:
    return [data]


class Ranks(NamedTuple):
    """All ranks of a communicator, and those whose arrays are here. `gather` gives what every
    process gives it, in the order of their ranks. `templates` has an example array on the device of
    each local rank, None for the host.
    """

    topology: Topology
    local: range
    gather: Callable[[bytes], list[bytes]] = _alone
    templates: Sequence[DeviceArray | None] | None = None

    @property
    def size(self) -> int:
        """Number of all ranks."""
        return self.topology.size


def given(op: str, inputs: Inputs, ranks: Ranks) -> list[Array | None]:
    """Return the inputs as arrays; ranks may have none."""
    listed = one_per_rank(op, inputs, "inputs", ranks.local)
    return [
        None if array is None else taken(array, rank)
        for rank, array in zip(ranks.local, listed, strict=True)
    ]


def row_arrays(op: str, inputs: Inputs, ranks: Ranks) -> list[Array | None]:
    """Return the inputs as arrays of rows, a number as one row; ranks may have none."""
    arrays = given(op, inputs, ranks)
    return [None if array is None else np.atleast_1d(array) for array in arrays]


def counts_in(arrays: object, ranks: Ranks) -> list[tuple[int, Array]]:
    """Return the arrays with at least one axis, with their ranks; None and scalars are left out."""
    if not isinstance(arrays, (list, tuple, np.ndarray, DeviceArray)):
        return []
    pairs = zip(ranks.local, arrays, strict=False)
    return [(rank, a) for rank, a in pairs if is_array(a) and a.ndim]


def all_given(op: str, inputs: Inputs, ranks: Ranks) -> list[Array]:
    """Return the inputs as arrays; MissingArrayError where a rank has none."""
    listed = one_per_rank(op, inputs, "inputs", ranks.local)
    for rank, array in zip(ranks.local, listed, strict=True):
        if array is None:
            raise MissingArrayError(
                f"Rank {rank} has no input.", f"Every rank of {op} has one, if only an empty one."
            )
    return [taken(array, rank) for rank, array in zip(ranks.local, listed, strict=True)]


def common_shape(op: str, arrays: Iterable[tuple[int, Array]]) -> Shape:
    """Return the shape that all ranks' inputs have."""
    pairs = list(arrays)
    owner, first = pairs[0]
    for rank, array in pairs:
        if array.shape != first.shape:
            raise ParameterError(
                f"Rank {rank}'s input has shape {array.shape}, rank {owner}'s has {first.shape}.",
                f"All ranks of {op} communicate the same shape.",
            )
    shape: Shape = first.shape
    return shape


def row_shape(op: str, arrays: Sequence[tuple[int, Array]]) -> Shape:
    """Return the shape behind the first axis, which all arrays with rows have in common; `[]` has
    no say.
    """
    full = [(rank, array) for rank, array in arrays if len(array)]
    full = full or [(rank, array) for rank, array in arrays if array.ndim > 1]
    if not full:
        return ()
    owner, first = full[0]
    for rank, array in full:
        if array.shape[1:] != first.shape[1:]:
            raise ParameterError(
                f"Rank {rank}'s input has rows of shape {array.shape[1:]}, rank {owner}'s of "
                f"{first.shape[1:]}.",
                f"Inputs of {op} differ along the first axis only.",
            )
    row: Shape = first.shape[1:]
    return row


def check_rows(
    op: str, arrays: Sequence[Array | None], needed: Sequence[int], ranks: Ranks
) -> None:
    """Refuse inputs that have other rows than their ranks' amounts say."""
    for rank, array in zip(ranks.local, arrays, strict=True):
        rows = 0 if array is None else len(array)
        if rows != needed[rank]:
            raise ParameterError(
                f"Rank {rank}'s input of {op} has {rows} rows, its counts need {needed[rank]}.",
                "Counts and displacements are rows: indices of the first axis.",
            )


def from_everyone(amounts: list[T], ranks: Ranks) -> list[T]:
    """Return the amounts of all ranks from those of the local ones: numbers, or lists of them."""
    if len(ranks.local) == ranks.size:
        return amounts
    parts = ranks.gather(json.dumps(amounts).encode())
    return [amount for part in parts for amount in json.loads(part)]


def index_of(number: object, what: str) -> int:
    """Return a whole number of any kind; True is none."""
    try:
        if not isinstance(number, bool):
            return operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        pass
    raise ParameterError(f"{what} is {number!r}.", "Give a whole number.")


def numbers(op: str, what: str, values: object) -> Numbers:
    """Return a sequence's whole numbers, one for each rank."""
    found = _whole(op, what, values)
    if found.ndim != 1:
        raise ParameterError(
            f"{op} has {what} {_format(values)}.", "Give one number for each rank."
        )
    return tuple(found.tolist())


def table(op: str, what: str, values: object) -> Table:
    """Return the rows of whole numbers of a nested sequence, one for each rank."""
    found = np.atleast_2d(_whole(op, what, values))
    if found.ndim != 2:
        raise ParameterError(f"{op} has {what} {_format(values)}.", "Give one row for each rank.")
    return tuple(tuple(row) for row in found.tolist())


def in_elements(op: OpParam, row: int) -> OpParam:
    """Return a call whose amounts are rows with amounts in elements, and the largest as count."""
    found = replace(
        op,
        counts=_times(op.counts, row),
        displs=_times(op.displs, row),
        matrix=_times(op.matrix, row),
        pairs=tuple((a, b, *(rows * row for rows in rest)) for a, b, *rest in op.pairs),
    )
    return replace(found, count=found.extent)


def _times(amounts: Any, row: int) -> Any:
    if row == 1:
        return amounts
    return tuple(_times(n, row) if isinstance(n, tuple) else n * row for n in amounts)


def _whole(op: str, what: str, values: object) -> npt.NDArray[Any]:
    try:
        found = np.asarray(values)
    except ValueError:  # lists of different lengths
        found = np.asarray(None)
    if found.dtype.kind not in "iu" and (found.size or found.dtype.kind == "O"):
        raise ParameterError(
            f"{op} has {what} {_format(values)}.",
            f"Give whole numbers to {MAX_COUNT}, the same number in every row.",
        )
    if found.size and int(found.max()) > MAX_COUNT:
        raise ParameterError(
            f"{op} has {what} with {int(found.max())}.", f"Rows are counted from 0 to {MAX_COUNT}."
        )
    return found.astype(np.int64)


def _format(values: object) -> str:
    """Return a value for a sentence: on one line, cut where it is long."""
    return " ".join(repr(values).split())[:60]
