"""Keys and phrases of a call in reports, and the limits of this machine."""

import os

import pytest

from hccl_py.cli.call import (
    check_memory,
    check_save,
    check_tasks,
    describe_topology,
    document_of_plan,
)
from hccl_py.cli.options import CallOptions
from hccl_py.cli.request import CallRequest
from hccl_py.errors import HcclError, ParameterError
from hccl_py.topology import topology_of
from tests.recording import op_of, recorded

MB = 1 << 20


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> int:
    """A machine of 5 MB; returns its bytes."""
    values = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 5 * 256}
    monkeypatch.setattr(os, "sysconf", values.__getitem__)
    return 5 * MB


def test_what_the_memory_holds_is_taken(machine: int) -> None:
    check_memory(machine, "It")
    with pytest.raises(ParameterError) as caught:
        check_memory(machine + MB, "A table")
    assert caught.value.message == "A table would take 6 MB, this machine has 5 MB."
    with pytest.raises(ParameterError):
        check_memory(machine + 1, "A table")


def test_tasks_take_160_bytes_each(monkeypatch: pytest.MonkeyPatch) -> None:
    program = recorded("AllReduceComm", op_of("all_reduce"), topology_of(32, preset="ring"))
    values = {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": 160 * program.task_count}
    monkeypatch.setattr(os, "sysconf", values.__getitem__)
    check_tasks(program)
    values["SC_PHYS_PAGES"] -= 1
    count = f"{program.task_count:,}".replace(",", " ")
    assert len(count) == 6  # thousands are set apart
    with pytest.raises(ParameterError, match=f"^The program's {count} tasks would take"):
        check_tasks(program)


def test_one_rank_is_a_rank() -> None:
    assert [describe_topology(topology_of(n)).partition(":")[0] for n in (1, 2)] == [
        "1 rank",
        "2 ranks",
    ]


def test_a_file_that_no_program_could_be_in_is_refused_before() -> None:
    with pytest.raises(HcclError, match="a\\.txt"):
        check_save("a.txt")


def test_a_document_has_the_keys_of_the_call() -> None:
    request = CallRequest(CallOptions("all_reduce", ranks=4, minbytes="4K"))
    plan = request.plan(request.op(request.minbytes))
    found = document_of_plan(request, plan)
    assert {name: found[name] for name in ("op", "ranks", "dtype", "reduce_op", "mode")} == {
        **{"op": "all_reduce", "ranks": 4, "dtype": "fp32", "reduce_op": "sum", "mode": "op_base"}
    }
    assert (found["bytes"], found["count"], found["rounds"]) == (4096, 1024, 1)
    assert found["tasks"] == plan.program.task_count
    assert found["executor"] == plan.selection.executor
    less = document_of_plan(request, plan, without=("tasks", "rounds"))
    assert found.keys() - less.keys() == {"tasks", "rounds"}
    moved = CallRequest(CallOptions("all_gather", ranks=4, minbytes="4K"))
    assert document_of_plan(moved, moved.plan(moved.op(4096)))["reduce_op"] is None
