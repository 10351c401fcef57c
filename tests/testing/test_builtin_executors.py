"""The executors that come with hccl-py pass the suite that authors are held to."""

from functools import cache

import pytest

from hccl_py.enums import DataType
from hccl_py.plugins.executor import Executor
from hccl_py.testing import PROPERTIES, Property, Suite
from hccl_py.testing.conformance import InapplicableError
from hccl_py.testing.deletion import Deletions
from hccl_py.verifier.sweeps.cases import Cases
from tests.recording import CHOSEN

FEW = Cases(ranks=(2, 3, 4), dtypes=(DataType.FP32, DataType.INT64), counts=(101, 30001))
"""Whole sweeps of all executors are in executors/test_all.py, with -m long."""


ON_ONE_WORKER = [
    pytest.param(executor, marks=pytest.mark.xdist_group(executor.__name__)) for executor in CHOSEN
]
"""Each on one worker, which makes the suite and the deletions that its tests share."""


@cache
def suite_of(executor: type[Executor]) -> Suite:
    return Suite(executor, cases=FEW)


@cache
def deletions_of(executor: type[Executor]) -> Deletions:
    suite = suite_of(executor)
    return Deletions(suite.space.cases, suite.record)


@pytest.mark.sweep
@pytest.mark.parametrize("chosen", PROPERTIES, ids=lambda chosen: chosen.name)
@pytest.mark.parametrize("executor", ON_ONE_WORKER)
def test_property(executor: type[Executor], chosen: Property) -> None:
    try:
        chosen.check(suite_of(executor))
    except InapplicableError as reason:
        pytest.fail(f"every property says something about every executor here, but: {reason}")


@pytest.mark.sweep
@pytest.mark.parametrize("executor", ON_ONE_WORKER)
def test_all_synchronisation_between_ranks_is_missed(executor: type[Executor]) -> None:
    assert "all synchronisation between ranks" in deletions_of(executor).noticed


@pytest.mark.sweep
@pytest.mark.parametrize("executor", ON_ONE_WORKER)
def test_of_an_exchange_only_answers_could_go(executor: type[Executor]) -> None:
    """Where other steps order the same, an exchange's Ack or DataAck orders nothing more: over
    RDMA, a step of reduce-scatter ends with a DataAck that the all-gather's imply.
    """
    found = deletions_of(executor).unnoticed.values()
    exchanged = {"Ack", "DataAck"} if executor.__name__.endswith("Comm") else set()
    assert {each.mutant.words.partition(" ")[0] for each in found} <= exchanged
