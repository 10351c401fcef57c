"""What MSCCL's protocols cost: the launch, a threadblock's rate, and α by message. Every time is
computed by hand.
"""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_interop.msccl import algorithms_from, import_algorithm, meaning_of
from hccl_py.clocks.cost import PROTOCOLS, ProtocolCost, Protocols
from hccl_py.clocks.links import Links
from hccl_py.formats.json_read import from_json
from hccl_py.program.program import Program
from hccl_py.simulator import CostModel, simulate_batches, simulate_contended
from hccl_py.simulator.load import busiest_us
from hccl_py.simulator.tasks import simulate_tasks
from hccl_py.topology import Topology, topology_of
from tests.interop.msccl.xmls import Xml
from tests.recording import recorded
from tests.simulator.costs import COST, only_hccs
from tests.suited import SuitedCall, suited

ALPHA = 3.0
LINK = 10_000.0
"""Bytes a µs."""

PAIR = topology_of(2)
PLAIN = only_hccs(ALPHA, LINK)
LAUNCHED = {"Simple": 1.0, "LL": 4.0, "LL128": 200.0}
LAUNCHES = PLAIN.model_copy(
    update={
        "protocols": Protocols(
            simple=ProtocolCost(launch_us=LAUNCHED["Simple"]),
            ll=ProtocolCost(launch_us=LAUNCHED["LL"]),
            ll128=ProtocolCost(launch_us=LAUNCHED["LL128"]),
        )
    }
)


def program_of(xml: Xml, size: int) -> Program:
    (algorithm,) = algorithms_from(xml.text().encode(), "own.xml")
    return import_algorithm(algorithm, meaning_of(algorithm, "send_recv"), size).require()


def one_way(proto: str, channels: int = 1) -> Xml:
    """GPU 0 sends a chunk on each channel, GPU 1 receives them; GPU 1 sends nothing."""
    xml = Xml("custom", 2, channels, proto=proto, nchannels=channels)
    for chan in range(channels):
        xml.tb(0, send=1, chan=chan).step("s", ("i", chan))
        xml.tb(1, recv=0, chan=chan).step("r", dst=("o", chan))
    return xml


def totals(program: Program, cost: CostModel, topology: Topology = PAIR) -> list[float]:
    """Return the time by every simulator."""
    return [
        simulate_tasks(program, topology, cost).total_us,
        simulate_batches(program, topology, cost).total_us,
        simulate_batches(program, topology, cost, lockstep=False).total_us,
        simulate_contended(program, topology, cost).total_us,
    ]


@pytest.mark.parametrize("proto", PROTOCOLS)
def test_nothing_begins_before_the_launch(proto: str) -> None:
    program = program_of(one_way(proto), 8000)
    assert program.protocol == proto
    wanted = 8000 / LINK + ALPHA
    assert totals(program, PLAIN) == pytest.approx([wanted] * 4)
    wanted += LAUNCHED[proto]
    assert totals(program, LAUNCHES) == pytest.approx([wanted] * 4)
    timeline = simulate_tasks(program, PAIR, LAUNCHES)
    assert timeline.start_us.min() == LAUNCHED[proto]
    path = timeline.critical_path()
    assert path.parts().launch_us == LAUNCHED[proto]
    assert sum(path.parts()) == pytest.approx(wanted)
    assert path.begin_us[0] == LAUNCHED[proto]


def test_programs_of_no_protocol_are_not_launched() -> None:
    program = replace(program_of(one_way("LL128"), 8000), protocol="")
    assert totals(program, LAUNCHES) == pytest.approx([8000 / LINK + ALPHA] * 4)


def with_rate(proto: str, gbps: float, **more: object) -> CostModel:
    rates = Protocols.model_validate({proto.lower(): {"gbps": gbps}})
    return PLAIN.model_copy(update={"protocols": rates, **more})


def write_us(timeline: Any) -> float:
    """Return how long the writes to the peer take, from the first begin to the last end."""
    tasks = timeline.program.tasks
    writes = (tasks.end >= 0) & (tasks.size > 0)
    return float(timeline.end_us[writes].max() - timeline.start_us[writes].min())


