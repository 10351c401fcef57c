"""Contended times of flows that begin and end at any time, against rates found anew for all of them
at every change.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.program.program import Program
from hccl_py.simulator import CostModel, Stragglers, simulate_contended, simulate_tasks
from hccl_py.simulator.contended import Contention
from hccl_py.topology import Topology, topology_of
from tests.recording import op_of, recorded
from tests.simulator.fair_shares import Job, fair_ends
from tests.simulator.moves import PLAIN, Move, Tangle, moving

COST = PLAIN.model_copy(update={"task_us": 0.75})
SLOW = ("rank=1:1.5x", "rank=3:2.75x")


def jobs_of(
    moves: list[Move], topology: Topology, slow: Stragglers, *, on_main: bool
) -> tuple[list[Job], np.ndarray]:
    """Return what moves are, rank by rank as their program has them, and capacities of links; a
    slow rank starts its tasks later and is slower on the way.
    """
    network, factor = topology.network, slow.of_ranks(topology.size)
    assert network is not None
    numbers: dict[int, int] = {}
    jobs = []
    for stream, move in sorted(enumerate(moves), key=lambda numbered: numbered[1].rank):
        here, there, by_rdma = np.array([move.rank]), np.array([move.peer]), np.zeros(1, np.bool_)
        out, back = (network.routes(*ways, by_rdma) for ways in ((here, there), (there, here)))
        taken = out if move.writes else back
        slowest = (network.rates(taken.link, COST).gbps / taken.shares).min() * 1e3
        _, links, share = taken
        route = [numbers.setdefault(int(link), len(numbers)) for link in links]
        shares = () if share is None else share.tolist()
        by, times = move.rank if on_main else stream, float(factor[move.rank])
        wait = COST.task_us * times
        jobs.append(Job(by, route, move.kb * 1e3, slowest / times, wait, shares))
    return jobs, network.rates(np.array(list(numbers)), COST).gbps * 1e3


def assert_fair(
    moves: list[Move], topology: Topology, slow: Stragglers, *, on_main: bool = False
) -> Program:
    """Hold the end of every move to the reference's."""
    program = moving(moves, topology, on_main=on_main)
    found = simulate_contended(program, topology, COST, slow).effect_us
    wanted = fair_ends(*jobs_of(moves, topology, slow, on_main=on_main))
    assert found.tolist() == pytest.approx(wanted, rel=1e-9)
    return program


PAIRS = st.tuples(st.integers(0, 4), st.integers(1, 4), st.integers(1, 40), st.booleans())
MOVES = st.lists(
    PAIRS.map(lambda p: Move(p[0], (p[0] + p[1]) % 5, p[2], p[3])), min_size=1, max_size=24
)
TANGLES = st.builds(
    Tangle,
    st.just(5),
    st.lists(st.sampled_from([0.25, 0.7, 1.0, 1.5, 4.0]), min_size=1, max_size=8),
    st.integers(0, 1000),
    spread=st.booleans(),
)


@given(moves=MOVES, network=TANGLES, slow=st.sampled_from([(), SLOW]), on_main=st.booleans())
def test_rates_are_those_of_all_flows_growing_alike(
    moves: list[Move], network: Tangle, slow: tuple[str, ...], on_main: bool
) -> None:
    assert_fair(moves, network.topology, Stragglers.parse(slow), on_main=on_main)


def test_shares_of_links_count_in_compiled_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hccl_py.program.kernels.WORTH_COMPILING", 0)
    moves = [Move(a, b, 10 * a + b + 1) for a in range(5) for b in range(5) if a != b]
    topology = Tangle(5, [0.25, 0.7, 1.0, 4.0], 7, spread=True).topology
    program = assert_fair(moves, topology, Stragglers.parse(SLOW))
    whole = Tangle(5, [0.25, 0.7, 1.0, 4.0], 7).topology
    assert simulate_contended(program, topology, COST).total_us < 0.9 * (
        simulate_contended(program, whole, COST).total_us
    )


@pytest.mark.sweep
@pytest.mark.parametrize(
    "network",
    [
        *("torus:4x4", "fat-tree:4,oversubscription=3", "torus:2x2x4"),
        *("torus:4x4,spray=all", "fat-tree:4,oversubscription=3,spray=all"),
    ],
)
@pytest.mark.parametrize("seed", range(4))
def test_uneven_flows_of_all_pairs_at_once(
    network: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of 240 flows ends at a time of its own, and moves the bottlenecks of others."""
    random = np.random.default_rng(seed)
    pairs = random.permutation([(a, b) for a in range(16) for b in range(16) if a != b])
    moves = [Move(int(a), int(b), int(random.integers(1, 500))) for a, b in pairs]
    topology, slow = topology_of(preset=network), Stragglers.parse(SLOW)
    program = assert_fair(moves, topology, slow)
    plain = simulate_contended(program, topology, COST, slow)
    monkeypatch.setattr("hccl_py.program.kernels.WORTH_COMPILING", 0)
    assert_fair(moves, topology, slow, on_main=bool(seed % 2))
    compiled = simulate_contended(program, topology, COST, slow)
    assert np.array_equal(compiled.effect_us, plain.effect_us)


@pytest.mark.parametrize(
    ("executor", "op", "network", "wanted"),
    [
        ("AllReduceComm", "all_reduce", "fat-tree:4,oversubscription=4", False),
        ("AllReduceComm", "all_reduce", "torus:4x4", False),
        ("AllGatherMeshOpbaseExecutor", "all_gather", "torus:4x4", True),
        ("AllGatherMeshOpbaseExecutor", "all_gather", "mesh", False),
    ],
)
def test_batches_say_whether_links_may_be_shared(
    executor: str, op: str, network: str, wanted: bool
) -> None:
    topology = topology_of(16 if network == "mesh" else None, preset=network)
    program, cost = recorded(executor, op_of(op, 4096), topology), CostModel.of("mesh")
    assert Contention(program, topology, cost).shares_links is wanted
    alone = simulate_tasks(program, topology, cost)
    shared = simulate_contended(program, topology, cost)
    assert (shared.total_us > alone.total_us * 1.01) is wanted
    if not wanted:
        assert np.array_equal(shared.effect_us, alone.effect_us)


def test_memory_is_shared_by_streams_that_copy() -> None:
    topology = topology_of(4)
    cost = PLAIN.model_copy(update={"copy_gbps": 4.0, "memory_gbps": 4.0})
    copies = [Move(0, 0, 8), Move(0, 0, 8)]
    assert Contention(moving(copies, topology), topology, cost).shares_links
    one_by_one = moving(copies, topology, on_main=True)
    assert not Contention(one_by_one, topology, cost).shares_links
    endless = cost.model_copy(update={"memory_gbps": None})
    assert not Contention(moving(copies, topology), topology, endless).shares_links
