"""Lower bounds: exact where an algorithm is the best there is, and never above any executor."""

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_py.call.config import GROUP_NAME, Config
from hccl_py.clocks.stragglers import Stragglers
from hccl_py.communicator.planning import Planner
from hccl_py.enums import Mode
from hccl_py.operators import OPERATORS
from hccl_py.plugins.discovery import installed_executors
from hccl_py.simulator import CostModel, simulate, simulate_batches
from hccl_py.simulator.bounds import MachineLimits, lower_bound
from hccl_py.simulator.load import busiest_us
from hccl_py.topology import Topology, topology_of
from hccl_py.topology.networks.build import topology_from
from hccl_py.topology.networks.models import NetworkModel
from hccl_py.topology.presets import PRESETS
from hccl_py.tuning.candidates import candidates
from tests.recording import filled, op_of, recorded

MACHINES: tuple[dict[str, Any], ...] = (
    {"ranks": 2},
    {"ranks": 5},
    {"servers": 2, "devices": 3},
    {"servers": 4, "devices": 1},
    {"preset": "atlas-900-a3", "ranks": 2},
    {"preset": "atlas-900-a3", "superpods": 2, "servers": 2, "devices": 2},
    {"preset": "atlas-800-9000", "ranks": 8},
    {"preset": "300i-duo", "ranks": 4},
)


@cache
def machine(number: int) -> tuple[Topology, CostModel, MachineLimits]:
    topology = topology_of(**MACHINES[number])
    cost = CostModel.of(topology.product.name).formula()
    return topology, cost, MachineLimits.of(topology, cost)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(sorted(OPERATORS)),
    st.integers(0, len(MACHINES) - 1),
    st.sampled_from((1, 100, 3000, 1 << 18)),
    st.sampled_from(list(Mode)),
    st.data(),
)
def test_no_executor_is_faster(
    name: str, number: int, count: int, mode: Mode, data: st.DataObject
) -> None:
    topology, cost, limits = machine(number)
    op = filled(op_of(name, count, mode=mode), topology.size)
    found = candidates(op, topology, Config(), installed_executors())
    one = data.draw(st.sampled_from(found))
    planner = Planner(topology, Config(), installed_executors(), GROUP_NAME)
    program = planner.plan(op, one.executor, one.levels).program
    alone = simulate_batches(program, topology, cost).total_us
    shared = simulate(program, topology, cost, network="contended").total_us
    for spent in (max(alone, busiest_us(program, topology, cost)), shared):
        assert limits.bound(op).time_us <= spent * (1 + 1e-12) + 1e-9


def test_a_mesh_gathers_as_fast_as_can_be() -> None:
    topology, cost = topology_of(8), CostModel.of("study").formula()
    op = op_of("all_gather", 128 * 1024)
    spent = simulate_batches(
        recorded("AllGatherMeshOpbaseExecutor", op, topology, 1 << 24), topology, cost
    ).total_us
    found = lower_bound(op, topology, cost)
    assert found.time_us == pytest.approx(spent, rel=1e-12)
    assert (found.latency_us, found.log_us) == (10, 30)
    assert found.bandwidth_us == pytest.approx(op.size / 18.3e3)


def test_an_all_reduce_needs_every_element_to_travel_twice() -> None:
    cost = CostModel.of("study")
    found = lower_bound(op_of("all_reduce", 1 << 20), topology_of(8), cost)
    assert found.bandwidth_us == pytest.approx(2 * 7 / 8 * (4 << 20) / (7 * 18.3e3))
    assert found.binds == "what goes into all ranks together"


def test_a_server_is_left_by_its_ports_only() -> None:
    """Nothing but RoCE joins them."""
    cost = CostModel.of("study")
    op = filled(op_of("all_to_all", 1 << 20), 16)
    found = lower_bound(op, topology_of(16), cost)
    across = 8 * 8 * (4 << 20) / (8 * 20e3)
    assert found.bandwidth_us == pytest.approx(across)
    assert "server" in found.binds


def test_one_rank_needs_nothing() -> None:
    found = lower_bound(op_of("all_reduce", 1 << 20), topology_of(1), CostModel.of(""))
    assert (found.time_us, found.log_us) == (0, 0)


