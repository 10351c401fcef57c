"""What an operator knows: its parameters' legality, its memory per round, its right result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hccl_py.enums import Buffer, DataType, ReduceOp
from hccl_py.errors import NotSupportedError, ParameterError, did_you_mean
from hccl_py.op_param import OpParam
from hccl_py.orchestration.rank import Rank
from hccl_py.orchestration.region import Chunks, Region
from hccl_py.topology.topology import Topology

__all__ = ["MAX_COUNT", "Array", "Operator", "check_common", "check_reduction", "slots", "whole"]

Array = npt.NDArray[Any]

MAX_COUNT = 0x7FFFFFFFF
"""SYS_MAX_COUNT: elements that one call may move."""


class Operator(Protocol):
    """One collective. Counts are elements of `OpParam.count`, sizes bytes."""

    name: str
    reduces: bool

    def check(self, op: OpParam, topology: Topology) -> None:
        """Raise where HCCL would refuse the parameters; the error carries the HcclResult."""

    def count(self, size: int, ranks: int, unit: int) -> int:
        """Return the count of hccl_test's data size in bytes."""

    def output_shape(self, shape: tuple[int, ...], ranks: int) -> tuple[int, ...]:
        """Return the shape of one rank's output for an input of `shape`."""

    def user_bytes(self, op: OpParam, ranks: int) -> tuple[int, int]:
        """Return the bytes of one rank's input and output."""

    def bind(self, op: OpParam, rank: Rank[Any, Any], start: int, count: int) -> None:
        """Set `rank.user_in` and `rank.user_out` for one round."""

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array]:
        """Return every rank's right output, flat; float sums and products in float64."""

    def bus_factor(self, ranks: int) -> float:
        """Return bus bandwidth divided by algorithm bandwidth."""


def whole(buffer: Buffer, op: OpParam, start: int, count: int) -> Region:
    """Return elements start .. start + count of a buffer that holds one slot."""
    return Region(buffer, start * op.unit, count * op.unit)


def slots(buffer: Buffer, op: OpParam, ranks: int, start: int, count: int) -> Chunks:
    """Return elements start .. start + count of each of `ranks` slots of `op.count` elements."""
    offsets = np.arange(ranks, dtype=np.int64) * op.size + start * op.unit
    return Chunks(buffer, offsets[None], np.full((1, ranks), count * op.unit, np.int64))


def check_common(op: OpParam, topology: Topology, types: frozenset[DataType]) -> None:
    """Check what every op demands: count in range, data type known to the product, root a rank."""
    if op.count < 0 or op.count > MAX_COUNT:
        raise ParameterError(
            f"{op.name} has a count of {op.count}.", f"Counts go from 0 to {MAX_COUNT}."
        )
    if op.dtype not in types:
        raise NotSupportedError(
            f"{op.name} on {topology.product.title} does not take {op.dtype.value}.",
            f"It takes {_spell(types)}.",
        )
    if op.root is not None and not 0 <= op.root < topology.size:
        raise ParameterError(
            f"Root {op.root} of {op.name} is not a rank.",
            f"The communicator has ranks 0 to {topology.size - 1}.",
        )


def check_reduction(op: OpParam, topology: Topology) -> None:
    """Check the reduce op, and that the product can do it with this data type."""
    if op.reduce is None:
        raise ParameterError(
            f"{op.name} needs a reduce op.", did_you_mean("", [o.spelling for o in ReduceOp])
        )
    product = topology.product
    check_common(op, topology, product.reduce_types)
    if op.reduce is ReduceOp.PROD and op.dtype in product.prod_excluded:
        raise NotSupportedError(
            f"{op.name} on {product.title} does not take prod with {op.dtype.value}.",
            f"prod takes {_spell(product.reduce_types - product.prod_excluded)}.",
        )


def _spell(types: frozenset[DataType]) -> str:
    return ", ".join(t.value for t in DataType if t in types)
