"""Calls of very many passes: a few of them say what all take, and what any does wrong."""

from dataclasses import replace

import numpy as np
import pytest

from hccl_interop.msccl import algorithms_from, import_algorithm, meaning_of
from hccl_interop.msccl.build import build
from hccl_interop.msccl.repetition import RepeatedPasses, RepeatedTimes
from hccl_py.clocks.cost import ProtocolCost, Protocols
from hccl_py.enums import DataType
from hccl_py.errors import ParameterError
from hccl_py.program.program import Program
from hccl_py.simulator import CostModel, simulate_contended, simulate_tasks
from hccl_py.simulator.steady import steady_state
from hccl_py.simulator.timeline import Timeline
from hccl_py.topology import topology_of
from tests.interop.msccl.xmls import Xml, all_pairs, exchange, ring_all_reduce, sums_in_scratch
from tests.simulator.costs import COST, only_hccs

SOME = COST.model_copy(update={"memory_gbps": 30.0})
ALPHA, LINK = 3.0, 10_000.0
LINKS = only_hccs(ALPHA, LINK, alpha_by="message")
LL = 32 << 10
"""Bytes of a chunk in a pass with LL."""


def repetition_of(xml: Xml, size: int, most: int = 100, op: str | None = None) -> RepeatedPasses:
    (algorithm,) = algorithms_from(xml.text().encode(), "own.xml")
    meaning = meaning_of(algorithm, op)
    found = RepeatedPasses.of(meaning, meaning.call(size, DataType.FP32), most)
    assert found is not None
    return found


