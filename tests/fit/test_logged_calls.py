"""What a log's command line says of a call, and what is known besides."""

import pytest

from hccl_py.call.call_spec import CallSpec, ClusterSpec
from hccl_py.errors import ParameterError
from hccl_py.fit.logs.hccl_test import Command, LogTable
from hccl_py.fit.logs.logged_calls import logged_call


def test_the_command_says_op_type_and_ranks() -> None:
    table = LogTable("a.log:1", Command("alltoall", ranks=8, devices=4, dtype="fp16"), ())
    spec = logged_call(table, CallSpec(""))
    assert (spec.op, spec.dtype) == ("all_to_all", "fp16")
    assert spec.cluster == ClusterSpec(servers=2, devices=4)


@pytest.mark.parametrize(("program", "root"), [("broadcast", 0), ("alltoall", None)])
def test_a_root_counts_where_the_op_has_one(program: str, root: int | None) -> None:
    table = LogTable("a.log:1", Command(program, ranks=8, root=0), ())
    assert logged_call(table, CallSpec("")).root == root


def test_an_op_that_nothing_names_is_refused() -> None:
    with pytest.raises(ParameterError, match="no command line says which op"):
        logged_call(LogTable("a.log:1", None, ()), CallSpec(""))
