"""The executors that come with hccl-py pass the suite that authors are held to."""

from functools import cache

import pytest

from hccl_py.enums import DataType
from hccl_py.executor import Executor
from hccl_py.testing import PROPERTIES, Property, Suite
from hccl_py.testing.conformance import InapplicableError
from hccl_py.testing.deletion import Deletions
from hccl_py.verifier.sweeps.cases import Cases
from tests.recording import CHOSEN

FEW = Cases(ranks=(2, 3, 4), dtypes=(DataType.FP32, DataType.INT64), counts=(101, 9001))
"""Whole sweeps of all executors are in executors/test_all.py, with -m long."""


@cache
def suite_of(executor: type[Executor]) -> Suite:
    return Suite(executor, cases=FEW)


@pytest.mark.parametrize("chosen", PROPERTIES, ids=lambda chosen: chosen.name)
@pytest.mark.parametrize("executor", CHOSEN)
def test_property(executor: type[Executor], chosen: Property) -> None:
    try:
        chosen.check(suite_of(executor))
    except InapplicableError as reason:
        pytest.fail(f"every property says something about every executor here, but: {reason}")


@pytest.mark.parametrize("executor", CHOSEN)
def test_all_synchronisation_between_ranks_is_missed(executor: type[Executor]) -> None:
    suite = suite_of(executor)
    deletions = Deletions(suite.space.cases, suite.record)
    assert "all synchronisation between ranks" in deletions.noticed


@pytest.mark.parametrize("executor", CHOSEN)
def test_of_an_exchange_only_answers_could_go(executor: type[Executor]) -> None:
    """Where other steps order the same, an exchange's Ack or DataAck orders nothing more: over
    RDMA, a step of reduce-scatter ends with a DataAck that the all-gather's imply.
    """
    suite = suite_of(executor)
    found = Deletions(suite.space.cases, suite.record).unnoticed.values()
    exchanged = {"Ack", "DataAck"} if executor.__name__.endswith("Comm") else set()
    assert {each.mutant.words.partition(" ")[0] for each in found} <= exchanged
