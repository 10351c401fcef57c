"""`hccl_py.record`: an executor, a call and a topology make a program."""

from dataclasses import replace
from typing import Any

import pytest

import hccl_py as hccl
from hccl_py.errors import (
    HcclError,
    NotSupportedError,
    OrchestrationError,
    ParameterError,
    PluginError,
)
from hccl_py.plugins.executor import ResourceRequest, ops_of
from tests.recording import BY_NAME, SAMPLES, op_of

AllReduceComm = BY_NAME["AllReduceComm"]
CALL = hccl.OpParam("all_reduce", 1000, hccl.DataType.FP32, hccl.ReduceOp.SUM)
FOUR = hccl.topology_of(ranks=4)


class Broken:
    """An executor that records what is impossible."""

    op = "all_reduce"
    algorithm = "level0:mesh"

    def suits(self, op: Any, topology: Any) -> bool:
        return True

    def resources(self, op: Any, rank: Any) -> ResourceRequest:
        return ResourceRequest()

    def orchestrate(self, op: Any, rank: Any) -> None:
        rank.nothing()


def test_a_name_a_class_and_an_instance_record_the_same() -> None:
    programs = [
        hccl.record(e, CALL, FOUR) for e in ("AllReduceComm", AllReduceComm, AllReduceComm())
    ]
    assert len({program.digest for program in programs}) == 1
    assert (programs[0].ranks, programs[0].executor) == (4, "AllReduceComm")
    assert hccl.verify(programs[0]).ok


@pytest.mark.parametrize("name", SAMPLES)
def test_it_records_what_a_communicator_records(name: str) -> None:
    op = op_of(ops_of(BY_NAME[name]())[0])
    plan = hccl.Communicator(ranks=4).plan(op, name)
    assert hccl.record(name, plan.op, FOUR).digest == plan.program.digest


def test_a_smaller_buffer_takes_more_rounds() -> None:
    whole, cut = (hccl.record(AllReduceComm, CALL, FOUR, ccl_bytes=n) for n in (1 << 20, 2048))
    assert whole.rounds == 1
    assert cut.rounds > 1


def test_the_environment_has_no_say(monkeypatch: pytest.MonkeyPatch) -> None:
    before = hccl.record(AllReduceComm, CALL, FOUR).digest
    monkeypatch.setenv("HCCL_BUFFSIZE", "1")
    monkeypatch.setenv("HCCL_ALGO", "level0:NA;level1:ring")
    assert hccl.record(AllReduceComm, CALL, FOUR).digest == before


def test_levels_are_the_op_s() -> None:
    servers = hccl.topology_of(servers=4, devices=1)
    ring, nhr = (
        hccl.record(AllReduceComm, replace(CALL, level1=word), servers) for word in ("ring", "NHR")
    )
    assert ring.digest != nhr.digest


def test_a_barrier_is_recorded_as_its_all_reduce() -> None:
    program = hccl.record("AllReduceComm", replace(CALL, name="barrier", count=8), FOUR)
    assert program.op.name == "all_reduce"


@pytest.mark.parametrize(
    ("executor", "op", "kind", "says"),
    [
        ("AllReduceCom", CALL, ParameterError, "Executor 'AllReduceCom' is unknown"),
        (
            "AllGatherComm",
            CALL,
            ParameterError,
            "AllGatherComm executes all_gather, not all_reduce",
        ),
        (int, CALL, PluginError, "the attribute op is missing"),
        (AllReduceComm, replace(CALL, count=-1), ParameterError, "-1"),
        (AllReduceComm, replace(CALL, level1="star"), ParameterError, "does not do star on level1"),
        (AllReduceComm, replace(CALL, name="all_reduse"), ParameterError, "all_reduse"),
        (Broken, CALL, OrchestrationError, "Broken.orchestrate, ranks 0 to 3"),
        (AllReduceComm, "all_reduce", ParameterError, "op is 'all_reduce'"),
    ],
)
def test_errors_name_what_is_wrong(
    executor: Any, op: Any, kind: type[HcclError], says: str
) -> None:
    with pytest.raises(kind, match=says):
        hccl.record(executor, op, FOUR)


def test_an_executor_that_does_not_suit_says_why() -> None:
    op = hccl.OpParam("all_gather", 8, hccl.DataType.FP32)
    with pytest.raises(NotSupportedError, match="does not suit this call: "):
        hccl.record("AllGatherMeshOpbaseExecutor", op, hccl.topology_of(servers=2, devices=2))


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "1M"])
def test_a_buffer_is_a_number_of_bytes(wrong: Any) -> None:
    with pytest.raises(ParameterError, match="ccl_bytes is"):
        hccl.record(AllReduceComm, CALL, FOUR, ccl_bytes=wrong)


def test_a_topology_is_one() -> None:
    wrong: Any = 4
    with pytest.raises(ParameterError, match="topology is 4"):
        hccl.record(AllReduceComm, CALL, wrong)
