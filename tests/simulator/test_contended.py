"""Contended times: by hand, against a naive reference, and equal to uncontended ones where nothing
is shared.
"""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hccl_py.clocks.links import Links
from hccl_py.errors import DeadlockError
from hccl_py.program.program import Program
from hccl_py.simulator import (
    CostModel,
    LinkCost,
    SharedPort,
    Stragglers,
    Timeline,
    simulate_contended,
    simulate_tasks,
)
from hccl_py.simulator.contended.engine import run_events
from hccl_py.topology import Topology, topology_of
from hccl_py.topology.networks.product import MEDIA
from hccl_py.topology.presets import PRESETS
from tests.recording import BY_NAME, op_of, recorded, without
from tests.simulator.moves import PLAIN, Move, Tangle, moving
from tests.simulator.naive_contended import naive_contended
from tests.suited import SuitedCall, suited

COST = CostModel(
    name="test",
    hccs=LinkCost(alpha_us=3.0, gbps=1.0, ports=2),
    sio=LinkCost(alpha_us=1.0, gbps=3.0),
    pcie=LinkCost(alpha_us=5.0, gbps=0.7),
    roce=LinkCost(alpha_us=7.0, gbps=0.5),
    reduce_gbps=2.0,
    copy_gbps=10.0,
    notify_us=0.25,
    local_notify_us=0.375,
    post_us=0.0625,
    wait_us=0.03125,
    memory_gbps=12.0,
)
COLUMNS = ("start_us", "end_us", "effect_us")

MESH = topology_of(8)
ROCE = topology_of(servers=6, devices=1)
A3 = topology_of(servers=2, devices=16, preset="atlas-900-a3")
DUO = topology_of(4, preset="300i-duo")


def ends(program: Program, topology: Topology, cost: CostModel = PLAIN) -> list[float]:
    """Return when every move arrives, rank by rank."""
    return [round(t, 9) for t in simulate_contended(program, topology, cost).effect_us.tolist()]


def same(one: Timeline, other: Timeline) -> bool:
    """Whether all times agree to the last bit."""
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in COLUMNS)


def test_two_flows_on_one_link_take_twice_as_long() -> None:
    assert ends(moving([Move(0, 1, 5), Move(0, 1, 5)], MESH), MESH) == [10, 10]
    assert ends(moving([Move(0, 1, 2), Move(0, 1, 5)], MESH), MESH) == [4, 7]


@pytest.mark.parametrize("senders", [1, 2, 5])
def test_an_incast_of_k_takes_k_times(senders: int) -> None:
    pushes = [Move(rank, 0, 3, writes=True) for rank in range(1, senders + 1)]
    assert ends(moving(pushes, ROCE), ROCE) == [3 * senders] * senders
    pulls = [Move(0, rank, 3) for rank in range(1, senders + 1)]
    assert ends(moving(pulls, DUO), DUO) == [3 * senders] * senders if senders < 4 else True


def test_links_are_full_duplex() -> None:
    there_and_back = [Move(0, 1, 4, writes=True), Move(1, 0, 4, writes=True)]
    for topology in (MESH, ROCE, DUO):
        assert ends(moving(there_and_back, topology), topology) == [4, 4]
    a_read_goes_the_other_way = [Move(0, 1, 4), Move(0, 1, 4, writes=True)]
    assert ends(moving(a_read_goes_the_other_way, MESH), MESH) == [4, 4]
    assert ends(moving([Move(0, 1, 4), Move(1, 0, 4, writes=True)], MESH), MESH) == [8, 8]


def test_a_device_has_as_many_ports_as_the_model_says() -> None:
    cost = PLAIN.model_copy(update={"hccs": LinkCost(alpha_us=1, gbps=1, ports=7)})
    for peers, wanted in ((7, 6.0), (14, 12.0)):
        reads = [Move(0, 2 + k, 6) for k in range(peers)]
        assert ends(moving(reads, A3), A3, cost) == [wanted] * peers
    assert ends(moving([Move(0, 1, 6)], A3), A3, cost) == [1.5]  # between dies


