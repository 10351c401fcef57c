"""Legality and meaning of the operators."""

import numpy as np
import pytest

from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import HcclResult, NotSupportedError, ParameterError
from hccl_py.operators import OPERATORS, make_operator
from hccl_py.operators.base import MAX_COUNT
from hccl_py.topology import PRESETS, topology_of

TOPOLOGY = topology_of(4)
BYTE_FLOATS = {"hif8", "fp8e4m3", "fp8e5m2", "fp8e8m0"}
REDUCIBLE = {"int8", "int16", "int32", "int64", "fp16", "fp32", "bf16"}


@pytest.mark.parametrize("dtype", list(DataType))
def test_data_types_by_op(dtype: DataType) -> None:
    copied = OpParam("all_gather", 4, dtype)
    if dtype.value in BYTE_FLOATS:
        with pytest.raises(NotSupportedError, match=f"does not take {dtype.value}"):
            make_operator("all_gather").check(copied, TOPOLOGY)
    else:
        make_operator("all_gather").check(copied, TOPOLOGY)
    op = OpParam("all_reduce", 4, dtype, ReduceOp.SUM)
    if dtype.value in REDUCIBLE:
        make_operator("all_reduce").check(op, TOPOLOGY)
        return
    with pytest.raises(NotSupportedError, match=f"does not take {dtype.value}") as caught:
        make_operator("all_reduce").check(op, TOPOLOGY)
    assert caught.value.result is HcclResult.E_NOT_SUPPORT
    assert caught.value.hint == "It takes int8, int16, int32, fp16, fp32, int64, bf16."


def test_data_types_of_the_950() -> None:
    """As its parameter check has it: op_common.cc of August 2026."""
    product = PRESETS["ascend950"]
    integers = {"int8", "int16", "int32", "int64", "uint64"}
    sums = integers | {"fp16", "fp32", "fp64", "bf16"}
    moved = sums | {"uint8", "uint16", "uint32"} | BYTE_FLOATS
    by_op = {op: {t.value for t, o in product.reductions if o is op} for op in ReduceOp}
    assert {t.value for t in product.copy_types} == moved
    assert by_op[ReduceOp.PROD] == sums - {"int16", "bf16"}
    assert by_op[ReduceOp.SUM] == by_op[ReduceOp.MAX] == by_op[ReduceOp.MIN] == sums


@pytest.mark.parametrize(
    ("name", "number", "size"),
    [
        ("int128", 12, 16),
        ("hif8", 14, 1),
        ("fp8e4m3", 15, 1),
        ("fp8e5m2", 16, 1),
        ("fp8e8m0", 17, 1),
    ],
)
def test_types_that_are_only_moved(name: str, number: int, size: int) -> None:
    dtype = DataType.parse(name)
    assert (dtype.number, dtype.itemsize, dtype.numpy.itemsize) == (number, size, size)
    assert DataType.from_number(number) is dtype
    assert DataType.of(dtype.numpy) is dtype
    assert dtype.is_moved


@pytest.mark.parametrize("dtype", sorted(REDUCIBLE))
def test_prod_excludes_what_the_product_cannot_multiply(dtype: str) -> None:
    op = OpParam("all_reduce", 4, DataType(dtype), ReduceOp.PROD)
    if dtype in ("int16", "bf16"):
        with pytest.raises(NotSupportedError, match="does not take prod"):
            make_operator("all_reduce").check(op, TOPOLOGY)
    else:
        make_operator("all_reduce").check(op, TOPOLOGY)


@pytest.mark.parametrize(
    ("op", "words"),
    [
        (OpParam("all_gather", -1, DataType.FP32), "count of -1"),
        (OpParam("all_gather", MAX_COUNT + 1, DataType.FP32), f"from 0 to {MAX_COUNT}"),
        (OpParam("all_gather", 1, DataType.FP32, root=4), "Root 4 of all_gather is not a rank"),
        (OpParam("all_gather", 1, DataType.FP32, root=-1), "ranks 0 to 3"),
        (OpParam("all_reduce", 1, DataType.FP32), "needs a reduce op"),
    ],
)
def test_illegal_parameters(op: OpParam, words: str) -> None:
    with pytest.raises(ParameterError, match=words) as caught:
        make_operator(op.name).check(op, TOPOLOGY)
    assert caught.value.result is HcclResult.E_PARA