def test_a_barrier_is_latency_alone() -> None:
    found = lower_bound(op_of("barrier", 0), topology_of(8), CostModel.of(""))
    assert (found.time_us, found.binds) == (10, "latency alone")


def test_one_message_is_no_collective() -> None:
    found = lower_bound(op_of("send_recv", 100), topology_of(8), CostModel.of(""))
    assert found.log_us == found.latency_us == 10


def test_bytes_that_cost_nothing_bound_nothing() -> None:
    cost = CostModel.of("")
    free = cost.model_copy(
        update={
            name: getattr(cost, name).model_copy(update={"gbps": None})
            for name in ("hccs", "roce", "pcie", "sio")
        }
    )
    found = lower_bound(op_of("all_reduce", 1 << 20), topology_of(16), free)
    assert (found.bandwidth_us, found.time_us) == (0, 10)


def test_of_many_ranks_some_are_looked_at() -> None:
    cost = CostModel.of("")
    few, many = (lower_bound(op_of("all_gather", 64), topology_of(p), cost) for p in (1024, 2048))
    assert many.bandwidth_us == pytest.approx(2 * few.bandwidth_us, rel=0.01)


def test_stragglers_are_not_counted() -> None:
    topology, cost = topology_of(4), CostModel.of("")
    op = op_of("all_gather", 1 << 16)
    program = recorded("AllGatherComm", op, topology)
    slow = simulate(program, topology, cost, slow=Stragglers.parse(["rank=1:2x"])).total_us
    assert lower_bound(op, topology, cost).time_us < slow / 2


def test_a_part_of_two_ranks_may_bind() -> None:
    """RoCE ports let less through than these and HCCS together."""
    cost = CostModel.of("study")
    op = filled(op_of("all_to_all", 1 << 20), 8)
    found = lower_bound(op, topology_of(servers=4, devices=2), cost)
    assert found.bandwidth_us == pytest.approx(2 * 6 * (4 << 20) / (2 * 20e3))
    assert "server" in found.binds


def test_the_nearest_way_may_be_that_to_the_peer() -> None:
    there = {"from": "a", "to": "b", "gbps": 1, "duplex": False, "latency_us": 2}
    back = {"from": "b", "to": "a", "gbps": 1, "duplex": False, "latency_us": 7}
    named = {"ranks": [{"name": "a"}, {"name": "b"}], "links": [there, back]}
    topology = topology_from(NetworkModel.model_validate(named), "one way")
    cost = CostModel.of("")
    found = lower_bound(op_of("all_gather", 64), topology, cost)
    assert found.latency_us == cost.hccs.alpha_us + 2


def test_the_last_of_many_ranks_is_looked_at() -> None:
    """It sits in a server of its own, so that all it gets comes through one port."""
    topology = Topology(PRESETS["atlas-800t-a2"], (8,) * 128 + (1,))
    op = op_of("all_gather", 1 << 10)
    found = lower_bound(op, topology, CostModel.of(""))
    assert found.bandwidth_us == pytest.approx(1024 * op.size / 20e3)
    assert found.binds == "what goes into rank 1024"


def test_a_link_for_sdma_and_rdma_need_not_rest_for_any_latency() -> None:
    """RDMA sends before SDMA's first Ack has come, and SDMA after RDMA's last bytes."""
    ranks = [{"name": name, "server": server} for name, server in (("a", 0), ("b", 0), ("c", 1))]
    links = [{"from": name, "to": "hub", "gbps": 1} for name in "abc"]
    model = {
        "product": "atlas-800t-a2",
        "ranks": ranks,
        "switches": [{"name": "hub"}],
        "links": links,
    }
    topology = topology_from(NetworkModel.model_validate(model), "shared")
    assert topology.has_rdma
    cost = CostModel.of("study")
    op = filled(op_of("all_to_all", 1 << 20), 3)
    found = lower_bound(op, topology, cost)
    assert found.time_us == pytest.approx(2 * (4 << 20) / 1e3)
    program = recorded("RunAlltoAllVFullMesh", op, topology)
    shared = simulate(program, topology, cost, network="contended").total_us
    assert busiest_us(program, topology, cost) <= shared
    assert found.time_us <= shared
