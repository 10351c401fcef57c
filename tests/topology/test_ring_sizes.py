"""How long ARS makes its rings, held against HCCL's formula in C++ (float and double as there)."""

import pytest

from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType
from hccl_py.topology.ring_sizes import ring_size

SIZES = [
    ("all_reduce", 1000, "fp32", 6, "NHR", 2),
    ("all_reduce", 10**8, "fp32", 14, "NHR", 14),
    ("all_reduce", 64238066, "fp32", 14, "NHR", 2),
    ("all_reduce", 64238067, "fp32", 14, "NHR", 14),
    ("all_reduce", 1000, "fp32", 12, "ring", 4),
    ("all_reduce", 10**7, "fp32", 24, "ring", 12),
    ("all_reduce", 10**6, "fp32", 18, "ring", 6),
    ("all_gather", 10**6, "fp32", 12, "NB", 2),
    ("all_gather", 10**6, "fp16", 30, "ring", 10),
    ("all_gather", 1, "int8", 30, "ring", 6),
    ("reduce_scatter", 10**6, "fp32", 24, "ring", 12),
    ("reduce_scatter", 10**8, "fp32", 24, "NHR", 24),
    ("reduce_scatter", 10**5, "fp32", 18, "ring", 6),
]
"""Op, count, type, ranks of a superpod, level1, and what C++ finds."""


@pytest.mark.parametrize(("op", "count", "dtype", "ranks", "level1", "found"), SIZES)
def test_sizes(op: str, count: int, dtype: str, ranks: int, level1: str, found: int) -> None:
    call = OpParam(op, count, DataType.parse(dtype))
    assert ring_size(call, ranks, level1, whole_packages=True) == found
    assert ring_size(call, ranks, level1, whole_packages=False) == 1


def test_nothing_to_move_takes_no_ring() -> None:
    call = OpParam("all_gather", 0, DataType.FP32)
    assert ring_size(call, 12, "NHR", whole_packages=True) == 1