@pytest.mark.parametrize(
    ("channels", "rate"),
    [(1, 4_000.0), (2, 8_000.0), (3, LINK), (5, LINK)],
)
def test_more_threadblocks_help_until_the_link_is_full(channels: int, rate: float) -> None:
    program = program_of(one_way("Simple", channels), channels * 40_000)
    cost = with_rate("Simple", 4.0)
    found = simulate_contended(program, PAIR, cost)
    assert write_us(found) == pytest.approx(channels * 40_000 / rate)
    alone = simulate_tasks(program, PAIR, cost)
    assert write_us(alone) == pytest.approx(40_000 / 4_000)
    assert write_us(simulate_contended(program, PAIR, PLAIN)) == pytest.approx(
        channels * 40_000 / LINK
    )


def test_threadblocks_copy_and_reduce_no_faster() -> None:
    xml = Xml("custom", 2, 1)
    xml.usual = (1, 1, 1)
    xml.tb(0).step("cpy", ("i", 0), ("s", 0)).step("re", ("s", 0), ("o", 0))
    xml.tb(1)
    program = program_of(xml, 8000)
    assert totals(program, PLAIN) == [0.0] * 4
    assert totals(program, with_rate("Simple", 4.0)) == pytest.approx([4.0] * 4)
    faster = with_rate("Simple", 4.0, copy_gbps=8.0, reduce_gbps=1.0)  # the slower one counts
    assert totals(program, faster) == pytest.approx([2.0 + 8.0] * 4)
    assert totals(program, with_rate("LL", 4.0)) == [0.0] * 4


def test_links_that_are_slower_than_threadblocks_count() -> None:
    program = program_of(one_way("Simple"), 8000)
    assert totals(program, with_rate("Simple", 40.0, copy_gbps=1e6)) == pytest.approx(
        [8000 / LINK + ALPHA + 8000 / 40_000] * 4
    )


def chain(free: int, full: int) -> Program:
    """Rank 0 writes to rank 1, which writes to rank 2, each when the slot is free; notifies `free`
    and `full` of their links say so.
    """
    slot, out = ["SLOT", 0, 1000], ["OUT", 0, 1000]
    links = [
        {"id": k, "ranks": [k, k + 1], "kind": "sdma", "exports": {str(k + 1): ["SLOT"]}}
        for k in range(2)
    ]

    def send(peer: int, source: list[object]) -> list[list[object]]:
        return [["wait", peer, free], ["write", peer, source, slot], ["post", peer, full]]

    tasks = {
        "0": {"0": send(1, ["IN", 0, 1000])},
        "1": {"0": [["post", 0, free], ["wait", 0, full], *send(2, slot)]},
        "2": {"0": [["post", 1, free], ["wait", 1, full], ["copy", slot, out]]},
    }
    buffers = {"IN": 1000, "OUT": 1000, "SLOT": 1000}
    return from_json(
        json.dumps(
            {
                "format": "hccl-py.program/1",
                "op": {"name": "send_recv", "dtype": "uint8", "count": 1000, "pairs": [[0, 2]]},
                "ranks": 3,
                "links": links,
                "buffers": {str(rank): buffers for rank in range(3)},
                "tasks": tasks,
            }
        )
    )


MESSAGES = PLAIN.model_copy(update={"alpha_by": "message"})
MOVED = 1000 / LINK


@pytest.mark.parametrize(("free", "full"), [(0, 1), (1, 0), (1, 2), (2, 1)])
def test_alpha_is_that_of_messages_whatever_their_number(free: int, full: int) -> None:
    ring = topology_of(3)
    program = chain(free, full)
    assert totals(program, MESSAGES, ring) == pytest.approx([2 * (MOVED + ALPHA)] * 4)
    by_number = {0: ALPHA}
    first = by_number.get(free, 0.0) + MOVED + by_number.get(full, 0.0)
    wanted = first + MOVED + by_number.get(full, 0.0)
    assert totals(program, PLAIN, ring) == pytest.approx([wanted] * 4)
    timeline = simulate_tasks(program, ring, MESSAGES)
    assert timeline.critical_path().parts().alpha_us == pytest.approx(2 * ALPHA)
    assert timeline.critical_path().parts().notify_us == 0


def test_other_notifies_cost_what_notifies_cost() -> None:
    cost = MESSAGES.model_copy(update={"notify_us": 0.5})
    wanted = 0.5 + 2 * (MOVED + ALPHA)
    assert totals(chain(0, 1), cost, topology_of(3)) == pytest.approx([wanted] * 4)


