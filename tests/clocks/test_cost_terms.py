"""Terms of the cost model that are off by default, each by hand and by every simulation."""

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.clocks.durations import Durations
from hccl_py.clocks.jitter import Jitter
from hccl_py.enums import TaskKind
from hccl_py.fit.fit import fit
from hccl_py.fit.parameters import Parameter, TimedCall
from hccl_py.plugins.executor import ops_of
from hccl_py.program.program import Program
from hccl_py.simulator import (
    CostModel,
    LinkCost,
    Stragglers,
    simulate,
    simulate_batches,
    simulate_contended,
    simulate_tasks,
)
from hccl_py.simulator.batches import time_ranks
from hccl_py.simulator.entry import NETWORKS, Network
from hccl_py.simulator.steady import steady_state
from hccl_py.simulator.tasks import TaskCosts
from hccl_py.topology import Topology, topology_of
from hccl_py.topology.presets import PRESETS
from tests.program.authors import Notifies
from tests.recording import BY_NAME, op_of, recorded
from tests.simulator.costs import COST
from tests.simulator.moves import PLAIN, Move, Tangle, moving
from tests.simulator.naive_contended import naive_contended
from tests.simulator.naive_costs import factor_by_hand

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
        for count in (64, 1 << 14):
            program = recorded(name, op_of(str(BY_NAME[name].op), count), topology, 1 << 26)
            took = simulate(program, topology, cost, network=network).total_us
            found.append(TimedCall(program, topology, took))
    return found


@pytest.mark.parametrize("network", NETWORKS)
def test_what_notifies_inside_a_rank_take_is_fitted(network: Network) -> None:
    base = CostModel.of("study")
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


JITTERY = CostModel(**(COST.model_dump() | {"jitter": 0.3, "jitter_seed": 20_260_801}))


@pytest.mark.parametrize("seed", [0, 1, 2**31 - 1])
def test_every_task_takes_longer_by_its_own_factor(seed: int) -> None:
    cost = JITTERY.model_copy(update={"jitter_seed": seed})
    topology = topology_of(servers=2, devices=2)
    program = recorded("AllReduceMeshExecutor", op_of("all_reduce", 5000), topology)
    tasks = program.tasks
    factors = [
        factor_by_hand(seed, *where, cost.jitter)
        for where in zip(
            tasks.rank.tolist(), tasks.stream.tolist(), tasks.index.tolist(), strict=True
        )
    ]
    plain = TaskCosts.of(program, Durations(program, topology, COST))
    found = TaskCosts.of(program, Durations(program, topology, cost))
    for name in ("on_stream", "after", "task_us"):
        wanted = getattr(plain, name) * factors
        assert np.array_equal(getattr(found, name), wanted)
    assert np.unique(np.round(factors, 12)).size == len(factors)


def test_factors_are_spread_as_the_model_says() -> None:
    program = recorded("AllReduceComm", op_of("all_reduce", 1 << 14), topology_of(64))
    jitter = Jitter.of(program, JITTERY)
    factors = np.asarray(jitter.of_rows(program, slice(None)))
    assert len(factors) > 20_000
    assert factors.std() == pytest.approx(0.3, rel=0.02)
    assert factors.mean() == pytest.approx(1 + 0.3 * 0.882, rel=0.01)
    assert 1 <= factors.min() < 1.0001
    assert 1 + 0.3 * 3.5 < factors.max() <= 1 + jitter.spread
    others = Jitter.of(program, JITTERY.model_copy(update={"jitter_seed": 1}))
    assert abs(np.corrcoef(factors, others.of_rows(program, slice(None)))[0, 1]) < 0.03
    one, other = (factors[tasks_of(program, rank)[:500]] for rank in (0, 1))
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.2


def tasks_of(program: Program, rank: int) -> npt.NDArray[np.intp]:
    """Return the rows of a rank's first stream."""
    return np.flatnonzero((program.tasks.rank == rank) & (program.tasks.stream == 0))


