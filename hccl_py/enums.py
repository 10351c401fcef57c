"""The small enumerations that everything else speaks: data types, reduce ops, modes, link and task
kinds.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from hccl_py.errors import NotSupportedError, did_you_mean

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = [
    "POST",
    "RDMA_WRITES",
    "READS",
    "WAIT",
    "WRITES",
    "Buffer",
    "DataType",
    "InPlace",
    "LinkKind",
    "Mode",
    "ReduceOp",
    "TaskKind",
    "moves_data",
]


class DataType(Enum):
    """HCCL's data types that numpy (with ml_dtypes) can hold; the value is HCCL's spelling."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    FP16 = "fp16"
    FP32 = "fp32"
    INT64 = "int64"
    UINT64 = "uint64"
    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    FP64 = "fp64"
    BF16 = "bf16"

    @classmethod
    def parse(cls, name: str) -> DataType:
        """Return the type of HCCL's or numpy's name for it, such as `fp32` or `float32`."""
        for member in cls:
            if name in (member.value, member.numpy_name):
                return member
        raise NotSupportedError(
            f"Data type {name!r} is unknown.", did_you_mean(name, [m.value for m in cls])
        )

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, dtype: np.dtype[Any]) -> DataType:
        """Return the type of a numpy dtype; NotSupportedError where HCCL has none."""
        if not dtype.isnative:
            raise NotSupportedError(
                f"Arrays of byte-swapped {dtype.name} cannot be communicated.",
                "Convert them first: array.astype(array.dtype.newbyteorder('=')).",
            )
        for member in cls:
            if dtype.name == member.numpy_name:
                return member
        raise NotSupportedError(
            f"HCCL has no data type for numpy's {dtype.name}.",
            f"It has {', '.join(m.value for m in cls)}; "
            "a view such as array.view('uint8') moves bytes as they are.",
        )

    @cached_property
    def numpy_name(self) -> str:
        """The name that numpy gives the type."""
        floats = {"fp16": "float16", "fp32": "float32", "fp64": "float64", "bf16": "bfloat16"}
        spelling: str = self.value
        return floats.get(spelling, spelling)

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """The numpy dtype; bf16 comes from ml_dtypes."""
        import numpy as np

        if self is DataType.BF16:
            import ml_dtypes

            bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
            return bfloat16
        plain: np.dtype[Any] = np.dtype(self.numpy_name)
        return plain

    @cached_property
    def itemsize(self) -> int:
        """Bytes of one element (HCCL's unit size)."""
        return int("".join(filter(str.isdigit, self.value))) // 8

    @cached_property
    def is_float(self) -> bool:
        """Whether sums and products round."""
        return self.value in ("fp16", "fp32", "fp64", "bf16")

    @cached_property
    def number(self) -> int:
        """HcclDataType's value."""
        return _DATA_TYPE_NUMBERS[self.value]

    @classmethod
    def from_number(cls, number: int) -> DataType:
        """Return the type with this HcclDataType value."""
        return cls(next(name for name, value in _DATA_TYPE_NUMBERS.items() if value == number))


_DATA_TYPE_NUMBERS = {
    "int8": 0,
    "int16": 1,
    "int32": 2,
    "fp16": 3,
    "fp32": 4,
    "int64": 5,
    "uint64": 6,
    "uint8": 7,
    "uint16": 8,
    "uint32": 9,
    "fp64": 10,
    "bf16": 11,
}


class ReduceOp(IntEnum):
    """HcclReduceOp."""

    SUM = 0
    PROD = 1
    MAX = 2
    MIN = 3

    @classmethod
    def parse(cls, name: str) -> ReduceOp:
        """Return the op of a name such as `sum`, in any case."""
        try:
            return cls[str(name).upper()]
        except KeyError:
            raise NotSupportedError(
                f"Reduce op {name!r} is unknown.",
                did_you_mean(str(name), [op.spelling for op in cls]),
            ) from None

    @property
    def spelling(self) -> str:
        """How the op is written in every input and output."""
        return self.name.lower()


class Buffer(IntEnum):
    """The memories of a rank that an executor may use; `spelling` is the name in program files."""

    USER_IN = 0
    USER_OUT = 1
    CCL_IN = 2
    CCL_OUT = 3
    SCRATCH = 4

    @property
    def spelling(self) -> str:
        """The name in program files: user memory carries the op's meaning as IN and OUT."""
        return self.name.removeprefix("USER_")


class Mode(Enum):
    """Workflow mode: eager calls through CCL buffers, or graphs that link user memory."""

    OP_BASE = "op_base"
    GRAPH = "graph"


class InPlace(Enum):
    """How IN and OUT of a call share memory: they begin at the same address, or the smaller one is
    the rank's own slot of the larger one (all_gather, reduce_scatter).
    """

    START = "start"
    SLOT = "slot"


class LinkKind(IntEnum):
    """How a transport moves data: SDMA (HCCS, PCIe, SIO) or RDMA (RoCE)."""

    SDMA = 0
    RDMA = 1


class TaskKind(IntEnum):
    """What a task does; `spelling` is its name in every output."""

    COPY = 0
    READ = 1
    WRITE = 2
    REDUCE = 3
    READ_REDUCE = 4
    WRITE_REDUCE = 5
    RDMA_WRITE = 6
    RDMA_WRITE_REDUCE = 7
    NOTIFY_POST = 8
    NOTIFY_WAIT = 9
    COMPUTE = 10

    @property
    def spelling(self) -> str:
        """The kind as written in every output."""
        return self.name.lower()

    @property
    def moves_data(self) -> bool:
        """Whether the task has a source and a destination."""
        return self <= TaskKind.RDMA_WRITE_REDUCE

    @property
    def reduces(self) -> bool:
        """Whether the task adds to its destination."""
        return self in _REDUCING

    @property
    def is_atomic(self) -> bool:
        """Whether hardware adds atomically: such tasks of several ranks may reduce into the same
        bytes at once.
        """
        return self in (TaskKind.READ_REDUCE, TaskKind.WRITE_REDUCE)

    @property
    def writes_remote(self) -> bool:
        """Whether the destination is a peer's memory."""
        return self in WRITES

    @property
    def reads_remote(self) -> bool:
        """Whether the source is a peer's memory."""
        return self in READS


_REDUCING = (
    TaskKind.REDUCE,
    TaskKind.READ_REDUCE,
    TaskKind.WRITE_REDUCE,
    TaskKind.RDMA_WRITE_REDUCE,
)
READS = (TaskKind.READ, TaskKind.READ_REDUCE)
"""Kinds whose source is a peer's memory."""

WRITES = (
    TaskKind.WRITE,
    TaskKind.WRITE_REDUCE,
    TaskKind.RDMA_WRITE,
    TaskKind.RDMA_WRITE_REDUCE,
)
"""Kinds whose destination is one."""

RDMA_WRITES = (TaskKind.RDMA_WRITE, TaskKind.RDMA_WRITE_REDUCE)
"""Kinds that go on over the connection when the stream is done with them."""

POST = int(TaskKind.NOTIFY_POST)
WAIT = int(TaskKind.NOTIFY_WAIT)
"""The kinds of posts and waits as plain numbers, for loops over columns."""


def moves_data(kinds: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.bool_]:
    """Return which of a column of kinds move data."""
    return kinds <= int(TaskKind.RDMA_WRITE_REDUCE)
