"""Small enumerations: data types, reduce ops, buffers, modes, link and task kinds."""

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
    "REDUCES",
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
    """HCCL's data types; the value is HCCL's spelling.

    numpy, with ml_dtypes, has all but int128 and hif8, whose arrays hold the bytes of every element
    (`V16`, `V1`). Types that no device reduces are `is_moved`.
    """

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
    INT128 = "int128"
    HIF8 = "hif8"
    FP8E4M3 = "fp8e4m3"
    FP8E5M2 = "fp8e5m2"
    FP8E8M0 = "fp8e8m0"

    @classmethod
    def parse(cls, name: str) -> DataType:
        """Return the type of a name for it in any case: HCCL's, of its headers or of hccl_test
        (`fp32`, `HCCL_DATA_TYPE_BFP16`, `bfp16`), or numpy's (`float32`).
        """
        word = str(name).lower().removeprefix("hccl_data_type_")
        word = _OTHER_WORDS.get(word, word)
        for member in cls:
            if word in (member.value, member.numpy_name):
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
        return _DATA_TYPES[self.value][2]

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """The numpy dtype."""
        import numpy as np

        found: np.dtype[Any]
        if self.is_extended:
            import ml_dtypes

            found = np.dtype(getattr(ml_dtypes, self.numpy_name))
        elif self.numpy_name.startswith("void"):
            found = np.dtype(f"V{self.itemsize}")
        else:
            found = np.dtype(self.numpy_name)
        return found

    @cached_property
    def itemsize(self) -> int:
        """Bytes of one element (HCCL's unit size)."""
        return _DATA_TYPES[self.value][1]

    @cached_property
    def is_float(self) -> bool:
        """True if sums and products round."""
        return self.value in ("fp16", "fp32", "fp64", "bf16")

    @cached_property
    def is_extended(self) -> bool:
        """True if the numpy dtype is one of ml_dtypes'."""
        return self is DataType.BF16 or self.value.startswith("fp8")

    @cached_property
    def is_moved(self) -> bool:
        """True if ops only move elements, as no device reduces them."""
        return self in _MOVED

    @cached_property
    def number(self) -> int:
        """HcclDataType's value."""
        return _DATA_TYPES[self.value][0]

    @classmethod
    def from_number(cls, number: int) -> DataType:
        """Return the type with this HcclDataType value."""
        return cls(_NAMES[number])


_DATA_TYPES = {
    "int8": (0, 1, "int8"),
    "int16": (1, 2, "int16"),
    "int32": (2, 4, "int32"),
    "fp16": (3, 2, "float16"),
    "fp32": (4, 4, "float32"),
    "int64": (5, 8, "int64"),
    "uint64": (6, 8, "uint64"),
    "uint8": (7, 1, "uint8"),
    "uint16": (8, 2, "uint16"),
    "uint32": (9, 4, "uint32"),
    "fp64": (10, 8, "float64"),
    "bf16": (11, 2, "bfloat16"),
    "int128": (12, 16, "void128"),
    "hif8": (14, 1, "void8"),
    "fp8e4m3": (15, 1, "float8_e4m3fn"),
    "fp8e5m2": (16, 1, "float8_e5m2"),
    "fp8e8m0": (17, 1, "float8_e8m0fnu"),
}
"""HcclDataType's value, bytes of an element, and numpy's name, by HCCL's name."""

_NAMES = {number: name for name, (number, _, _) in _DATA_TYPES.items()}

_OTHER_WORDS = {"bfp16": "bf16"}
"""HCCL's other words for a type: that of its headers and of hccl_test."""

_MOVED = frozenset(map(DataType, ("int128", "hif8", "fp8e4m3", "fp8e5m2", "fp8e8m0")))


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
        """The op as written in every input and output."""
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


class ChannelBuffer(IntEnum):
    """The memories of a rank that records on channels: there is one HCCL buffer, `CCL`."""

    USER_IN = 0
    USER_OUT = 1
    CCL = 2

    @property
    def spelling(self) -> str:
        """The name in program files, that of programs that C++ code records, too."""
        return self.name.removeprefix("USER_")


class Mode(Enum):
    """Workflow mode: eager calls through CCL buffers, or graphs that link user memory."""

    OP_BASE = "op_base"
    GRAPH = "graph"


class InPlace(Enum):
    """Layouts of a call in place: IN and OUT begin at the same address, or the smaller one is the
    rank's own slot of the larger one (all_gather, reduce_scatter).
    """

    START = "start"
    SLOT = "slot"


class LinkKind(IntEnum):
    """Kinds of transports: SDMA (HCCS, PCIe, SIO) or RDMA (RoCE)."""

    SDMA = 0
    RDMA = 1


class TaskKind(IntEnum):
    """Kinds of tasks; `spelling` is the name in every output."""

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
        """True if the task has a source and a destination."""
        return self <= TaskKind.RDMA_WRITE_REDUCE

    @property
    def reduces(self) -> bool:
        """True if the task adds to its destination."""
        return self in REDUCES

    @property
    def is_atomic(self) -> bool:
        """True if hardware adds atomically: such tasks of several ranks may reduce into the same
        bytes at once, over SDMA and one of them over RDMA (HCCL's pipelines of Atlas A2 do so:
        temp_reduce_scatter/reduce_scatter_pipeline.cc, RunAsync).
        """
        return self in (TaskKind.READ_REDUCE, TaskKind.WRITE_REDUCE, TaskKind.RDMA_WRITE_REDUCE)

    @property
    def writes_remote(self) -> bool:
        """True if the destination is a peer's memory."""
        return self in WRITES

    @property
    def reads_remote(self) -> bool:
        """True if the source is a peer's memory."""
        return self in READS


REDUCES = (
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
"""Kinds whose destination is a peer's memory."""

RDMA_WRITES = (TaskKind.RDMA_WRITE, TaskKind.RDMA_WRITE_REDUCE)
"""Kinds whose transfer goes on after they end on their stream."""

POST = int(TaskKind.NOTIFY_POST)
WAIT = int(TaskKind.NOTIFY_WAIT)
"""The kinds of posts and waits as plain numbers, for loops over columns."""


def moves_data(kinds: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.bool_]:
    """Mark the kinds of a column that move data."""
    return kinds <= int(TaskKind.RDMA_WRITE_REDUCE)