def test_the_largest_count_is_legal() -> None:
    op = OpParam("all_gather", 0x7FFFFFFFF, DataType.FP32)
    make_operator("all_gather").check(op, TOPOLOGY)
    parts = OpParam("all_gather_v", 0, DataType.FP32, counts=(0, 0x7FFFFFFFF, 0, 0))
    make_operator("all_gather_v").check(parts, TOPOLOGY)


def test_parts_of_int64_are_reduced_on_a3_but_not_on_a2() -> None:
    op = OpParam("reduce_scatter_v", 1, DataType.INT64, ReduceOp.SUM, counts=(1, 2, 3, 4))
    operator = make_operator("reduce_scatter_v")
    operator.check(op, topology_of(4, preset="atlas-900-a3"))
    with pytest.raises(NotSupportedError, match="does not take int64"):
        operator.check(op, topology_of(4, preset="atlas-800t-a2"))


def test_unknown_ops_name_the_nearest() -> None:
    with pytest.raises(ParameterError, match="Did you mean all_gather"):
        make_operator("allgather")
    assert len(OPERATORS) == 15


@pytest.mark.parametrize(
    ("name", "size", "count"),
    [
        ("all_gather", 1024, 64),
        ("all_gather", 1025, 65),
        ("all_reduce", 1024, 256),
        ("all_reduce", 1, 1),
    ],
)
def test_counts_of_data_sizes_round_up(name: str, size: int, count: int) -> None:
    assert make_operator(name).count(size, 4, 4) == count


def test_expected_results() -> None:
    inputs = [np.array([r, 2 - r], np.int8) for r in range(3)]
    gathered = make_operator("all_gather").expected(OpParam("all_gather", 2, DataType.INT8), inputs)
    assert gathered[2] is not None
    assert gathered[2].tolist() == [0, 2, 1, 1, 2, 0]
    for op, wanted in ((ReduceOp.SUM, [3, 3]), (ReduceOp.MAX, [2, 2]), (ReduceOp.PROD, [0, 0])):
        param = OpParam("all_reduce", 2, DataType.INT8, op)
        found = make_operator("all_reduce").expected(param, inputs)[0]
        assert found is not None
        assert found.tolist() == wanted
    wrapped = make_operator("all_reduce").expected(
        OpParam("all_reduce", 1, DataType.INT8, ReduceOp.SUM), [np.array([100], np.int8)] * 2
    )
    assert wrapped[0] is not None
    assert wrapped[0].tolist() == [-56]


def test_bus_bandwidth_factors() -> None:
    assert make_operator("all_reduce").bus_factor(4) == 1.5
    assert make_operator("all_gather").bus_factor(4) == 0.75


@pytest.mark.parametrize("name", ["fp32", "float32", "bf16", "bfloat16", "int8"])
def test_data_types_by_either_name(name: str) -> None:
    dtype = DataType.parse(name)
    assert DataType.of(dtype.numpy) is dtype
    assert dtype.numpy.itemsize == dtype.itemsize
    assert DataType.from_number(dtype.number) is dtype


@pytest.mark.parametrize("word", ["bfp16", "BF16", "HCCL_DATA_TYPE_BFP16", "BFLOAT16"])
def test_words_of_hccls_headers_and_tools_for_a_type(word: str) -> None:
    assert DataType.parse(word) is DataType.BF16


def test_unknown_data_types_and_reduce_ops() -> None:
    with pytest.raises(NotSupportedError, match="Did you mean fp32"):
        DataType.parse("fp31")
    with pytest.raises(NotSupportedError, match="Did you mean sum"):
        ReduceOp.parse("sun")
