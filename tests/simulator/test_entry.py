"""The door to the simulators refuses what does not fit together."""

from typing import Any

import pytest

import hccl_py as hccl
from hccl_py.clocks.cost import CostModel
from hccl_py.errors import ParameterError
from hccl_py.simulator import simulate_tasks
from hccl_py.simulator.batches import simulate_batches
from hccl_py.simulator.contended import simulate_contended
from hccl_py.topology import topology_of
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


@pytest.mark.parametrize("simulator", [simulate_tasks, simulate_batches, simulate_contended])
def test_arguments_in_the_order_of_before(simulator: Any) -> None:
    cost = CostModel.of("atlas-800t-a2")
    with pytest.raises(ParameterError, match="A cost model stands where the topology") as error:
        simulator(PROGRAM, cost, topology_of(4))
    assert error.value.hint == "The order is (program, topology, cost, slow)."
    with pytest.raises(ParameterError, match="topology is CostModel"):
        hccl.simulate(PROGRAM, cost, topology_of(4))  # type: ignore[arg-type]