@pytest.mark.parametrize("compiles", [False, True])
@pytest.mark.parametrize(
    ("name", "servers"),
    [("AllReduceMeshExecutor", (2, 2)), ("AllGatherComm", (3,)), ("RunAlltoAllVFullMesh", (4,))],
)
def test_chance_is_the_same_in_every_simulation(
    name: str, servers: tuple[int, ...], compiles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if compiles:
        monkeypatch.setattr("hccl_py.program.kernels.WORTH_COMPILING", 0)
    topology = Topology(PRESETS["atlas-800t-a2"], servers)
    program = recorded(name, op_of(ops_of(BY_NAME[name]())[0], 5000), topology)
    slow = Stragglers.parse(["rank=1:3x"])
    alone = simulate_tasks(program, topology, JITTERY, slow)
    queue = program.tasks.rank.astype(np.int64) * program.streams + program.tasks.stream
    ends = np.zeros(program.ranks * program.streams)
    np.maximum.at(ends, queue, alone.end_us)
    for lockstep in (True, False):
        clocks = simulate_batches(program, topology, JITTERY, slow, lockstep=lockstep)
        assert np.array_equal(clocks.end_us.reshape(-1), ends)
        assert clocks.lockstep == 0
    by_rank = recorded(name, op_of(ops_of(BY_NAME[name]())[0], 5000), topology, by_rank=True)
    assert simulate_tasks(by_rank, topology, JITTERY, slow).total_us == alone.total_us
    plain = simulate_tasks(program, topology, COST, slow)
    assert (alone.end_us >= plain.end_us).all()
    assert alone.total_us > plain.total_us
    assert sum(alone.critical_path().parts()) == pytest.approx(alone.total_us)
    wide = JITTERY.model_copy(
        update={"hccs": LinkCost(alpha_us=3.0, gbps=1.0, ports=8), "task_us": 0.0}
    )
    shared = simulate_contended(program, topology, wide, slow)
    if len(servers) == 1:  # a link for every pair
        assert shared.end_us == pytest.approx(
            simulate_tasks(program, topology, wide, slow).end_us, rel=1e-12
        )


@given(
    moves=st.lists(
        st.builds(Move, st.integers(0, 4), st.integers(0, 4), st.integers(0, 30), st.booleans()),
        min_size=1,
        max_size=12,
    ),
    seed=st.integers(0, 1000),
)
def test_contended_chance_is_that_of_the_naive_reference(moves: list[Move], seed: int) -> None:
    network = Tangle(5, [0.25, 1.5, 4.0], seed)
    cost = JITTERY.model_copy(update={"jitter_seed": seed, "memory_gbps": 12.0})
    program = moving(moves, network.topology, on_main=bool(seed % 2))
    found = simulate_contended(program, network.topology, cost)
    wanted = naive_contended(program, network.topology, cost)
    assert found.end_us == pytest.approx(wanted.end, rel=1e-7, abs=1e-7)
    assert found.effect_us == pytest.approx(wanted.effect, rel=1e-7, abs=1e-7)


def test_a_barrier_waits_for_the_slowest() -> None:
    """What all wait for at each step costs more of chance than what each does alone."""
    cost = PLAIN.model_copy(update={"jitter": 0.2, "jitter_seed": 3})
    ring = topology_of(32, preset="ring")
    program = recorded("AllReduceComm", op_of("all_reduce", 32 * 32), ring)
    found, plain = (simulate_tasks(program, ring, c).total_us for c in (cost, PLAIN))
    assert 1 + 1.5 * 0.882 * 0.2 < found / plain < 1 + Jitter.of(program, cost).spread
    assert cost.formula().jitter == 0
    assert simulate_tasks(program, ring, cost.formula()).total_us == pytest.approx(
        simulate_tasks(program, ring, PLAIN.formula()).total_us
    )


def test_passes_of_an_algorithm_are_never_alike() -> None:
    """Chance takes away the steady state by which some passes stand for all."""
    ring = topology_of(4, preset="ring")
    program = recorded("AllReduceComm", op_of("all_reduce", 1 << 18), ring, 1 << 15)
    assert program.rounds > 10
    for cost, is_steady in ((PLAIN, True), (PLAIN.model_copy(update={"jitter": 0.1}), False)):
        timeline = simulate_tasks(program, ring, cost)
        assert (steady_state(timeline, 1, 1, shares_links=False) is not None) == is_steady


def test_chance_of_some_ranks_is_that_of_all() -> None:
    topology = topology_of(servers=3, devices=2)
    program = recorded("AllReduceMeshExecutor", op_of("all_reduce", 5000), topology)
    found = time_ranks(program, topology, JITTERY, ranks=[1, 4], most=10_000)
    whole = simulate_tasks(program, topology, JITTERY)
    tasks, part = program.tasks, found.part.tasks
    rows = np.lexsort((tasks.index, tasks.stream, tasks.rank))
    rows = rows[np.isin(tasks.rank[rows], (1, 4))]
    order = np.lexsort((part.index, part.stream, part.rank))
    for name in ("start_us", "end_us", "effect_us"):
        assert np.array_equal(getattr(found, name)[order], getattr(whole, name)[rows])
    assert found.total_us == whole.total_us
