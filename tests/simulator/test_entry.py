"""The door to the simulators refuses what does not fit together."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import hccl_py as hccl
from hccl_py.clocks.cost import CostModel
from hccl_py.errors import ParameterError
from hccl_py.program.program import Program
from hccl_py.simulator import entry, simulate_tasks
from hccl_py.simulator.batches import simulate_batches
from hccl_py.simulator.contended import simulate_contended
from hccl_py.simulator.entry import Network
from hccl_py.topology import Topology, topology_of
from tests.recording import op_of, recorded

PROGRAM = recorded("AllGatherComm", op_of("all_gather"), 4)


def test_the_package_can_be_called() -> None:
    cost = CostModel.of("atlas-800t-a2")
    wanted = simulate_tasks(PROGRAM, topology_of(4), cost).total_us
    assert hccl.simulate(PROGRAM, topology_of(4)).total_us == wanted
    assert hccl.simulate(PROGRAM, topology_of(4), cost, network="contended").total_us == wanted


@pytest.mark.parametrize(
    ("topology", "network", "message"),
    [
        (topology_of(8), "uncontended", "The program has 4 ranks, the topology 8."),
        (topology_of(2), "contended", "The program has 4 ranks, the topology 2."),
        ("ring", "contended", "topology is 'ring'."),
        (topology_of(4), "contendet", "network is 'contendet'."),
    ],
)
def test_what_does_not_fit(topology: Any, network: Any, message: str) -> None:
    with pytest.raises(ParameterError) as error:
        hccl.simulate(PROGRAM, topology, network=network)
    assert error.value.message == message
    assert error.value.hint


def test_large_programs_have_a_total_without_their_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """By batches, or by ranks that stand for others; columns are those of the tasks."""
    torus = topology_of(preset="torus:3x3")
    cases: list[tuple[Program, Topology, Network, str]] = [
        (PROGRAM, topology_of(4), "uncontended", "batches"),
        (PROGRAM, topology_of(4), "contended", "batches"),
        (recorded("RunAlltoAllDirectFullmesh", op_of("all_to_all"), torus), torus, "contended", ""),
    ]
    for program, topology, network, walk in cases:
        small = hccl.simulate(program, topology, network=network)
        assert small.walk == "tasks"
        with monkeypatch.context() as patch:
            patch.setattr(entry, "FEW_TASKS", 10)
            patch.setattr("hccl_py.simulator.contended.entry._MANY", 10)
            again = replace(program)
            large = hccl.simulate(again, topology, network=network)
            assert large.total_us == pytest.approx(small.total_us, rel=1e-12)
            assert "tasks" not in vars(again)
        assert large.walk == (walk or "classes")
        assert np.allclose(large.start_us, small.start_us, rtol=1e-12)
        assert np.allclose(large.end_us, small.end_us, rtol=1e-12)
        assert np.allclose(large.effect_us, small.effect_us, rtol=1e-12)
        assert np.array_equal(large.behind, small.behind)
        assert np.array_equal(large.critical_path().rows, small.critical_path().rows)
        with monkeypatch.context() as patch:
            patch.setattr(entry, "FEW_TASKS", 10)
            asked = hccl.simulate(program, topology, network=network, expand=True)
            counting = hccl.simulate(program, topology, network=network, notifies="counting")
        assert (asked.walk, counting.walk) == ("tasks", "tasks")
        assert np.array_equal(asked.effect_us, small.effect_us)


@pytest.mark.parametrize("simulator", [simulate_tasks, simulate_batches, simulate_contended])
def test_arguments_in_the_order_of_before(simulator: Any) -> None:
    cost = CostModel.of("study")
    with pytest.raises(ParameterError, match="A cost model stands where the topology") as error:
        simulator(PROGRAM, cost, topology_of(4))
    assert error.value.hint == "The order is (program, topology, cost, slow)."
    with pytest.raises(ParameterError, match="topology is CostModel"):
        hccl.simulate(PROGRAM, cost, topology_of(4))  # type: ignore[arg-type]
