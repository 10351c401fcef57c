"""The parameters of one call of a collective, the same for all ranks."""

from __future__ import annotations

from dataclasses import dataclass

from hccl_py.enums import DataType, Mode, ReduceOp

__all__ = ["OpParam"]


@dataclass(frozen=True)
class OpParam:
    """HCCL's OpParam: what the ranks agree on.

    `count` counts elements as the op's API does: all_gather what each rank sends, all_reduce the
    whole buffer.
    """

    name: str
    count: int
    dtype: DataType
    reduce: ReduceOp | None = None
    root: int | None = None
    mode: Mode = Mode.OP_BASE
    in_place: bool = False

    @property
    def unit(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def size(self) -> int:
        """Bytes of `count` elements: the bytes per rank that selection looks at."""
        return self.count * self.unit