def test_full_links_leave_the_rest_to_others() -> None:
    """Three flows leave rank 1, one of them to rank 0, which gets another one from rank 4."""
    three = [Move(1, peer, 6, writes=True) for peer in (0, 2, 3)]
    found = ends(moving([*three, Move(4, 0, 6, writes=True)], ROCE), ROCE)
    # 1/3 each, and 2/3 for the fourth until it is done at 9; nothing is left to gain then.
    assert found == [18, 18, 18, 9]


def test_writes_on_one_connection_follow_each_other() -> None:
    writes = [Move(0, 1, 3, writes=True), Move(0, 1, 4, writes=True)]
    assert ends(moving(writes, ROCE), ROCE) == [3, 7]
    assert ends(moving(writes, ROCE, on_main=True), ROCE) == [3, 7]


def test_overlapping_copies_share_memory_where_it_has_a_rate() -> None:
    copies = moving([Move(0, 0, 8), Move(0, 0, 8), Move(1, 1, 8)], MESH)
    cost = PLAIN.model_copy(update={"copy_gbps": 4.0})
    assert ends(copies, MESH, cost) == [2, 2, 2]
    assert ends(copies, MESH, cost.model_copy(update={"memory_gbps": 4.0})) == [4, 4, 2]
    assert ends(copies, MESH, cost.model_copy(update={"memory_gbps": 1.0})) == [16, 16, 8]
    free = PLAIN.model_copy(update={"memory_gbps": 1.0})
    assert ends(copies, MESH, free) == [0, 0, 0]  # what takes no time alone takes none


def test_what_peers_read_and_write_takes_memory_of_both() -> None:
    cost = PLAIN.model_copy(update={"copy_gbps": 1.0, "memory_gbps": 1.0})
    shared = cost.model_copy(update={"memory_users": "all"})
    for moves, topology, alone, together in (
        ([Move(0, 1, 6), Move(0, 2, 6)], MESH, [6, 6], [12, 12]),  # into one memory
        ([Move(1, 0, 6), Move(2, 0, 6)], MESH, [6, 6], [12, 12]),  # out of one
        ([Move(0, 1, 6, writes=True), Move(1, 1, 6)], MESH, [6, 6], [12, 12]),
        ([Move(0, 1, 6), Move(2, 3, 6)], MESH, [6, 6], [6, 6]),
        ([Move(0, 1, 6, writes=True), Move(2, 0, 2, writes=True)], ROCE, [6, 2], [8, 4]),
    ):
        program = moving(moves, topology)
        assert ends(program, topology, cost) == alone
        assert ends(program, topology, shared) == together
        without = shared.model_copy(update={"memory_gbps": None})
        assert same(
            simulate_contended(program, topology, without), simulate_tasks(program, topology, cost)
        )
        assert same(
            simulate_tasks(program, topology, shared), simulate_tasks(program, topology, cost)
        )


def test_slow_ranks_and_links() -> None:
    reads = moving([Move(0, 1, 5), Move(0, 1, 5), Move(2, 3, 5)], MESH)
    for text, wanted in (("link=0-1:3x", [30, 30, 5]), ("rank=0:2x", [10, 10, 5])):
        slow = Stragglers.parse([text])
        found = simulate_contended(reads, MESH, PLAIN, slow).effect_us
        assert found.tolist() == pytest.approx(wanted)


def test_the_time_of_a_task_comes_before_its_flow() -> None:
    cost = PLAIN.model_copy(update={"task_us": 2.0})
    assert ends(moving([Move(0, 1, 5), Move(0, 1, 5)], MESH), MESH, cost) == [12, 12]
    writes = moving([Move(0, 1, 3, writes=True)] * 2, ROCE, on_main=True)
    timeline = simulate_contended(writes, ROCE, cost)
    assert timeline.end_us.tolist() == [2, 4]
    assert timeline.effect_us.tolist() == [5, 8]