CALLS = {
    "ring": (ring_all_reduce(4), 4 * (60 * (2 << 20) + 4096)),
    "ring of two channels": (ring_all_reduce(4, "LL", channels=2), 8 * (80 * LL + 64)),
    "all-to-all, copies run ahead": (all_pairs("alltoall", 3), 3 * (120 * LL + 96)),
    "sums that wait for others": (sums_in_scratch(3), 101 * LL),
    "the last pass is a whole one": (sums_in_scratch(3), 100 * LL),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("cost", [COST, SOME], ids=["", "memory"])
def test_times_are_those_of_all_passes(name: str, cost: CostModel) -> None:
    found = repetition_of(*CALLS[name])
    topology = topology_of(found.meaning.algorithm.ranks)
    whole = build(found.meaning.algorithm, found.call).program
    for simulated in (simulate_tasks, simulate_contended):
        shares = simulated is simulate_contended

        def timed(program: Program, run: object = simulated) -> Timeline:
            assert callable(run)
            timeline: Timeline = run(program, topology, cost)
            return timeline

        repeated = found.timed(timed, shares_links=shares)
        assert repeated.total_us == pytest.approx(timed(whole).total_us, rel=1e-9)
        assert (repeated.passes, repeated.tasks) == (whole.rounds, whole.task_count)
        if not (shares and cost is SOME):  # there copies that run ahead share memory with others
            assert repeated.written < whole.rounds


def one_way() -> Xml:
    xml = Xml("custom", 2, 1, proto="LL")
    xml.tb(0, send=1).step("s", ("i", 0))
    xml.tb(1, recv=0).step("r", dst=("o", 0))
    return xml


def test_a_terabyte_by_hand() -> None:
    found = repetition_of(one_way(), 1 << 40, op="send_recv")
    topology = topology_of(2)
    repeated = found.timed(lambda p: simulate_tasks(p, topology, LINKS), shares_links=False)
    assert repeated.passes == 1 << 25
    assert repeated.written < 100
    assert repeated.total_us == pytest.approx((1 << 40) / LINK + ALPHA, rel=1e-9)
    one = ProtocolCost(launch_us=4.0, gbps=2.0)
    slower = LINKS.model_copy(update={"protocols": Protocols(ll=one)})
    repeated = found.timed(lambda p: simulate_contended(p, topology, slower), shares_links=True)
    wanted = 4.0 + (1 << 40) / 2_000 + ALPHA + LL / 2_000  # and the copy of the last message
    assert repeated.total_us == pytest.approx(wanted, rel=1e-9)


def test_what_is_never_steady_is_refused() -> None:
    found = repetition_of(ring_all_reduce(4), 4 * (60 * (2 << 20) + 4096))
    topology = topology_of(4)
    written = []

    def drifting(program: Program) -> Timeline:
        timeline = simulate_tasks(program, topology, COST)
        written.append(program.rounds)
        tasks = program.tasks
        later = 100.0 * tasks.table.round[tasks.instruction].astype(np.float64) ** 2
        return replace(timeline, end_us=timeline.end_us + later)

    with pytest.raises(
        ParameterError, match=r"own\.xml:1: of 61 passes .* first 28 come to no steady"
    ):
        found.timed(drifting, shares_links=False, most=7000)
    assert written == [14, 28]


def test_what_a_pass_takes_on_average_stands_for_others() -> None:
    xml, size = CALLS["sums that wait for others"]
    found = repetition_of(xml, size)
    topology = topology_of(3)
    whole = simulate_tasks(build(found.meaning.algorithm, found.call).program, topology, COST)

    def uneven(program: Program) -> Timeline:
        timeline = simulate_tasks(program, topology, COST)
        return replace(timeline, start_us=timeline.start_us + np.arange(len(program.tasks)) % 7)

    repeated = found.timed(uneven, shares_links=False, most=4000)
    assert repeated.written < repeated.passes
    assert 0 <= repeated.spread < 0.02
    assert repeated.total_us == pytest.approx(whole.total_us, rel=0.02)


def test_slices_are_larger_where_their_own_leave_no_room() -> None:
    found = repetition_of(ring_all_reduce(4, "LL"), 4 * 200 * LL)
    sliced = replace(found, call=found.call._replace(slice_bytes=1024))
    topology = topology_of(4)

    def timed(of: RepeatedPasses, most: int) -> RepeatedTimes:
        return of.timed(lambda p: simulate_tasks(p, topology, LINKS), shares_links=False, most=most)

    fine, coarse, whole = timed(sliced, 1 << 20), timed(sliced, 20_000), timed(found, 1 << 20)
    assert (fine.slice_bytes, whole.slice_bytes) == (None, None)
    assert coarse.slice_bytes is not None
    assert coarse.slice_bytes > 1024
    assert fine.passes == coarse.passes == 200
    assert fine.total_us < coarse.total_us < whole.total_us  # the finer, the sooner it is sent on
    with pytest.raises(ParameterError, match=r"of 200 passes .* make more than 50 tasks"):
        timed(sliced, 50)


def timeline_of(xml: Xml, passes: int) -> Timeline:
    (algorithm,) = algorithms_from(xml.text().encode(), "own.xml")
    program = import_algorithm(algorithm, meaning_of(algorithm), passes * LL * 3).require()
    assert program.rounds == passes
    return simulate_tasks(program, topology_of(3), COST)


def test_one_task_that_comes_late_is_not_steady() -> None:
    timeline = timeline_of(all_pairs("alltoall", 3), 60)
    assert steady_state(timeline, 8, 9, shares_links=False) is not None
    tasks = timeline.program.tasks
    late = timeline.end_us.copy()
    late[np.flatnonzero(tasks.table.round[tasks.instruction] == 45)[0]] += 1.0
    assert steady_state(replace(timeline, end_us=late), 8, 9, shares_links=False) is None
    assert steady_state(timeline, 8, 60, shares_links=False) is None  # too few passes


def test_hangs_show_at_any_size() -> None:
    for size, hangs in ((6 << 20, False), (1 << 40, True), (1 << 42, True)):
        (algorithm,) = algorithms_from(exchange().text().encode(), "own.xml")
        found = import_algorithm(algorithm, meaning_of(algorithm), size, repeats=True)
        report = found.report()
        names = {finding.name for finding in report.errors}
        assert names == ({"DEADLOCK_CYCLE"} if hangs else set())
        assert any("passes, of which" in note for note in report.notes) == hangs


def test_mistakes_show_at_any_size() -> None:
    xml = sums_in_scratch(3)
    for tb in xml.tbs:
        tb.steps = [step for step in tb.steps if step.type != "nop"]  # nobody waits for the second
    (algorithm,) = algorithms_from(xml.text().encode(), "own.xml")
    small, large = (
        import_algorithm(algorithm, meaning_of(algorithm), size, repeats=True).report()
        for size in (1 << 10, 1 << 36)
    )
    assert {f.name for f in small.errors} == {f.name for f in large.errors} != set()
    assert {f.source for f in small.errors} == {f.source for f in large.errors}


def test_right_algorithms_are_right_at_any_size() -> None:
    for xml in (ring_all_reduce(3, "LL128"), all_pairs("allgather", 3, inplace=1, outofplace=1)):
        (algorithm,) = algorithms_from(xml.text().encode(), "own.xml")
        found = import_algorithm(algorithm, meaning_of(algorithm), 1 << 40, repeats=True)
        assert found.report().ok
        with pytest.raises(ParameterError, match="are written out"):
            import_algorithm(algorithm, meaning_of(algorithm), 1 << 40)


@pytest.mark.parametrize(("passes", "checked"), [(99, 43), (100, 36), (101, 37), (2000, 40)])
def test_a_call_that_is_checked_uses_every_slot_twice_beside_its_ends(
    passes: int, checked: int
) -> None:
    """8 slots of LL, a message in a pass: slots are as before after 8 passes, and 9 may be under
    way. So 2 * 8 passes between 9 and a first one, and 9 and a last one: at least 36, and others
    than in the call by a multiple of 8.
    """
    found = repetition_of(sums_in_scratch(3), passes * LL)
    assert found.checked().chunk == checked * LL


def test_parts_of_ranks_stay_whole() -> None:
    """4 chunks of 3 ranks: every rank's part is 4/3 chunks, whole in shorter calls, too."""
    xml = Xml("alltoall", 3, 4, proto="LL128")
    for gpu in range(3):
        xml.tb(gpu).step("cpy", ("i", 0), ("o", 0))
    found = repetition_of(xml, 1 << 34, op="all_to_all")
    assert found.checked().chunk < found.call.chunk
    assert (found.call.chunk - found.checked().chunk) % (576_000 * found.step) == 0
