"""Models of machines against published figures that they were not, or not only, fitted to."""

import pytest

from hccl_py.call.call_spec import CallSpec, ClusterSpec
from hccl_py.cli.options import CallOptions
from hccl_py.cli.request import CallRequest
from hccl_py.clocks.cost import COSTS, MACHINES
from hccl_py.simulator import CostModel, simulate
from hccl_py.simulator.entry import NETWORKS, Network
from hccl_py.tuning.compare import compare
from hccl_py.tuning.points import Point

A3 = "atlas-900-a3"
MB = 1 << 20


def took(network: Network, size: int, op: str, **place: object) -> float:
    """Return the model's time of a call on A3 as HCCL's rules run it."""
    request = CallRequest(CallOptions(op, topology=A3, **place))  # type: ignore[arg-type]
    program = request.plan(request.op(size)).program
    return simulate(program, request.topology, network=network).total_us


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize(("servers", "devices", "gbps"), [(1, 4, 123.5), (2, 1, 119.7)])
def test_a_message_takes_as_long_as_hixl_s_write(
    network: Network, servers: int, devices: int, gbps: float
) -> None:
    found = took(network, 8 * MB, "send_recv", servers=servers, devices=devices)
    assert found == pytest.approx(8 * MB / gbps / 1e3, rel=0.05)


@pytest.mark.parametrize("network", NETWORKS)
def test_an_all_reduce_of_a_gibibyte_on_128_ranks(network: Network) -> None:
    found = took(network, 1 << 30, "all_reduce", servers=8, devices=16, dtype="bf16")
    assert found == pytest.approx(10_442, rel=0.1)


@pytest.mark.sweep
@pytest.mark.parametrize("op", ["all_gather", "all_reduce", "reduce_scatter", "broadcast"])
def test_what_hccl_s_rules_choose_is_near_the_fastest(op: str) -> None:
    cluster = ClusterSpec(topology=A3, servers=1, devices=16)
    call = CallSpec(op=op, bytes=256 * MB, cluster=cluster)
    found = compare(Point(call=call, cost=CostModel.of(A3)), [256 * MB])
    (fastest,), (chosen,) = found.winners.values(), found.hccl.values()
    assert fastest.time_us <= chosen.time_us < 1.2 * fastest.time_us


def test_models_of_machines_by_name() -> None:
    assert list(COSTS) == list(MACHINES)
    assert len(COSTS) == len(MACHINES)
    assert [COSTS[name].name for name in MACHINES] == list(MACHINES)
    assert "atlas-900-a4" not in COSTS