def test_what_only_takes_time_to_start_shares_nothing() -> None:
    """Its links have a rate, but data takes no time over them."""
    cost = PLAIN.model_copy(update={"task_us": 2.0, "memory_gbps": 1.0})
    assert ends(moving([Move(0, 0, 5), Move(0, 0, 5)], MESH), MESH, cost) == [2, 2]
    free = cost.model_copy(update={"hccs": LinkCost(alpha_us=1, gbps=None)})
    assert ends(moving([Move(0, 1, 5), Move(0, 1, 5)], MESH), MESH, free) == [2, 2]


@pytest.mark.parametrize(
    ("executor", "topology"),
    [
        ("AllReduceComm", topology_of(9, preset="ring")),
        ("AllGatherComm", topology_of(servers=5, devices=1)),
        ("AllReduceComm", topology_of(servers=3, devices=4)),
        ("AllReduceMeshOpbaseLoopExecutor", topology_of(6)),
    ],
)
@pytest.mark.parametrize("slow", [(), ("rank=1:3x", "link=0-1:2.5x")])
def test_what_shares_nothing_takes_as_long_as_alone(
    executor: str, topology: Topology, slow: tuple[str, ...]
) -> None:
    program = recorded(executor, op_of(str(BY_NAME[executor].op), 12345), topology)
    cost = COST.model_copy(update={"memory_gbps": None})
    args = program, topology, cost, Stragglers.parse(slow)
    assert same(simulate_contended(*args), simulate_tasks(*args))


@given(
    call=suited(
        tuple(sorted(PRESETS)), st.sampled_from([(4,), (2, 2), (3, 1), (1, 1, 1)]), (5000,)
    ),
    task_us=st.sampled_from([0.0, 0.125]),
    memory=st.sampled_from(["local", "all"]),
    slow=st.sampled_from([(), ("rank=1:3x",), ("link=0-1:2x", "rank=0:1.5x")]),
    ports=st.lists(
        st.builds(
            SharedPort,
            links=st.lists(st.sampled_from(MEDIA), min_size=1, unique=True),
            gbps=st.sampled_from([0.4, 1.2, 2.5]),
        ),
        unique_by=lambda port: frozenset(port.links),
        max_size=2,
    ),
)
def test_executors_take_what_the_naive_reference_says(
    call: SuitedCall,
    task_us: float,
    memory: str,
    slow: tuple[str, ...],
    ports: list[SharedPort],
) -> None:
    program, topology = recorded(*call, 1 << 15), call.topology
    gbps = {"local": 12.0, "all": 1.5}[memory]  # less than what links carry
    over: dict[str, object] = {"task_us": task_us, "memory_users": memory, "memory_gbps": gbps}
    over["shared_ports"] = tuple(ports)
    cost = COST.model_copy(update=over)
    assert_naive(program, topology, cost, Stragglers.parse(slow))


MOVES = st.lists(
    st.builds(Move, st.integers(0, 4), st.integers(0, 4), st.integers(0, 30), st.booleans()),
    min_size=1,
    max_size=12,
)
TANGLES = st.builds(
    Tangle,
    st.just(5),
    st.lists(st.sampled_from([0.25, 1.0, 1.5, 4.0]), min_size=1, max_size=5),
    st.integers(0, 1000),
)


@given(
    moves=MOVES,
    network=TANGLES,
    on_main=st.booleans(),
    over=st.sampled_from(
        [{}, {"memory_users": "all"}, {"memory_users": "all", "memory_gbps": 0.75}]
    ),
)
def test_tangled_flows_take_what_the_naive_reference_says(
    moves: list[Move], network: Tangle, on_main: bool, over: dict[str, object]
) -> None:
    topology = network.topology
    program = moving(moves, topology, on_main=on_main)
    assert_naive(program, topology, COST.model_copy(update=over), Stragglers())


