"""Users' arrays: what is taken, what is copied, what is refused."""

from typing import Any

import numpy as np
import pytest

from hccl_py.call.op_param import OpParam
from hccl_py.communicator.arrays import Arrays, MissingArrayError, flat_arrays, place
from hccl_py.communicator.collectives import Ranks, same
from hccl_py.enums import DataType, InPlace, ReduceOp
from hccl_py.errors import HcclError, HcclResult, ParameterError
from hccl_py.operators import make_operator
from hccl_py.topology import topology_of


def prepared(name: str, inputs: Any, out: Any = None, ranks: int | None = None) -> Arrays:
    """Bring arrays of an op whose ranks have the same amount into a platform's form."""
    local = range(len(inputs)) if ranks is None else range(ranks)
    topology = topology_of(len(local), preset="mesh")
    data = same(name, inputs, Ranks(topology, local), reduce=ReduceOp.SUM)
    arrays = place(make_operator(name), data, out, topology, local)
    arrays.begin()
    return arrays


@pytest.mark.parametrize(
    ("name", "shape", "wanted"),
    [
        ("all_reduce", (), ()),
        ("all_reduce", (0, 3), (0, 3)),
        ("all_reduce", (2, 3), (2, 3)),
        ("all_gather", (), (3,)),
        ("all_gather", (5,), (15,)),
        ("all_gather", (2, 3), (6, 3)),
        ("all_gather", (0,), (0,)),
        ("reduce_scatter", (6, 2), (2, 2)),
        ("all_to_all", (3, 4), (3, 4)),
    ],
)
def test_shapes_are_what_numpy_users_expect(name: str, shape: Any, wanted: Any) -> None:
    arrays = prepared(name, [np.zeros(shape, np.float32)] * 3)
    assert [r.shape for r in arrays.results if r is not None] == [wanted] * 3
    assert all(a.ndim == 1 and a.flags.c_contiguous for a in arrays.inputs + arrays.outputs)
    parts = 3 if name in ("reduce_scatter", "all_to_all") else 1
    assert arrays.op.count * parts == int(np.prod(shape))


def test_lists_and_views_are_taken() -> None:
    wide = np.arange(12, dtype=np.int32).reshape(3, 4)
    arrays = prepared("all_reduce", [wide.T, wide.T])
    assert arrays.inputs[0].tolist() == wide.T.reshape(-1).tolist()
    assert prepared("all_reduce", [[1, 2], [3, 4]]).op.count == 2


def test_outputs_that_are_not_contiguous_are_written_at_the_end() -> None:
    out = [np.zeros((4, 2), np.float32)[:, 0] for _ in range(2)]
    arrays = prepared("all_reduce", [np.ones(4, np.float32)] * 2, out)
    assert not np.shares_memory(arrays.outputs[0], out[0])
    for flat in arrays.outputs:
        flat[:] = 7
    assert [r.tolist() for r in arrays.finish()] == [[7.0] * 4] * 2
    assert out[1].tolist() == [7.0] * 4


def test_in_place_is_recognised() -> None:
    data = [np.ones(4, np.float32) for _ in range(2)]
    assert prepared("all_reduce", data, data).op.in_place
    apart = prepared("all_reduce", data, [np.ones(4, np.float32) for _ in range(2)])
    assert not apart.op.in_place
    out = [np.ones(8, np.float32) for _ in range(2)]
    arrays = prepared("all_gather", [o[4 * r : 4 * r + 4] for r, o in enumerate(out)], out)
    assert arrays.op.in_place
    assert np.shares_memory(arrays.inputs[1], out[1])


def test_reduce_scatter_in_place_is_recognised() -> None:
    data = [np.ones(8, np.float32) for _ in range(2)]
    assert prepared("reduce_scatter", data, [d[:4] for d in data]).op.in_place
    assert prepared("reduce_scatter", data, [data[0][:4], data[1][4:]]).op.in_place
    swapped = prepared("reduce_scatter", data, [data[0][4:], data[1][:4]])
    assert not swapped.op.in_place
    assert not np.shares_memory(swapped.inputs[0], data[0])


def test_another_rank_s_slot_is_not_in_place() -> None:
    out = [np.arange(8, dtype=np.float32) for _ in range(2)]
    arrays = prepared("all_gather", [out[0][4:], out[1][:4]], out)
    assert not arrays.op.in_place
    assert arrays.inputs[0].tolist() == [4, 5, 6, 7]


def test_ops_that_cannot_work_in_place_refuse_shared_memory() -> None:
    data = [np.ones(4, np.float32) for _ in range(2)]
    with pytest.raises(ParameterError, match="all_to_all cannot work in place: rank 0's output"):
        prepared("all_to_all", data, data)


def test_awkward_overlaps_are_copied_first() -> None:
    out = [np.arange(8, dtype=np.float32) for _ in range(2)]
    arrays = prepared("all_gather", [o[1:5] for o in out], out)
    assert not arrays.op.in_place
    assert not np.shares_memory(arrays.inputs[0], out[0])
    assert arrays.inputs[0].tolist() == [1, 2, 3, 4]
    mixed = prepared("all_reduce", [out[0][:4], np.ones(4, np.float32)], [out[0][:4], out[1][:4]])
    assert not mixed.op.in_place
    assert not np.shares_memory(mixed.inputs[0], out[0])


