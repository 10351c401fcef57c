"""The rows of the ops agree with each other and with the operators."""

import pytest

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import ALL_TO_ALL, COUNTS_OF, OPS
from hccl_py.operators import OPERATORS


def test_every_op_has_a_row_and_an_operator() -> None:
    assert list(OPS) == list(OPERATORS)
    assert len(OPS) == 15
    for name, operator in OPERATORS.items():
        assert operator.facts is OPS[name]
        assert (operator.reduces, operator.rooted) == (OPS[name].reduces, OPS[name].rooted)
    assert set(ALL_TO_ALL) <= set(OPS)


@pytest.mark.parametrize("name", OPS)
def test_rows_name_what_exists(name: str) -> None:
    row = OPS[name]
    assert set(row.members) <= set(OpParam.__dataclass_fields__)
    assert set(row.optional) <= set(row.members)
    assert not row.runs_as or row.runs_as in OPS
    assert not row.own_slot or (row.in_place and row.slots_in != row.slots_out)


def test_rows_are_the_interfaces_of_hccl() -> None:
    """hcclReduce and its kind take a reduce op, root ones a root, V ones counts."""
    assert {n for n, row in OPS.items() if row.rooted} == {
        "broadcast",
        "reduce",
        "scatter",
        "gather",
    }
    reducing = {"all_reduce", "reduce_scatter", "reduce_scatter_v", "reduce", "barrier"}
    assert {n for n, row in OPS.items() if row.reduces} == reducing
    assert COUNTS_OF == {
        "all_gather_v": ("counts", 1),
        "reduce_scatter_v": ("counts", 1),
        "all_to_all_v": ("counts", 2),
        "all_to_all_vc": ("matrix", 2),
    }
