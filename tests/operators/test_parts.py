"""Ops whose parts differ by rank and pair: what they hold, what they mean, what they refuse."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType
from hccl_py.errors import ParameterError
from hccl_py.operators import make_operator
from hccl_py.operators.parts import messages_of
from hccl_py.topology import topology_of
from hccl_py.verifier.analysis.meaning import expected_ranges

FAMILY = ("all_to_all", "all_to_all_v", "all_to_all_vc", "send_recv", "batch_send_recv")
INT8 = DataType.INT8
TOPOLOGY = topology_of(3)


@st.composite
def part_ops(draw: DrawFn, name: str, ranks: int) -> OpParam:
    """Draw amounts, many of them 0, and displacements with gaps and in any order."""
    op = OpParam(name, draw(st.integers(0, 5)), draw(st.sampled_from([INT8, DataType.FP32])))
    amounts = st.one_of(st.just(0), st.integers(0, 9))
    table = st.lists(st.tuples(*[amounts] * ranks), min_size=ranks, max_size=ranks).map(tuple)
    if name == "all_to_all_vc":
        return replace(op, matrix=draw(table))
    if name == "all_to_all_v":
        op = replace(op, counts=draw(table))
        rows = [(*draw(_apart(ranks)), *draw(_apart(ranks))) for _ in range(ranks)]
        width = draw(st.sampled_from([0, ranks, 2 * ranks]))
        return replace(op, displs=tuple(row[:width] for row in rows) if width else ())
    if name == "batch_send_recv":
        rank = st.integers(0, ranks - 1)
        message = st.one_of(st.tuples(rank, rank), st.tuples(rank, rank, st.integers(0, 9)))
        return replace(op, pairs=tuple(draw(st.lists(message, max_size=12))))
    if name == "send_recv":
        to = draw(st.permutations(range(ranks)))
        pairs = draw(st.sets(st.sampled_from(list(enumerate(to)))))
        return replace(op, pairs=tuple(sorted(pairs)))
    return op


def _apart(ranks: int) -> st.SearchStrategy[Sequence[int]]:
    """Draw where parts of at most 9 elements begin, each in a place of its own."""
    return st.permutations([11 * part for part in range(ranks)])


@given(data=st.data(), name=st.sampled_from(FAMILY), ranks=st.integers(1, 5))
def test_what_operators_expect_is_what_the_verifier_takes_them_to_mean(
    data: st.DataObject, name: str, ranks: int
) -> None:
    op, operator = data.draw(part_ops(name, ranks)), make_operator(name)
    operator.check(op, topology_of(ranks))
    sizes, room = operator.user_bytes(op, ranks)
    rng = np.random.default_rng(1)
    inputs = [rng.integers(1, 99, size // op.unit).astype(op.dtype.numpy) for size in sizes]
    meant = [np.zeros(size // op.unit, op.dtype.numpy) for size in room]
    rows = expected_ranges(op, ranks)
    for rank, start, stop, source, offset in zip(
        rows.rank, rows.start, rows.stop, rows.source, rows.offset, strict=True
    ):
        part = inputs[source].view(np.uint8)[offset : offset + stop - start]
        meant[rank].view(np.uint8)[start:stop] = part
    for wanted, found in zip(meant, operator.expected(op, inputs), strict=True):
        assert found is not None
        np.testing.assert_array_equal(wanted, found)


def test_empty_parts_may_lie_anywhere() -> None:
    op = OpParam("all_to_all_v", 0, INT8, counts=((2, 0), (0, 3)), displs=((0, 900), (1, 0)))
    operator = make_operator("all_to_all_v")
    operator.check(op, topology_of(2))
    sent, received = operator.user_bytes(op, 2)
    assert (sent.tolist(), received.tolist()) == ([2, 3], [2, 3])


def test_an_empty_part_may_lie_within_another_one() -> None:
    op = OpParam("all_gather_v", 0, INT8, counts=(4, 0, 3), displs=(0, 2, 4))
    make_operator("all_gather_v").check(op, TOPOLOGY)


OVERLAP = ((0, 0, 0, 0, 3, 5), (0, 0, 0, 0, 4, 4), (0, 0, 0, 0, 9, 9))


@pytest.mark.parametrize(
    ("name", "members", "words"),
    [
        ("all_to_all", {"counts": ((1,) * 3,) * 3}, "all_to_all takes no counts"),
        ("all_to_all", {"matrix": ((1,) * 3,) * 3}, "all_to_all takes no matrix"),
        ("all_to_all_v", {"matrix": ((1,) * 3,) * 3}, "all_to_all_v takes no matrix"),
        ("all_to_all_v", {}, "counts of shape 0"),
        ("all_to_all_v", {"counts": ((1, 2),) * 3}, "counts of shape 3 x 2"),
        ("all_to_all_v", {"counts": ((1, 2, -1),) * 3}, "counts with -1"),
        ("all_to_all_v", {"counts": ((1, 2, 3), (1, 2), (1,))}, "rows of different lengths"),
        ("all_gather_v", {"counts": (1, 2.5, 3)}, "counts that are no whole numbers"),
        ("all_gather_v", {"counts": (True, False, True)}, "counts that are no whole numbers"),
        ("all_gather_v", {"counts": (1, 2, 3), "displs": (0.0, 1.0, 3.0)}, "no whole numbers"),
        ("all_gather_v", {"counts": (1, 2, 3), "displs": (0, 1, 1 << 36)}, "displs with 687194767"),
        ("all_gather_v", {"counts": (1, 2, 3), "displs": (0, 1, 1 << 99)}, "displs with 633825300"),
        ("all_to_all_v", {"counts": ((1,) * 3,) * 3, "displs": ((1,) * 4,) * 3}, "displs of shape"),
        (
            "all_to_all_v",
            {"counts": ((4, 0, 4),) * 3, "displs": OVERLAP},
            "output of rank 0, the part from rank 0 ends at element 4, the one from rank 1 begins "
            "at 3",
        ),
        ("all_to_all_vc", {"matrix": ((1, 2),) * 3}, "matrix of shape 3 x 2"),
        (
            "all_to_all_vc",
            {"matrix": ((1,) * 3,) * 3, "displs": ((0,) * 3,) * 3},
            "all_to_all_vc takes no displs",
        ),
        ("send_recv", {"pairs": ((0, 1), (0, 2))}, "rank 0 sends more than once"),
        ("send_recv", {"pairs": ((0, 1), (2, 1))}, "rank 1 receives more than once"),
        ("batch_send_recv", {"pairs": ((0, 1), (0, 3))}, "message 1 names rank 3"),
        ("batch_send_recv", {"pairs": ((0, 1, 2, 3),)}, r"message 0 is \(0, 1, 2, 3\)"),
        ("batch_send_recv", {"pairs": ((0, -1),)}, "message 0 is"),
        ("all_gather_v", {"counts": (3, 0, 3), "displs": (0, 1, 2)}, "the part of rank 0 ends at"),
    ],
)
def test_illegal_amounts(name: str, members: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        make_operator(name).check(OpParam(name, 1, INT8, **members), TOPOLOGY)


def test_an_overlap_is_found_across_an_empty_part() -> None:
    displs, counts = (0, 5, 7), ((9, 9, 9), (0, 0, 0), (9, 9, 9))
    op = OpParam("all_to_all_v", 9, INT8, counts=counts, displs=((0, 0, 0, *displs),) * 3)
    with pytest.raises(ParameterError, match="element 9, the one from rank 2 begins at 7"):
        make_operator("all_to_all_v").check(op, TOPOLOGY)


def test_messages_lie_in_the_order_of_the_list() -> None:
    op = OpParam("batch_send_recv", 2, INT8, pairs=((0, 1), (2, 1, 5), (0, 1, 3)))
    found = messages_of(op, 3)
    receives = found.by_receiver
    assert receives.peers[1].tolist() == [0, 2, 0]
    assert receives.counts[1].tolist() == [2, 5, 3]
    assert receives.displs[1].tolist() == [0, 2, 7]
    assert receives.places[1].tolist() == [0, 0, 2]
    assert found.by_sender.peers.tolist() == [[1, 1], [-1, -1], [1, -1]]
