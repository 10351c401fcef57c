"""Times that are held out are predicted with the model that is fitted to the others."""

from dataclasses import replace

import pytest

from hccl_py.errors import ParameterError
from hccl_py.fit.parameters import Parameter
from hccl_py.fit.prediction import fit_and_predict, parse_parameters, program_parameters
from hccl_py.simulator import CostModel
from tests.fit.test_fit_programs import BASE, programs, times

TRUTH = BASE.model_copy(update={"task_us": 3.0})


def test_times_held_out_are_predicted() -> None:
    calls = programs(("AllGatherMeshOpbaseExecutor",))
    true_us = times(calls, TRUTH).tolist()
    measured = [replace(call, time_us=us) for call, us in zip(calls, true_us, strict=True)]
    asked = parse_parameters("task_us")
    found = fit_and_predict(measured, [False, True, False], BASE, asked, "contended")
    assert found.fit.cost.task_us == pytest.approx(3.0)
    assert found.model_us == pytest.approx(true_us)
    assert found.weights[1] == 1.0
    assert found.fit.cost.name == "fitted-atlas-800t-a2"
    assert isinstance(found.fit.cost, CostModel)


def test_parameters_of_programs_and_by_name() -> None:
    calls = programs(("AllGatherMeshOpbaseExecutor",))
    names = [p.name for p in program_parameters(calls, "contended")]
    assert names[-3:] == ["copy_gbps", "task_us", "memory_gbps"]
    assert "memory_gbps" not in [p.name for p in program_parameters(calls, "uncontended")]
    assert parse_parameters("hccs.gbps,task_us") == [
        Parameter("hccs", "gbps"),
        Parameter("", "task_us"),
    ]
    with pytest.raises(ParameterError, match="--parameters has task_us twice"):
        parse_parameters("task_us,hccs.gbps,task_us")
