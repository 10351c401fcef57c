"""Members of a link's cost, of engines and of protocols: each by hand, by every simulation."""

from dataclasses import replace

import pytest

from hccl_py.clocks.cost import EngineCost, Engines, ProtocolCost, Protocols
from hccl_py.clocks.engines import engine_of
from hccl_py.clocks.links import Links
from hccl_py.formats import from_json, from_npz, to_json, to_npz
from hccl_py.program.program import Program
from hccl_py.simulator import (
    COSTS,
    CostModel,
    LinkCost,
    Stragglers,
    simulate,
    simulate_batches,
    simulate_contended,
    simulate_tasks,
)
from hccl_py.topology import Topology, topology_of
from hccl_py.topology.networks.product import MEDIA
from tests.program.authors import Notifies
from tests.recording import op_of, recorded
from tests.simulator.moves import PLAIN, Move, moving


def times(program: Program, topology: Topology, cost: CostModel) -> list[float]:
    """Return the time by every simulation."""
    return [
        simulate_tasks(program, topology, cost).total_us,
        simulate_batches(program, topology, cost).total_us,
        simulate_batches(program, topology, cost, lockstep=False).total_us,
        simulate_contended(program, topology, cost).total_us,
    ]


def linked(**members: float) -> CostModel:
    """Links that move a kB in a µs, with other members."""
    return PLAIN.model_copy(
        update={"hccs": LinkCost(alpha_us=1, gbps=1).model_copy(update=members)}
    )


PAIR = topology_of(2)
READ, WRITE = moving([Move(0, 1, 6)], PAIR), moving([Move(0, 1, 6, writes=True)], PAIR)


def test_what_is_pulled_and_what_is_pushed_have_rates_of_their_own() -> None:
    cost = linked(read_gbps=3.0, write_gbps=2.0)
    assert times(READ, PAIR, cost) == [2.0] * 4
    assert times(WRITE, PAIR, cost) == [3.0] * 4
    assert times(WRITE, PAIR, linked(read_gbps=3.0)) == [6.0] * 4


def test_a_transfer_starts_before_its_bytes_move() -> None:
    cost = linked(start_us=2.5)
    assert times(READ, PAIR, cost) == [8.5] * 4
    slow = simulate_tasks(READ, PAIR, cost, Stragglers.parse(["link=0-1:2x"]))
    assert slow.total_us == 17.0
    local = moving([Move(0, 0, 6)], PAIR)
    assert times(local, PAIR, cost.model_copy(update={"copy_gbps": 1.0})) == [6.0] * 4


def test_alpha_may_be_another_one_where_a_link_leaves_the_server() -> None:
    dies = topology_of(servers=2, devices=4, preset="atlas-900-a3")
    program = recorded("RunAlltoAllDirectFullmesh", op_of("all_to_all", 32), dies)
    ends = program.transports
    found = Links(dies, linked(far_alpha_us=9.0)).classes(ends)
    alpha, medium = found.alpha_us[found.of_end], found.medium[found.of_end]
    far = dies.server[ends.rank] != dies.server[ends.peer]
    assert set(alpha[far]) == {9.0}
    assert set(alpha[~far]) == {1.0}
    assert {MEDIA[m] for m in medium[~far]} == {"hccs", "sio"}
    assert set(Links(dies, linked()).classes(ends).alpha_us) == {1.0}


@pytest.mark.parametrize("flows", [1, 2, 3])
def test_flows_of_one_device_share_what_it_moves_in_both_views(flows: int) -> None:
    mesh = topology_of(4)
    program = moving([Move(0, peer, 6) for peer in range(1, flows + 1)], mesh)
    assert times(program, mesh, linked(gbps=3.0, device_gbps=3.0)) == pytest.approx(
        [2.0 * flows] * 4
    )
    assert times(program, mesh, linked(gbps=3.0, device_gbps=9.0)) == pytest.approx([2.0] * 4)


def test_reads_and_writes_of_a_device_do_not_share() -> None:
    mesh = topology_of(4)
    program = moving([Move(0, 1, 6), Move(0, 2, 6, writes=True)], mesh)
    assert times(program, mesh, linked(gbps=3.0, device_gbps=3.0)) == pytest.approx([2.0] * 4)


def test_what_follows_on_one_stream_does_not_share() -> None:
    mesh = topology_of(4)
    program = moving([Move(0, 1, 6), Move(0, 2, 6)], mesh, on_main=True)
    assert times(program, mesh, linked(gbps=3.0, device_gbps=3.0)) == pytest.approx([4.0] * 4)


@pytest.mark.parametrize("name", ["AllGatherMeshExecutor", "RunAlltoAllDirectFullmesh"])
def test_a_mesh_takes_as_long_as_its_device_s_port_in_both_views(name: str) -> None:
    """Peers read alike, so that what others take from a device is what it takes from them."""
    dies = topology_of(8, preset="atlas-900-a3")
    op = op_of("all_gather" if name.startswith("All") else "all_to_all", 1 << 20)
    program, cost = recorded(name, op, dies), COSTS["atlas-900-a3"]
    alone, shared = (
        simulate(program, dies, cost),
        simulate(program, dies, cost, network="contended"),
    )
    assert alone.total_us == pytest.approx(shared.total_us, rel=0.02)
    free = cost.model_copy(update={"hccs": LinkCost(alpha_us=1.6, gbps=151.0)})
    assert alone.total_us > 1.5 * simulate(program, dies, free).total_us


def test_a_call_takes_no_less_than_its_engine_needs() -> None:
    cost = linked().model_copy(update={"engines": Engines(ccu=EngineCost(call_us=11.0))})
    on_ccu = replace(READ, engine="ccu")
    assert times(READ, PAIR, cost) == [6.0] * 4
    assert times(on_ccu, PAIR, cost) == [11.0] * 4
    timeline = simulate(on_ccu, PAIR, cost)
    assert (timeline.floor_us, timeline.makespan_us) == (11.0, 6.0)
    path = timeline.critical_path()
    assert path.parts().floor_us == 5.0
    assert sum(path.parts()) == 11.0
    long = replace(moving([Move(0, 1, 20)], PAIR), engine="ccu")
    assert times(long, PAIR, cost) == [20.0] * 4


def test_the_engine_is_that_of_the_recording_else_the_product_s() -> None:
    clos = topology_of(2, preset="ascend950")
    assert engine_of(READ, clos) == "aicpu_ts"
    assert engine_of(replace(READ, engine="ccu"), clos) == "ccu"
    assert engine_of(READ, topology_of(2, preset="mesh")) == ""
    assert engine_of(replace(READ, protocol="LL"), clos) == ""


def test_files_keep_the_engine() -> None:
    on_ccu = replace(READ, engine="ccu")
    assert [from_json(to_json(p)).engine for p in (READ, on_ccu)] == ["", "ccu"]
    assert [from_npz(to_npz(p)).engine for p in (READ, on_ccu)] == ["", "ccu"]


def test_a_protocol_may_have_its_own_alpha_and_start() -> None:
    protocols = Protocols(ll=ProtocolCost(alpha_us=7.0, task_us=0.5))
    cost = linked().model_copy(update={"protocols": protocols})
    steps = recorded(Notifies("tx_ack", "rx_ack"), op_of("all_gather"), PAIR)
    for protocol, moved, step in (("", 6.0, 1.0), ("LL", 6.5, 7.0), ("LL128", 6.0, 1.0)):
        assert times(replace(READ, protocol=protocol), PAIR, cost) == [moved] * 4
        assert times(replace(steps, protocol=protocol), PAIR, cost) == [step] * 4
