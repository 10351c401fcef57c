"""AllToAll: rank r gets part r of every rank's input, in rank order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hccl_py.enums import Buffer
from hccl_py.op_param import OpParam
from hccl_py.operators.base import Array, Operator, same, slots
from hccl_py.operators.parts import refuse_others
from hccl_py.orchestration.rank import Rank
from hccl_py.orchestration.region import Chunks
from hccl_py.topology.topology import Topology
from hccl_py.values import IntArray

__all__ = ["AllToAll"]


class AllToAll(Operator):
    """`count` times ranks elements in, as many out."""

    name = "all_to_all"
    in_place = False

    def check(self, op: OpParam, topology: Topology) -> None:
        """Refuse amounts that differ."""
        super().check(op, topology)
        refuse_others(op, "counts", "displs", "matrix")

    def count(self, size: int, ranks: int, unit: int) -> int:
        """Return the elements for each rank of a send buffer of `size` bytes, rounded up."""
        return -(-size // (ranks * unit))

    def user_bytes(self, op: OpParam, ranks: int) -> tuple[IntArray, IntArray]:
        """Return bytes of input and output."""
        return same(op.size * ranks, ranks), same(op.size * ranks, ranks)

    def bind(self, op: OpParam, rank: Rank[Chunks, Chunks], start: int, count: int) -> None:
        """Cut the input to one chunk per receiver and the output to one per sender."""
        rank.user_in = slots(Buffer.USER_IN, op, rank.size, start, count)
        rank.user_out = slots(Buffer.USER_OUT, op, rank.size, start, count)

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return part r of all inputs for rank r."""
        parts = np.stack(inputs).reshape(len(inputs), len(inputs), -1)
        return [parts[:, rank].reshape(-1) for rank in range(len(inputs))]

    def bus_factor(self, ranks: int) -> float:
        """Return (p - 1) / p."""
        return (ranks - 1) / ranks
