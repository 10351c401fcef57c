"""Terms of the cost model that are off by default, each by hand and by every simulation."""

import math

import pytest

from hccl_py.enums import TaskKind
from hccl_py.program.program import Program
from hccl_py.simulator import (
    CostModel,
    simulate,
    simulate_batches,
    simulate_contended,
    simulate_tasks,
)
from hccl_py.simulator.entry import NETWORKS, Network
from hccl_py.simulator.fit import Parameter, TimedCall, fit
from hccl_py.topology import Topology, topology_of
from tests.program.authors import Notifies
from tests.recording import BY_NAME, op_of, recorded
from tests.simulator.moves import PLAIN

PAIR = topology_of(2)


def totals(program: Program, topology: Topology, cost: CostModel) -> list[float]:
    """Return the time by every simulation."""
    return [
        simulate_tasks(program, topology, cost).total_us,
        simulate_batches(program, topology, cost).total_us,
        simulate_batches(program, topology, cost, lockstep=False).total_us,
        simulate_contended(program, topology, cost).total_us,
    ]


@pytest.mark.parametrize(("local", "wanted"), [(None, 2.0), (0.0, 0.0), (5.0, 5.0)])
def test_notifies_inside_a_rank_may_take_another_time(local: float | None, wanted: float) -> None:
    cost = PLAIN.model_copy(update={"notify_us": 2.0, "local_notify_us": local})
    inside = recorded(Notifies("post", "wait"), op_of("all_gather"), PAIR)
    assert totals(inside, PAIR, cost) == [wanted] * 4
    parts = simulate_tasks(inside, PAIR, cost).critical_path().parts()
    assert (parts.notify_us, parts.alpha_us, parts.handling_us) == (wanted, 0, 0)
    between = recorded(Notifies("tx_data_signal", "rx_data_signal"), op_of("all_gather"), PAIR)
    assert totals(between, PAIR, cost) == [2.0] * 4
    both = recorded(Notifies("post", "wait", "tx_ack", "rx_ack"), op_of("all_gather"), PAIR)
    assert totals(both, PAIR, cost) == [max(wanted, PLAIN.hccs.alpha_us)] * 4


def test_the_formulas_know_no_notifies_inside_a_rank() -> None:
    cost = PLAIN.model_copy(update={"notify_us": 2.0, "local_notify_us": 5.0}).formula()
    assert cost.inside_us == cost.notify_us == 0


def measured(cost: CostModel, network: Network) -> list[TimedCall]:
    """Return what some executors take, with forks and without."""
    names = ("AllGatherMeshOpbaseExecutor", "AllGatherComm", "AllReduceMeshOpbaseLoopExecutor")
    topology, found = topology_of(4), []
    for name in names:
        for count in (64, 1 << 14, 1 << 20):
            program = recorded(name, op_of(str(BY_NAME[name].op), count), topology, 1 << 26)
            took = simulate(program, topology, cost, network=network).total_us
            found.append(TimedCall(program, topology, took))
    return found


@pytest.mark.parametrize("network", NETWORKS)
def test_what_notifies_inside_a_rank_take_is_fitted(network: Network) -> None:
    base = CostModel.of("atlas-800t-a2")
    truth = {"notify_us": 1.5, "local_notify_us": 4.0}
    asked = [Parameter.parse(name) for name in (*truth, "hccs.gbps")]
    found = fit(measured(base.model_copy(update=truth), network), base, asked, network)
    values = {e.parameter.name: e.value for e in found.estimates}
    assert values == pytest.approx({**truth, "hccs.gbps": base.hccs.gbps}, rel=1e-3)
    alike = measured(base.model_copy(update={"notify_us": 1.5}), network)
    cost = fit(alike, base, [asked[0], asked[2]], network).cost
    assert cost.local_notify_us is None
    assert cost.inside_us == cost.notify_us == pytest.approx(1.5, rel=1e-3)


@pytest.mark.parametrize("reduce_gbps", [4.0, 1.0, 0.25, None])
@pytest.mark.parametrize(
    "topology", [topology_of(4, preset="ring"), topology_of(servers=4, devices=1)]
)
def test_reductions_may_overlap_their_transfers(
    reduce_gbps: float | None, topology: Topology
) -> None:
    """A ring reduces a quarter in each of three steps, and passes quarters on in three more."""
    over = {"reduce_gbps": reduce_gbps, "inline_reductions": "longest", "task_us": 0.0}
    cost = PLAIN.model_copy(update=over)
    program = recorded("AllReduceComm", op_of("all_reduce", 4 * 32 * 100), topology)
    kinds = set(program.tasks.kind.tolist())
    assert kinds & {TaskKind.READ_REDUCE, TaskKind.RDMA_WRITE_REDUCE}
    beta, gamma = 3 * 12.8, 3 * 12.8 / (reduce_gbps or math.inf)
    alpha = (2 * 3 + 1) * PLAIN.hccs.alpha_us
    wanted = alpha + beta + max(beta, gamma)
    assert totals(program, topology, cost) == pytest.approx([wanted] * 4)
    parts = simulate_tasks(program, topology, cost).critical_path().parts()
    assert parts.link_us == pytest.approx(2 * beta)
    assert parts.reduce_us == pytest.approx(max(gamma - beta, 0))
    added = cost.model_copy(update={"inline_reductions": "sum"})
    assert totals(program, topology, added) == pytest.approx([alpha + 2 * beta + gamma] * 4)
    assert cost.formula().inline_reductions == "sum"