def assert_naive(program: Program, topology: Topology, cost: CostModel, slow: Stragglers) -> None:
    """Hold a program's times to those of the reference, in which no link is ever overfull."""
    found = simulate_contended(program, topology, cost, slow)
    wanted = naive_contended(program, topology, cost, slow)
    for mine, theirs in zip(COLUMNS, ("start", "end", "effect"), strict=True):
        assert getattr(found, mine) == pytest.approx(getattr(wanted, theirs), rel=1e-7, abs=1e-7)
    assert max(wanted.peaks.values(), default=0.0) <= 1 + 1e-9


@given(moves=MOVES, network=TANGLES)
def test_no_link_carries_more_than_it_can(moves: list[Move], network: Tangle) -> None:
    """Whatever begins and ends between two moments has gone over its links between them."""
    remote = [move for move in moves if move.rank != move.peer]
    assume(remote)
    topology = network.topology
    program = moving(remote, topology)
    timeline, tasks = simulate_contended(program, topology, COST), program.tasks
    source = np.where(tasks.kind == 1, tasks.peer, tasks.rank)
    target = np.where(tasks.kind == 1, tasks.rank, tasks.peer)
    routes = network.routes(source, target, np.zeros(len(tasks), np.bool_))
    for link in np.unique(routes.link):
        capacity = Links(topology, COST).capacities(np.array([link]))[0] * 1e3
        user = np.repeat(np.arange(len(tasks)), np.diff(routes.first))[routes.link == link]
        end, order = timeline.end_us[user], np.argsort(timeline.end_us[user])
        carried = np.cumsum(tasks.size[user][order])
        assert (carried <= capacity * end[order] * (1 + 1e-9) + 1e-6).all()


@given(
    sizes=st.lists(st.integers(1, 50), min_size=1, max_size=6),
    factors=st.tuples(st.floats(1, 20), st.floats(1, 20)).map(sorted),
)
def test_a_slower_link_ends_nothing_earlier(sizes: list[int], factors: list[float]) -> None:
    program = moving([Move(0, 1, size) for size in sizes], MESH)
    fast, slow = (
        simulate_contended(program, MESH, PLAIN, Stragglers.parse([f"link=0-1:{factor}x"]))
        for factor in factors
    )
    assert (fast.end_us <= slow.end_us * (1 + 1e-12)).all()
    assert fast.total_us == pytest.approx(sum(sizes) * factors[0])


def test_compiled_and_plain_events_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    topology = topology_of(servers=2, devices=4)
    program = recorded("RunAlltoAllVFullMesh", op_of("all_to_all", 4096), topology)
    plain = simulate_contended(program, topology, COST)
    monkeypatch.setattr("hccl_py.program.kernels.WORTH_COMPILING", 0)
    assert same(simulate_contended(program, topology, COST), plain)
    assert run_events.compiled.signatures  # type: ignore[attr-defined]


def test_what_is_symmetric_stays_so() -> None:
    """Rounding would let flows that end together end one by one, each with rates to be found."""
    topology = topology_of(preset="torus:4x4")
    program = recorded("RunAlltoAllDirectFullmesh", op_of("all_to_all", 1 << 14), topology)
    cost = CostModel.of("study")
    times = np.unique(simulate_contended(program, topology, cost).end_us)
    assert (np.diff(times) > 1e-9 * times[1:]).all()


def test_nothing_to_do_takes_no_time() -> None:
    nothing = moving([Move(0, 1, 0), Move(1, 1, 0)], MESH)
    assert simulate_contended(nothing, MESH, COST).total_us == 0


def test_programs_that_cannot_end_are_refused() -> None:
    ring = recorded("AllGatherComm", op_of("all_gather"), 3)
    stuck = without(ring, lambda i: i.kind == 8)
    with pytest.raises(DeadlockError, match=r"\(3 of 36 tasks done\)"):
        simulate_contended(stuck, topology_of(3), COST)
