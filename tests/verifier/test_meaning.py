"""What ops mean, held against the operators' own right results and against the API's words."""

import numpy as np
import pytest

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import OPS
from hccl_py.enums import DataType, ReduceOp
from hccl_py.verifier.analysis.meaning import EVERYONE, expected_ranges, in_place_offsets
from tests.verifier.test_clean import OPS_AS_FLOWS, RANKS, REDUCING, drawn_op


def meant(op: OpParam, ranks: int) -> list[tuple[int, ...]]:
    """Return (rank, start, stop, source, offset), sorted."""
    expected = expected_ranges(op, ranks)
    columns = (expected.rank, expected.start, expected.stop, expected.source, expected.offset)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def op_of(name: str) -> OpParam:
    """Return the op of a program file."""
    return drawn_op(name).program().op


@pytest.mark.parametrize("name", OPS)
def test_every_op_means_what_its_flows_say(name: str) -> None:
    """The flows of test_clean.py are written from the API's description, range by range."""
    flows = [flow for flow in OPS_AS_FLOWS[name].flows if flow.size]
    wanted = {
        (f.rank, f.start, f.start + f.size, EVERYONE if name in REDUCING else f.source, f.offset)
        for f in flows
    }
    assert meant(op_of(name), RANKS) == sorted(wanted)


def test_all_gather_and_all_reduce_of_two_ranks() -> None:
    gather = OpParam("all_gather", 4, DataType.FP32)
    assert meant(gather, 2) == [
        (0, 0, 16, 0, 0),
        (0, 16, 32, 1, 0),
        (1, 0, 16, 0, 0),
        (1, 16, 32, 1, 0),
    ]
    reduce = OpParam("all_reduce", 4, DataType.FP32, ReduceOp.SUM)
    assert meant(reduce, 2) == [(0, 0, 16, EVERYONE, 0), (1, 0, 16, EVERYONE, 0)]


def test_without_displacements_parts_are_packed() -> None:
    gather = OpParam("all_gather_v", 0, DataType.FP16, counts=(3, 0, 2))
    assert meant(gather, 3) == [
        row for r in range(3) for row in ((r, 0, 6, 0, 0), (r, 6, 10, 2, 0))
    ]
    scatter = OpParam("reduce_scatter_v", 0, DataType.FP16, ReduceOp.MAX, counts=(3, 0, 2))
    assert meant(scatter, 3) == [(0, 0, 6, EVERYONE, 0), (2, 0, 4, EVERYONE, 6)]


def test_displacements_of_all_to_all_v_may_be_given_for_inputs_only() -> None:
    op = OpParam(
        "all_to_all_v", 0, DataType.INT8, counts=((1, 2), (3, 4)), displs=((10, 20), (30, 40))
    )
    assert meant(op, 2) == [
        (0, 0, 1, 0, 10),
        (0, 1, 4, 1, 30),
        (1, 0, 2, 0, 20),
        (1, 2, 6, 1, 40),
    ]


def test_send_recv_without_pairs_is_a_ring() -> None:
    op = OpParam("send_recv", 2, DataType.INT32)
    assert meant(op, 3) == [(0, 0, 8, 2, 0), (1, 0, 8, 0, 0), (2, 0, 8, 1, 0)]


def test_roots_may_be_left_out_in_hand_made_parameters() -> None:
    assert meant(OpParam("broadcast", 1, DataType.INT8), 2) == [(0, 0, 1, 0, 0), (1, 0, 1, 0, 0)]


@pytest.mark.parametrize("name", OPS)
def test_calls_without_data_mean_nothing(name: str) -> None:
    reduce = ReduceOp.SUM if name in REDUCING else None
    op = OpParam(name, 0, DataType.FP32, reduce, matrix=NOTHING if "all_to_all_v" in name else ())
    assert meant(op, 2) == []


NOTHING = ((0, 0), (0, 0))


def test_where_in_and_out_may_lie_in_place() -> None:
    gather = in_place_offsets(OpParam("all_gather", 4, DataType.FP32), 3)
    assert [offsets.tolist() for _, offsets in gather] == [[0, 0, 0], [0, -16, -32]]
    scatter = in_place_offsets(OpParam("reduce_scatter", 4, DataType.FP32, ReduceOp.SUM), 3)
    assert [offsets.tolist() for _, offsets in scatter] == [[0, 0, 0], [0, 16, 32]]
    reduce = in_place_offsets(OpParam("all_reduce", 4, DataType.FP32, ReduceOp.SUM), 3)
    assert len(reduce) == 1
    assert not np.any(reduce[0][1])