ONE = np.ones(4, np.float32)
FROZEN = np.ones(4, np.float32)
FROZEN.flags.writeable = False
SHARED = np.ones(6, np.float32)


@pytest.mark.parametrize(
    ("inputs", "out", "words"),
    [
        ([ONE, ONE[:3]], None, r"Rank 1's input has shape \(3,\), rank 0's has \(4,\)"),
        ([ONE, ONE.astype(np.float64)], None, "Rank 1's input is float64, rank 0's is float32"),
        ([ONE, ONE.astype(bool)], None, "no data type for numpy's bool"),
        ([ONE, ONE.astype(object)], None, "no data type for numpy's object"),
        ([ONE, ["a"] * 4], None, "no data type for numpy's str"),
        ([ONE.astype(complex)] * 2, None, "no data type for numpy's complex128"),
        ([ONE.astype(">f4")] * 2, None, "byte-swapped"),
        ([np.ma.masked_array(ONE, ONE > 0)] * 2, None, "masked"),
        ([ONE, ONE], [ONE.copy()], "1 outputs for 2 ranks"),
        ([ONE, ONE], [ONE.copy(), [1.0] * 4], "Rank 1's output is a list"),
        ([ONE, ONE], [ONE.copy(), np.ones(5, np.float32)], r"float32 of shape \(5,\)"),
        ([ONE, ONE], [ONE.copy(), np.ones(4)], r"float64 of shape \(4,\)"),
        ([ONE, ONE], [ONE.copy(), FROZEN], "read-only"),
        (
            [ONE, ONE],
            [SHARED[:4], SHARED[2:]],
            "Rank 1's output shares memory with rank 0's output",
        ),
        ([ONE, SHARED[:4]], [SHARED[2:], ONE.copy()], "shares memory"),
    ],
)
def test_what_is_refused_and_why(inputs: Any, out: Any, words: str) -> None:
    with pytest.raises(HcclError, match=words) as caught:
        prepared("all_reduce", inputs, out)
    assert caught.value.hint


def test_an_overlap_behind_a_longer_own_array_is_refused() -> None:
    buffer = np.zeros(256, np.int32)
    inputs = [buffer[16:144], buffer[:128]]
    with pytest.raises(ParameterError, match="Rank 0's output shares memory with rank 1's input"):
        prepared("all_reduce", inputs, [buffer[64:192], np.zeros(128, np.int32)])


def test_outputs_with_gaps_may_be_woven_but_not_overlap() -> None:
    wide = np.zeros(12, np.float32)
    woven = [wide[1:9:2], wide[:8:2]]
    assert prepared("all_reduce", [ONE, ONE], woven).results[0] is woven[0]
    for other in (wide[3:11:2], wide[1:5], wide[7::-2]):
        for out in ([wide[1:9:2], other], [other, wide[1:9:2]]):
            with pytest.raises(ParameterError, match=r"Rank \d's output shares memory with rank"):
                prepared("all_reduce", [ONE, ONE], out)


def test_the_number_of_inputs() -> None:
    with pytest.raises(ParameterError, match="got 1 inputs for 2 ranks"):
        prepared("all_reduce", [ONE], ranks=2)
    assert prepared("all_reduce", ONE, [ONE.copy()], ranks=1).op.count == 4


def test_a_rank_without_an_array_is_hccl_s_null_pointer() -> None:
    with pytest.raises(MissingArrayError, match="Rank 1 has no input") as caught:
        prepared("all_reduce", [ONE, None])
    assert caught.value.result is HcclResult.E_PTR
    with pytest.raises(MissingArrayError, match="Rank 0 has None as output"):
        prepared("all_reduce", [ONE, ONE], [None, ONE.copy()])


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("name", ["all_gather", "reduce_scatter"])
def test_flat_arrays_begin_at_the_same_address_in_place(name: str, in_place: bool) -> None:
    op = OpParam(name, 4, DataType.FP32, ReduceOp.SUM, in_place=in_place)
    operator = make_operator(name)
    inputs = [np.arange(4 if name == "all_gather" else 8, dtype=np.float32) + r for r in range(2)]
    arrays = flat_arrays(operator, op, inputs, 2, range(2))
    for mine, i, o in zip(inputs, arrays.inputs, arrays.outputs, strict=True):
        assert i.tolist() == mine.tolist()
        assert np.shares_memory(i, o) == in_place
        assert not in_place or i.ctypes.data == o.ctypes.data
    assert [o.size for o in arrays.outputs] == [8 if name == "all_gather" else 4] * 2


@pytest.mark.parametrize("name", ["all_gather", "reduce_scatter"])
def test_flat_arrays_lie_in_the_own_slot_where_the_op_says_so(name: str) -> None:
    op = OpParam(name, 4, DataType.FP32, ReduceOp.SUM, in_place=InPlace.SLOT)
    gathers = name == "all_gather"
    inputs = [np.arange(4 if gathers else 12, dtype=np.float32) + rank for rank in range(3)]
    arrays = flat_arrays(make_operator(name), op, inputs, 3, range(3))
    for rank, (mine, i, o) in enumerate(zip(inputs, arrays.inputs, arrays.outputs, strict=True)):
        assert i.tolist() == mine.tolist()
        large, small = (o, i) if gathers else (i, o)
        assert small.ctypes.data - large.ctypes.data == rank * 16
        assert (large.size, small.size) == (12, 4)
