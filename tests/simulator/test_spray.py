"""What data takes that is spread over several routes, alone and when links are shared."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.cli import main
from hccl_py.clocks.links import Links
from hccl_py.documents.models import checked
from hccl_py.simulator import (
    COSTS,
    Stragglers,
    simulate_batches,
    simulate_contended,
    simulate_tasks,
)
from hccl_py.simulator.load import busiest_us
from hccl_py.topology import Topology, topology_of
from hccl_py.topology.networks.build import topology_from
from hccl_py.topology.networks.models import NetworkModel
from hccl_py.trace.scene.traffic import link_load
from tests.recording import op_of, recorded
from tests.simulator.fair_shares import Job, fair_ends
from tests.simulator.moves import PLAIN, Move, moving
from tests.simulator.naive_contended import naive_contended

COST = COSTS["study"].model_copy(update={"memory_gbps": 900.0, "task_us": 0.5})


def planes(*shares: float, over: dict[str, Any] | None = None) -> Topology:
    """Return ranks a, b and c, each joined by a link of 1 GB/s to every one of some switches, over
    which data from a to b and back goes in these shares; c goes by the first switch.
    """
    switches = [f"s{k}" for k in range(len(shares))]
    links = [{"from": rank, "to": s, "gbps": 1} for rank in "abc" for s in switches]
    routes: list[dict[str, Any]] = [
        {"path": ["a", s, "b"], "share": share} for s, share in zip(switches, shares, strict=True)
    ]
    routes += [{"path": [rank, "s0", "c"]} for rank in "ab"]
    document = {
        "ranks": [{"name": name} for name in "abc"],
        "switches": [{"name": name} for name in switches],
        **{"links": links, "routes": routes, **(over or {})},
    }
    return topology_from(checked(NetworkModel, document), "drawn")


A, B, C = range(3)


def both(moves: list[Move], topology: Topology) -> tuple[list[float], list[float]]:
    """Return when moves end alone, and when they share links; all begin at 0."""
    program = moving(moves, topology)
    alone, shared = (
        simulate(program, topology, PLAIN).effect_us
        for simulate in (simulate_tasks, simulate_contended)
    )
    return [float(us) for us in alone], [float(us) for us in shared]


def test_two_routes_of_half_the_data_double_the_rate_of_a_pair() -> None:
    to_b = [Move(A, B, 60, writes=True)]
    assert both(to_b, planes(1.0)) == ([60], [60])
    assert both(to_b, planes(0.5, 0.5)) == ([30], [30])
    assert both(to_b, planes(*[0.25] * 4)) == ([15], [15])
    from_b = [Move(A, B, 60)]
    assert both(from_b, planes(0.5, 0.5)) == ([30], [30])


def test_the_largest_share_binds_where_links_are_alike() -> None:
    assert both([Move(A, B, 60, writes=True)], planes(0.25, 0.75)) == ([45], [45])
    narrow = planes(0.25, 0.75, over={"ports": [{"name": "nic", "of": "a", "gbps": 1.2}]})
    alone, shared = both([Move(A, B, 60, writes=True)], narrow)
    assert alone == shared == pytest.approx([50])  # all of it goes through the port


def test_an_incast_is_no_faster_over_many_routes() -> None:
    """Fat-tree of 4 ports: three ranks send to one; its link is what binds, sprayed or not."""
    moves = [Move(rank, 0, 60, writes=True) for rank in (4, 8, 12)]
    for spelling in ("fat-tree:4,gbps=1", "fat-tree:4,gbps=1,spray=all"):
        alone, shared = both(moves, topology_of(preset=spelling))
        assert alone == pytest.approx([60] * 3)
        assert shared == pytest.approx([180] * 3)


def test_thin_links_up_carry_more_together() -> None:
    """With a quarter of the rate up, one route has 0.25 GB/s, all four together 0.5."""
    one = [Move(0, 15, 60, writes=True)]
    thin = "fat-tree:4,gbps=1,oversubscription=4"
    assert both(one, topology_of(preset=thin)) == ([240], [240])
    assert both(one, topology_of(preset=f"{thin},spray=all")) == ([120], [120])


def test_flows_that_meet_on_some_of_their_links_only() -> None:
    """To c all data takes s0, of that to b one half: both have r with r/2 + r = 1 on a's link to
    s0, 2/3 kB a µs, though b's other half has a link of its own: halves keep pace.
    """
    moves = [Move(A, B, 60, writes=True), Move(A, C, 60, writes=True)]
    alone, shared = both(moves, planes(0.5, 0.5))
    assert alone == [30, 60]
    assert shared == pytest.approx([90, 90])
    moves = [Move(A, B, 30, writes=True), Move(A, C, 60, writes=True)]
    assert both(moves, planes(0.5, 0.5))[1] == pytest.approx([45, 75])  # then 30 kB at full rate


def test_latency_is_that_of_the_longest_route() -> None:
    def alpha(shares: list[float]) -> float:
        names = ["a", "b", "c", "s0", "s1"]
        paths = (["a", "s0", "b"], ["a", "s1", "c", "b"])
        links = [{"from": "a", "to": "s0", "latency_us": 5}, {"from": "s0", "to": "b"}]
        links += [{"from": "a", "to": "s1"}, {"from": "s1", "to": "c"}, {"from": "c", "to": "b"}]
        pairs = zip(paths, shares, strict=True)
        document = {
            "ranks": [{"name": name} for name in names[:3]],
            "switches": [{"name": name} for name in names[3:]],
            "links": links,
            "routes": [{"path": path, "share": share} for path, share in pairs if share],
        }
        topology = topology_from(checked(NetworkModel, document), "drawn")
        cost = PLAIN.model_copy(update={"hop_us": 2.0})
        transports = recorded("AllGatherComm", op_of("all_gather"), topology).transports
        classes = Links(topology, cost).classes(transports)
        end = np.flatnonzero((transports.rank == A) & (transports.peer == B))[0]
        return float(classes.alpha_us[classes.of_end[end]])

    assert alpha([1, 0]) == 1 + 5 + 2
    assert alpha([0, 1]) == 1 + 3 * 2
    assert alpha([0.5, 0.5]) == 1 + 7


def test_a_slow_link_slows_by_the_share_that_it_carries() -> None:
    topology = planes(0.75, 0.25)
    program = moving([Move(A, B, 60, writes=True)], topology)
    for factor, wanted in (("2x", 45), ("6x", 90)):  # 0.25 of 60 kB at 1/6 kB a µs
        slow = Stragglers.parse([f"link=a-s1:{factor}"])
        for simulate in (simulate_tasks, simulate_contended):
            found = simulate(program, topology, PLAIN, slow).effect_us
            assert found.tolist() == pytest.approx([wanted])


MOVES = st.lists(
    st.tuples(st.integers(0, 2), st.integers(1, 2), st.integers(1, 40), st.booleans()).map(
        lambda p: Move(p[0], (p[0] + p[1]) % 3, p[2], p[3])
    ),
    min_size=1,
    max_size=16,
)


@given(
    moves=MOVES,
    shares=st.sampled_from([(1.0,), (0.5, 0.5), (0.125, 0.875), (0.2, 0.5, 0.3)]),
    gbps=st.sampled_from([None, 0.4, 1.5, 2.5]),
)
def test_shares_go_max_min_fair(
    moves: list[Move], shares: tuple[float, ...], gbps: float | None
) -> None:
    """Against a table that is written down here; rank a may have a port for all it sends."""
    over = {"ports": [{"name": "die", "of": "a", "gbps": gbps}]} if gbps else {}
    numbers: dict[Any, int] = {}

    def ways(a: int, b: int) -> tuple[list[int], list[float]]:
        parts = shares if {a, b} == {A, B} else (1.0,)
        used: dict[Any, float] = {}
        for k, part in enumerate(parts):
            used[a, k, "out"] = used[b, k, "in"] = part
        if gbps and A in (a, b):
            used["die", a == A] = 1.0
        return [numbers.setdefault(key, len(numbers)) for key in used], list(used.values())

    jobs = []
    for stream, move in sorted(enumerate(moves), key=lambda numbered: numbered[1].rank):
        out, back = ways(move.rank, move.peer), ways(move.peer, move.rank)
        capacity = [gbps * 1e3 if "die" in key and gbps else 1e3 for key in numbers]
        full = min(capacity[link] / share for link, share in zip(*out, strict=True))
        links, taken = out if move.writes else back
        jobs.append(Job(stream, links, move.kb * 1e3, full, 0.0, taken))
    found = both(moves, planes(*shares, over=over))[1]
    assert found == pytest.approx(fair_ends(jobs, np.array(capacity)), rel=1e-9)


SPRAYED = (
    "torus:4x4,spray=all",
    "torus:2x3x2,spray=all,latency=0.3",
    "hypercube:3,spray=all",
    "fat-tree:4,oversubscription=3,spray=all",
    "dragonfly:2,2,1,spray=all",
    "dragonfly-plus:2,2,2,1,spray=all",
)


@pytest.mark.parametrize("spelling", SPRAYED)
@pytest.mark.parametrize("executor", ["RunAlltoAllDirectFullmesh", "RunAlltoAllVFullMesh"])
def test_executors_on_sprayed_networks_against_the_naive_simulation(
    spelling: str, executor: str
) -> None:
    topology = topology_of(preset=spelling)
    program = recorded(executor, op_of("all_to_all", 1 << 13), topology)
    found = simulate_contended(program, topology, COST)
    wanted = naive_contended(program, topology, COST)
    assert found.effect_us.tolist() == pytest.approx(wanted.effect, rel=1e-7, abs=1e-7)
    assert max(wanted.peaks.values()) <= 1 + 1e-9
    tasks = simulate_tasks(program, topology, COST)
    clocks = simulate_batches(program, topology, COST)
    assert clocks.total_us == pytest.approx(tasks.total_us)
    assert found.total_us >= busiest_us(program, topology, COST) - 1e-6


def test_what_links_carry_adds_up() -> None:
    """Every byte goes over as many links as its route has, whichever they are."""
    plain, sprayed = (
        topology_of(preset=f"fat-tree:4,oversubscription=4{over}") for over in ("", ",spray=all")
    )
    program = recorded("RunAlltoAllDirectFullmesh", op_of("all_to_all", 1 << 13), plain)
    cost = COSTS["study"]
    one, other = (simulate_contended(program, t, cost) for t in (plain, sprayed))
    before, after = one.link_use(), other.link_use()
    assert after.bytes.sum() == pytest.approx(before.bytes.sum(), rel=1e-5)
    assert len(after.link) == len(before.link) == 2 * 3 * 16
    for kind in ("edge", "agg", "core"):
        ups = [k for k in range(96) if after.names(k)[0].startswith(kind)]
        assert len({int(after.bytes[k]) for k in ups if not after.names(k)[1].isdigit()}) <= 2
    load = link_load(other, np.arange(len(program.tasks)), other.total_us)
    assert load is not None
    assert load.bytes.tolist() == after.bytes.tolist()
    assert load.share == pytest.approx(after.share, rel=1e-5)
    over_time = load.load.mean(axis=1)
    assert over_time == pytest.approx(after.share, rel=0.02)


def test_where_there_is_one_route_spraying_changes_no_bit() -> None:
    plain, sprayed = (topology_of(preset=f"torus:5{over}") for over in ("", ",spray=all"))
    program = recorded("RunAlltoAllDirectFullmesh", op_of("all_to_all", 1 << 12), plain)
    for simulate in (simulate_tasks, simulate_contended):
        one, other = (simulate(program, t, COST) for t in (plain, sprayed))
        assert np.array_equal(one.effect_us, other.effect_us)


def test_the_commands_take_sprayed_networks(capsys: pytest.CaptureFixture[str]) -> None:
    network = ["--topology", "fat-tree:4,oversubscription=4,spray=all", "-b", "64K"]
    assert main(["simulate", "all_to_all", *network, "--network", "contended", "--report"]) == 0
    said = capsys.readouterr().out
    assert "16 ranks: fat-tree 4, oversubscription 4, sprayed" in said
    assert "edge0 to agg1" in said
    assert main(["run", "all_to_all", *network, "-n", "1", "-w", "0"]) == 0
    assert "every element at every rank is right" in capsys.readouterr().out
    assert main(["compare", "all_to_all", *network]) == 0
    assert "sprayed" in capsys.readouterr().out
