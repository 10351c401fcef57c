"""What links must carry: the same bytes as task by task, and never more than contention needs."""

import json

import numpy as np
import pytest
from hypothesis import given

from hccl_py.clocks.carried import carried
from hccl_py.clocks.stragglers import Stragglers
from hccl_py.formats import from_json
from hccl_py.simulator import CostModel, simulate_contended, simulate_tasks
from hccl_py.simulator.load import busiest_us
from hccl_py.topology import topology_of
from tests.recording import op_of, recorded
from tests.simulator.moves import Move, moving
from tests.suited import SuitedCall, suited

COST = CostModel.of("study")


@given(call=suited(("atlas-800t-a2", "atlas-900-a3", "300i-duo"), counts=(1, 5000)))
def test_it_is_what_the_tasks_carry(call: SuitedCall) -> None:
    program, topology = recorded(*call, 1 << 15), call.topology
    timeline = simulate_tasks(program, topology, COST)
    use = timeline.link_use()
    alpha = COST.hccs.alpha_us  # of all sorts of links
    wanted = float((use.bytes / (use.gbps * 1e3)).max() + alpha) if len(use.link) else 0.0
    found = busiest_us(program, topology, COST)
    assert found == pytest.approx(wanted, rel=1e-12)
    shared = simulate_contended(program, topology, COST).total_us
    assert found <= shared * (1 + 1e-9)


def test_a_port_that_many_read_through_is_what_binds() -> None:
    servers = topology_of(servers=5, devices=1)
    program = recorded("BroadCastComm", op_of("broadcast", 1 << 20), servers)
    once = busiest_us(program, servers, COST)
    assert once > COST.roce.alpha_us
    slow = busiest_us(
        program, servers, COST, Stragglers.parse([f"link={r}-roce:3x" for r in range(5)])
    )
    assert slow == pytest.approx(3 * once)  # α too


def test_what_is_read_leaves_the_end_of_the_other_rank() -> None:
    sizes = {"IN": 64, "OUT": 64}
    document = {
        "format": "hccl-py.program/1",
        "op": {"name": "all_gather", "dtype": "uint8", "count": 32},
        "ranks": 2,
        "link": "sdma",
        "exported": ["IN", "OUT"],
        "buffers": {"0": sizes, "1": sizes},
        "tasks": {"1": {"0": [["read", 0, ["IN", 0, 32], ["OUT", 0, 32]], _WRITE]}},
    }
    program = from_json(json.dumps(document))
    sent = dict(zip(program.transports.rank.tolist(), carried(program).tolist(), strict=True))
    assert sent == {0: 32, 1: 8}


_WRITE = ["write", 0, ["IN", 0, 8], ["OUT", 0, 8]]


def test_uneven_sizes_are_added_lane_by_lane() -> None:
    ring = topology_of(3, preset="ring")
    program = recorded("AllGatherVFor310PExecutor", op_of("all_gather_v", 7), ring)
    use = simulate_tasks(program, ring, COST).link_use()
    found = busiest_us(program, ring, COST)
    assert found == COST.hccs.alpha_us + np.max(use.bytes / (use.gbps * 1e3))


def test_a_slow_link_s_ack_may_come_from_the_other_side() -> None:
    cube = topology_of(preset="hypercube:3")
    program = recorded("ReduceScatterOrderPreservedExecutor", op_of("reduce_scatter", 1), cube)
    slow = Stragglers.parse(["link=0-1:5x"])
    shared = simulate_contended(program, cube, COST, slow).total_us
    assert busiest_us(program, cube, COST, slow) <= shared * (1 + 1e-9)


def test_what_is_read_leaves_the_peer() -> None:
    program = moving([Move(1, 0, 5)], topology_of(3, preset="mesh"))
    ends, sent = program.transports, carried(program)
    assert sent[(ends.rank == 0) & (ends.peer == 1)] == 5000
    assert sent.sum() == 5000