def test_alpha_of_reads_is_that_of_what_lets_them_go() -> None:
    slot = ["SLOT", 0, 1000]
    program = from_json(
        json.dumps(
            {
                "format": "hccl-py.program/1",
                "op": {"name": "send_recv", "dtype": "uint8", "count": 1000, "pairs": [[0, 1]]},
                "ranks": 2,
                "link": "sdma",
                "exported": ["SLOT"],
                "buffers": {str(r): {"IN": 1000, "OUT": 1000, "SLOT": 1000} for r in range(2)},
                "tasks": {
                    "0": {"0": [["copy", ["IN", 0, 1000], slot], ["post", 1, 2], ["wait", 1, 0]]},
                    "1": {
                        "0": [["wait", 0, 2], ["read", 0, slot, ["OUT", 0, 1000]], ["post", 0, 0]]
                    },
                },
            }
        )
    )
    assert totals(program, MESSAGES) == pytest.approx([ALPHA + MOVED] * 4)
    assert totals(program, PLAIN) == pytest.approx([MOVED + ALPHA] * 4)  # of the answer
    paying = simulate_tasks(program, PAIR, MESSAGES)
    assert float(np.nanmax(paying.start_us)) == pytest.approx(ALPHA + MOVED)  # the answer is free


def test_imported_messages_pay_alpha_by_either_rule() -> None:
    for proto in PROTOCOLS:
        program = program_of(one_way(proto), 8000)
        assert totals(program, MESSAGES) == totals(program, PLAIN)


@given(call=suited(counts=(1000,)), protocol=st.sampled_from(PROTOCOLS))
def test_all_walks_give_the_same_times_to_the_last_bit(call: SuitedCall, protocol: str) -> None:
    one = ProtocolCost(launch_us=0.3, gbps=0.7)
    terms = {"alpha_by": "message", "protocols": Protocols(simple=one, ll=one, ll128=one)}
    cost = COST.model_copy(update=terms)
    program = replace(recorded(*call, 1 << 15), protocol=protocol)
    timeline = simulate_tasks(program, None, cost)
    queue = program.tasks.rank.astype(np.int64) * program.streams + program.tasks.stream
    ends = np.zeros(program.ranks * program.streams)
    np.maximum.at(ends, queue, timeline.end_us)
    for lockstep in (True, False):
        found = simulate_batches(program, None, cost, lockstep=lockstep).end_us
        assert np.array_equal(found.reshape(-1), ends)


def flagged(proto: str, efficiency: float, **more: object) -> CostModel:
    shares = Protocols.model_validate({proto.lower(): {"efficiency": efficiency, **more}})
    return PLAIN.model_copy(update={"protocols": shares, "copy_gbps": 4.0})


def test_flags_take_their_share_of_links() -> None:
    program = program_of(one_way("LL"), 8000)
    plain = PLAIN.model_copy(update={"copy_gbps": 4.0})
    copied = totals(program, plain)[0] - 8000 / LINK - ALPHA
    wanted = 8000 / LINK / 0.5 + ALPHA + copied
    assert totals(program, flagged("LL", 0.5)) == pytest.approx([wanted] * 4)
    assert totals(program, flagged("LL128", 0.5)) == totals(program, plain)
    ring = topology_of(2, preset="ring")
    assert totals(program, flagged("LL", 0.5), ring)[0] > totals(program, plain, ring)[0]


@pytest.mark.parametrize(("channels", "rate"), [(1, 4_000.0), (2, 5_000.0), (5, 5_000.0)])
def test_several_threadblocks_share_what_flags_leave(channels: int, rate: float) -> None:
    program = program_of(one_way("LL", channels), channels * 40_000)
    cost = flagged("LL", 0.5, gbps=4.0)
    found = simulate_contended(program, PAIR, cost)
    assert write_us(found) == pytest.approx(channels * 40_000 / rate)
    use = found.link_use()
    assert use.gbps.tolist() == [5.0]
    assert use.share[0] == pytest.approx(channels * 40_000 / 5_000 / found.total_us)
    carried = channels * 40_000 / 5_000 + ALPHA
    assert busiest_us(program, PAIR, cost) == pytest.approx(carried)


def test_memory_has_no_flags() -> None:
    cost = flagged("LL", 0.5).model_copy(update={"memory_gbps": 4.0})
    program = program_of(one_way("LL"), 8000)
    node = np.zeros(1, np.int64)
    links = Links.of(program, PAIR, cost)
    assert links.capacities(links.network.number(node, node)).tolist() == [4.0]
    assert links.capacities(links.network.number(node, node + 1)).tolist() == [5.0]
