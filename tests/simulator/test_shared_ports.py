"""What ports cost that several links of a node share, alone and when links are shared."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.cli import main
from hccl_py.clocks.cost import Engines
from hccl_py.documents.models import checked
from hccl_py.simulator import (
    COSTS,
    CostModel,
    LinkCost,
    SharedPort,
    Stragglers,
    simulate_batches,
    simulate_contended,
    simulate_tasks,
)
from hccl_py.simulator.load import busiest_us
from hccl_py.topology import Topology, topology_of
from hccl_py.topology.networks.build import topology_from
from hccl_py.topology.networks.models import NetworkModel
from tests.recording import op_of, recorded
from tests.simulator.fair_shares import Job, fair_ends
from tests.simulator.moves import PLAIN, Move, moving
from tests.simulator.naive_contended import naive_contended


def mesh(ranks: int, ports: list[dict[str, Any]], gbps: float = 1.0) -> Topology:
    """Return a full mesh, every link of which moves a kB in a µs."""
    links = [{"from": a, "to": b, "gbps": gbps} for a in range(ranks) for b in range(a)]
    document = {"ranks": ranks, "links": links, "ports": ports}
    return topology_from(checked(NetworkModel, document), "drawn")


def ends_of(moves: list[Move], topology: Topology, cost: CostModel = PLAIN) -> list[float]:
    """Return when moves end that share links; all of them begin at 0."""
    program = moving(moves, topology)
    return [float(us) for us in simulate_contended(program, topology, cost).effect_us]


def alone(moves: list[Move], topology: Topology, cost: CostModel = PLAIN) -> list[float]:
    program = moving(moves, topology)
    return [float(us) for us in simulate_tasks(program, topology, cost).effect_us]


TWO_OUT = [Move(0, 1, 60, writes=True), Move(0, 2, 60, writes=True)]
"""60 kB over each of two links of rank 0."""


def test_a_port_halves_two_links_at_once_and_is_nothing_to_one_alone() -> None:
    port = {"name": "die", "of": 0, "gbps": 1}
    assert ends_of(TWO_OUT, mesh(3, [])) == pytest.approx([60, 60])
    assert ends_of(TWO_OUT, mesh(3, [port])) == pytest.approx([120, 120])
    assert alone(TWO_OUT, mesh(3, [port])) == pytest.approx([60, 60])
    assert ends_of(TWO_OUT[:1], mesh(3, [port])) == pytest.approx([60])


def test_links_that_are_not_in_the_port_and_the_way_back_are_free() -> None:
    port = {"name": "nic", "of": 0, "to": [1, 2], "gbps": 1}
    moves = [*TWO_OUT, Move(0, 3, 60, writes=True), Move(0, 1, 60), Move(0, 2, 30)]
    # out through the port: 120 kB at 1 GB/s; beside it 60; in through the port 60 and 30 kB:
    # half a kB a µs each until the shorter one ends at 60, then 30 kB more at full rate
    assert ends_of(moves, mesh(4, [port])) == pytest.approx([120, 120, 60, 90, 60])


def test_a_port_slower_than_its_links_slows_a_flow_that_is_alone() -> None:
    port = {"name": "nic", "of": 0, "to": [1], "gbps": 0.25}
    assert alone(TWO_OUT, mesh(3, [port])) == pytest.approx([240, 60])
    assert ends_of(TWO_OUT, mesh(3, [port])) == pytest.approx([240, 60])


def test_an_incast_is_as_slow_as_the_port_that_it_enters() -> None:
    """Three links of 1 GB/s end in a port of 1.5: 180 kB in 120 µs."""
    moves = [Move(rank, 0, 60, writes=True) for rank in (1, 2, 3)]
    assert ends_of(moves, mesh(4, [])) == pytest.approx([60] * 3)
    port = {"name": "die", "of": 0, "gbps": 1.5}
    assert ends_of(moves, mesh(4, [port])) == pytest.approx([120] * 3)


def test_a_slow_port_slows_what_goes_through_it() -> None:
    topology = mesh(3, [{"name": "nic", "of": 0, "to": [1], "gbps": 1}])
    slow = Stragglers.parse(["link=0-nic:3x"])
    program = moving(TWO_OUT, topology)
    assert simulate_tasks(program, topology, PLAIN, slow).effect_us.tolist() == [180, 60]


MOVES = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(1, 40), st.booleans()).map(
        lambda p: Move(p[0], (p[0] + p[1]) % 4, p[2], p[3])
    ),
    min_size=1,
    max_size=16,
)


@given(
    moves=MOVES,
    ports=st.lists(
        st.tuples(
            st.integers(0, 3),
            st.sets(st.integers(1, 3), min_size=1),
            st.sampled_from([0.3, 0.5, 1.0, 1.5, 2.5]),
        ),
        max_size=5,
    ),
)
def test_ports_share_max_min_fair(
    moves: list[Move], ports: list[tuple[int, set[int], float]]
) -> None:
    """Against a table of links and ports that is written down here."""
    lists = [(of, sorted((of + step) % 4 for step in steps), gbps) for of, steps, gbps in ports]
    drawn = [
        {"name": f"p{k}", "of": of, "to": to, "gbps": gbps}
        for k, (of, to, gbps) in enumerate(lists)
    ]
    links: dict[Any, int] = {}
    capacity: list[float] = []

    def number(key: object, gbps: float) -> int:
        if key not in links:
            links[key] = len(capacity)
            capacity.append(gbps * 1e3)
        return links[key]

    def through(a: int, b: int) -> list[int]:
        route = [number((a, b), 1.0)]
        for k, (of, to, gbps) in enumerate(lists):
            for node, other, way in ((a, b, "out"), (b, a, "in")):
                if of == node and other in to:
                    route.append(number((k, way), gbps))
        return route

    jobs = []
    for stream, move in sorted(enumerate(moves), key=lambda numbered: numbered[1].rank):
        there = through(move.rank, move.peer)
        full = min(capacity[link] for link in there)
        route = there if move.writes else through(move.peer, move.rank)
        jobs.append(Job(stream, route, move.kb * 1e3, full, 0.0))
    found = ends_of(moves, mesh(4, drawn))
    assert found == pytest.approx(fair_ends(jobs, np.array(capacity)), rel=1e-9)


def shared(base: str, *ports: SharedPort) -> CostModel:
    return COSTS[base].model_copy(update={"shared_ports": ports})


FREE = {
    "hccs": LinkCost(alpha_us=0, gbps=50),
    "roce": LinkCost(alpha_us=0, gbps=400),
    "memory_gbps": None,
    "engines": Engines(),
}
"""Links of 50 GB/s, a Clos port of 400, and nothing else that costs time."""


def test_links_of_a_device_share_a_port() -> None:
    """Each rank of a 950 server writes 50 kB to each of three peers, over links of 50 GB/s."""
    topology = topology_of(4, preset="ascend950")
    moves = [Move(rank, peer, 50, writes=True) for rank in range(4) for peer in range(4)]
    moves = [move for move in moves if move.rank != move.peer]
    plain = COSTS["ascend950"].model_copy(update=FREE)
    assert ends_of(moves, topology, plain) == pytest.approx([1.0] * 12)
    die = plain.model_copy(update={"shared_ports": (SharedPort(links=("hccs",), gbps=75),)})
    assert ends_of(moves, topology, die) == pytest.approx([2.0] * 12)  # 150 kB at 75 GB/s
    assert alone(moves, topology, die) == pytest.approx([1.0] * 12)
    narrow = plain.model_copy(update={"shared_ports": (SharedPort(links=("hccs",), gbps=25),)})
    assert alone(moves, topology, narrow) == pytest.approx([2.0] * 12)
    assert ends_of(moves, topology, narrow) == pytest.approx([6.0] * 12)
    one = [Move(0, 1, 50, writes=True)]
    assert ends_of(one, topology, die) == pytest.approx([1.0])


def test_mesh_links_and_the_clos_port_share_what_a_device_s_io_takes() -> None:
    topology = topology_of(servers=2, devices=2, preset="ascend950")
    moves = [Move(0, 1, 50, writes=True), Move(0, 2, 400, writes=True)]
    plain = COSTS["ascend950"].model_copy(update=FREE)
    assert ends_of(moves, topology, plain) == pytest.approx([1.0, 1.0])
    io = plain.model_copy(update={"shared_ports": (SharedPort(links=("hccs", "roce"), gbps=100),)})
    # both at 50 GB/s until the mesh link's 50 kB are there; then 350 kB at 100
    assert ends_of(moves, topology, io) == pytest.approx([1.0, 4.5])
    assert alone(moves, topology, io) == pytest.approx([1.0, 4.0])


@pytest.mark.parametrize(
    ("preset", "sizes", "executor"),
    [
        ("ascend950", {"servers": 2, "devices": 4}, "RunAlltoAllDirectFullmesh"),
        ("atlas-900-a3", {"servers": 2, "devices": 4}, "RunAlltoAllDirectFullmesh"),
        ("atlas-800-9000", {"ranks": 8}, "RunAlltoAllDirectFullmesh"),
        ("300i-duo", {"ranks": 4}, "RunAlltoAllDirectFullmesh"),
    ],
)
def test_products_with_ports_against_the_naive_simulation(
    preset: str, sizes: dict[str, int], executor: str
) -> None:
    topology = topology_of(**sizes, preset=preset)
    program = recorded(executor, op_of("all_to_all", 1 << 14), topology)
    cost = shared(
        preset,
        SharedPort(links=("hccs", "sio", "pcie", "roce"), gbps=10),
        SharedPort(links=("hccs",), gbps=5),
    ).model_copy(update={"memory_gbps": 1000.0})
    found = simulate_contended(program, topology, cost)
    wanted = naive_contended(program, topology, cost)
    assert found.effect_us.tolist() == pytest.approx(wanted.effect, rel=1e-9)
    plain = simulate_contended(program, topology, COSTS[preset])
    assert found.total_us > 1.05 * plain.total_us
    tasks = simulate_tasks(program, topology, cost)
    assert simulate_batches(program, topology, cost).total_us == pytest.approx(tasks.total_us)
    assert busiest_us(program, topology, cost) > busiest_us(program, topology, COSTS[preset])
    assert found.total_us >= busiest_us(program, topology, cost) - 1e-6


def test_ports_that_nothing_fills_change_nothing() -> None:
    topology = topology_of(servers=2, devices=4, preset="ascend950")
    program = recorded("RunAlltoAllDirectFullmesh", op_of("all_to_all", 1 << 14), topology)
    wide = shared("ascend950", SharedPort(links=("hccs", "roce"), gbps=1e6))
    for simulate in (simulate_tasks, simulate_contended):
        plain, found = (simulate(program, topology, cost) for cost in (COSTS["ascend950"], wide))
        assert np.array_equal(found.effect_us, plain.effect_us)


def test_slow_links_beside_ports() -> None:
    topology = topology_of(4, preset="ascend950")
    die = shared("ascend950", SharedPort(links=("hccs",), gbps=50)).model_copy(update=FREE)
    program = moving([Move(0, 1, 50, writes=True), Move(2, 3, 50, writes=True)], topology)
    found = simulate_tasks(program, topology, die, Stragglers.parse(["link=0-1:2x"]))
    assert found.effect_us.tolist() == pytest.approx([2.0, 1.0])
    found = simulate_contended(program, topology, die, Stragglers.parse(["link=2-port0:4x"]))
    assert found.effect_us.tolist() == pytest.approx([1.0, 4.0])


def test_the_report_names_ports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "io.json"
    port = {"links": ["hccs", "roce"], "gbps": 200}
    file.write_text(json.dumps({"base": "ascend950", "shared_ports": [port]}))
    call = ["simulate", "all_to_all", "--topology", "ascend950", "--servers", "2", "--devices", "4"]
    call += ["-b", "8M", "--cost", str(file), "--network", "contended", "--report"]
    assert main(call) == 0
    assert "0 to port0" in capsys.readouterr().out
