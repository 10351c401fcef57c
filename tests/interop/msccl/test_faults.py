"""Known faults, one per algorithm: every one is found under its name, at the line of the XML that
it was put into or shows at; and what is not wrong has no finding at all.
"""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from hccl_interop.msccl import algorithms_from, import_algorithm, meaning_of
from hccl_py.importers import Imported
from hccl_py.verifier import Options, Report
from tests.interop.msccl.xmls import (
    Step,
    Xml,
    all_pairs,
    exchange,
    ring_all_reduce,
    sums_in_scratch,
)


def imported(xml: Xml, size: int = 1 << 10, op: str | None = None) -> Imported:
    (algorithm,) = algorithms_from(xml.text().encode(), "own.xml")
    return import_algorithm(algorithm, meaning_of(algorithm, op), size)


def checked(xml: Xml, size: int = 1 << 10, repeat: int = 2) -> Report:
    return imported(xml, size).report(Options(repeat=repeat))


CLEAN: dict[str, Callable[[], Xml]] = {
    "a ring in place": lambda: ring_all_reduce(4),
    "a ring out of place": lambda: ring_all_reduce(3, inplace=0),
    "a ring on two channels": lambda: ring_all_reduce(3, "LL128", channels=2),
    "a ring of two": lambda: ring_all_reduce(2, "LL"),
    "all pairs, in and out of place": lambda: all_pairs("allgather", 3, inplace=1, outofplace=1),
    "all pairs, in place": lambda: all_pairs("allgather", 3, inplace=1, outofplace=0),
    "an exchange": lambda: all_pairs("alltoall", 4, "Simple"),
    "sums that wait for other threadblocks": lambda: sums_in_scratch(4),
    "an exchange of three chunks": lambda: exchange(),
}


@pytest.mark.parametrize("repeat", [pytest.param(1, marks=pytest.mark.sweep), 2])
@pytest.mark.parametrize("name", CLEAN)
def test_clean_algorithms_have_no_finding(name: str, repeat: int) -> None:
    report = checked(CLEAN[name](), repeat=repeat)
    assert [f"{finding.name} {finding.source}: {finding.message}" for finding in report] == []
    assert report.ok


class Fault(NamedTuple):
    """A mistake: `make` gives the algorithm, and the step at whose line errors of the classes
    `names` stand, or the text of that line. `besides` are errors that follow from it elsewhere.
    """

    make: Callable[[], tuple[Xml, Step | str]]
    names: set[str]
    besides: frozenset[str] | set[str] = frozenset()


def no_wait_for_the_other_threadblock() -> tuple[Xml, Step | str]:
    xml = sums_in_scratch(2)
    step = xml.tbs[1].steps[1]
    step.dep = (-1, -1)
    return xml, step


def no_wait_of_a_nop() -> tuple[Xml, Step | str]:
    xml = sums_in_scratch(3)
    del xml.tbs[2].steps[1]
    return xml, xml.tbs[2].steps[2]


def two_receives_into_one_chunk() -> tuple[Xml, Step | str]:
    xml = sums_in_scratch(3)
    xml.tbs[0].steps[1].dst = ("s", 2)
    return xml, xml.tbs[1].steps[1]


def a_copy_beside_its_source() -> tuple[Xml, Step | str]:
    xml = all_pairs("allgather", 3)
    step = xml.tbs[1].step("cpy", ("i", 0), ("o", 0)).steps[-1]
    return xml, step


def three_sends_before_the_first_receive() -> tuple[Xml, Step | str]:
    xml = Xml("alltoall", 2, 6)
    for gpu in range(2):
        xml.tb(gpu).step("cpy", ("i", 3 * gpu), ("o", 3 * gpu), cnt=3)
        tb = xml.tb(gpu, send=1 - gpu, recv=1 - gpu)
        for k in range(3):
            tb.step("s", ("i", 3 * (1 - gpu) + k))
        for k in range(3):
            tb.step("r", dst=("o", 3 * (1 - gpu) + k))
    return xml, xml.tbs[1].steps[2]


def both_receive_first() -> tuple[Xml, Step | str]:
    xml = exchange()
    for tb in (xml.tbs[1], xml.tbs[3]):
        tb.steps.reverse()
    return xml, xml.tbs[1].steps[0]


def threadblocks_wait_for_each_other() -> tuple[Xml, Step | str]:
    xml = sums_in_scratch(2)
    for tb in xml.tbs[:2]:
        tb.steps[0].dep, tb.steps[1].hasdep = (1 - tb.id, 1), 1
    return xml, xml.tbs[0].steps[0]


def a_step_waits_for_a_later_one() -> tuple[Xml, Step | str]:
    xml = sums_in_scratch(2)
    xml.tbs[0].steps[0].dep = (0, 1)
    return xml, xml.tbs[0].steps[0]


def nobody_says_so() -> tuple[Xml, Step | str]:
    xml = sums_in_scratch(2)
    xml.tbs[0].steps[1].hasdep = 0
    return xml, xml.tbs[1].steps[1]


def no_such_threadblock() -> tuple[Xml, Step | str]:
    xml = sums_in_scratch(2)
    xml.tbs[1].steps[1].dep = (5, 1)
    return xml, xml.tbs[1].steps[1]


def no_such_step() -> tuple[Xml, Step | str]:
    xml = sums_in_scratch(2)
    xml.tbs[1].steps[1].dep = (0, 2)
    return xml, xml.tbs[1].steps[1]


def a_step_before_the_first() -> tuple[Xml, Step | str]:
    xml = sums_in_scratch(2)
    xml.tbs[1].steps[1].dep = (0, -1)
    return xml, xml.tbs[1].steps[1]


def a_chunk_from_elsewhere() -> tuple[Xml, Step | str]:
    xml = all_pairs("alltoall", 3)
    xml.tbs[1].steps[0].src = ("i", 2)  # what GPU 0 sends to 1
    return xml, xml.tbs[3].steps[1]


def chunks_exchanged_on_arrival() -> tuple[Xml, Step | str]:
    xml = all_pairs("allgather", 3)
    first, second = xml.tbs[1].steps[1], xml.tbs[2].steps[1]
    first.dst, second.dst = second.dst, first.dst
    return xml, first


def own_chunk_never_copied() -> tuple[Xml, Step | str]:
    xml = all_pairs("allgather", 3)
    del xml.tbs[0].steps[0]
    return xml, ""


def beyond_the_scratch() -> tuple[Xml, Step | str]:
    xml = sums_in_scratch(2)
    xml.tbs[0].steps[1].dst = ("s", 2)
    return xml, xml.tbs[0].steps[1]


def a_copy_in_place_of_a_sum() -> tuple[Xml, Step | str]:
    xml = ring_all_reduce(3)
    xml.tbs[0].steps[1].type = "rcs"
    return xml, xml.tbs[0].steps[-1]


def a_receive_in_place_of_a_sum() -> tuple[Xml, Step | str]:
    xml = sums_in_scratch(2)
    xml.tbs[1].steps[1].type = "cpy"
    return xml, xml.tbs[1].steps[1]


def a_sum_in_place_of_a_receive() -> tuple[Xml, Step | str]:
    xml = ring_all_reduce(3)
    step = xml.tbs[0].steps[-1]
    step.type = "rrc"
    return xml, step


def added_twice() -> tuple[Xml, Step | str]:
    xml = sums_in_scratch(2)
    step = xml.tbs[1].step("re", ("s", 1), ("o", 0)).steps[-1]
    return xml, step


def never_added() -> tuple[Xml, Step | str]:
    xml = sums_in_scratch(3)
    del xml.tbs[2].steps[-1]
    return xml, xml.tbs[2].steps[-1]


def scratch_that_nobody_wrote() -> tuple[Xml, Step | str]:
    xml = sums_in_scratch(2)
    xml.tbs[1].steps[1].src = ("s", 0)
    return xml, xml.tbs[1].steps[1]


def shorter_than_its_send() -> tuple[Xml, Step | str]:
    xml = exchange()
    xml.tbs[3].steps[1].cnt = 2
    return xml, xml.tbs[3].steps[1]


def never_received() -> tuple[Xml, Step | str]:
    xml = exchange()
    step = xml.tbs[1].step("s", ("i", 0)).steps[-1]
    return xml, step


def never_sent() -> tuple[Xml, Step | str]:
    xml = all_pairs("allgather", 2)
    step = xml.tbs[1].step("r", dst=("o", 1)).steps[-1]
    return xml, step


def many_steps() -> tuple[Xml, Step | str]:
    xml = all_pairs("allgather", 2)
    for _ in range(64):
        xml.tbs[0].step("cpy", ("i", 0), ("o", 0))
    return xml, xml.tbs[0].steps[64]


def many_threadblocks() -> tuple[Xml, Step | str]:
    xml = all_pairs("allgather", 2)
    for _ in range(63):
        xml.tb(0)
    return xml, '  <gpu id="0"'


def many_chunks_at_once() -> tuple[Xml, Step | str]:
    xml = Xml("allreduce", 2, 144)
    xml.usual = (144, 144, 144)
    for gpu in range(2):
        tb = xml.tb(gpu, send=1 - gpu, recv=1 - gpu)
        for half in range(2):
            tb.step("s", ("i", 72 * half), cnt=72).step("r", dst=("s", 72 * half), cnt=72)
        tb.step("cpy", ("i", 0), ("o", 0), cnt=71).step("cpy", ("i", 71), ("o", 71), cnt=71)
        tb.step("cpy", ("i", 142), ("o", 142), cnt=2)
        tb.step("re", ("s", 0), ("o", 0), cnt=71).step("re", ("s", 71), ("o", 71), cnt=71)
        tb.step("re", ("s", 142), ("o", 142), cnt=2)
    return xml, xml.tbs[0].steps[0]


def a_gap_between_ids() -> tuple[Xml, Step | str]:
    xml = all_pairs("allgather", 2)
    xml.tbs[1].id = 4
    return xml, '  <gpu id="0"'


def a_gap_between_steps() -> tuple[Xml, Step | str]:
    xml = all_pairs("allgather", 2)
    xml.tbs[1].steps[1].s = 2
    return xml, xml.tbs[1].steps[1]


def a_nop_before_a_step_that_waits_for_nothing() -> tuple[Xml, Step | str]:
    xml = sums_in_scratch(3)
    tb = xml.tbs[2]
    tb.steps.insert(2, Step("nop", ("i", -1), ("o", -1), 0, dep=(0, 1)))
    tb.steps[3].dep = (-1, -1)
    return xml, tb.steps[2]


def a_channel_too_many() -> tuple[Xml, Step | str]:
    xml = all_pairs("allgather", 2)
    xml.tbs[1].chan = xml.tbs[2].chan = 1
    return xml, '    <tb id="1" send="1"'


def two_senders_on_a_connection() -> tuple[Xml, Step | str]:
    xml = exchange()
    step = xml.tb(0, send=1, recv=-1).step("s", ("i", 0)).steps[-1]
    return xml, step


def a_send_to_nobody() -> tuple[Xml, Step | str]:
    xml = all_pairs("allgather", 2)
    step = xml.tbs[0].step("s", ("i", 0)).steps[-1]
    return xml, step


def chunks_that_do_not_add_up() -> tuple[Xml, Step | str]:
    xml = all_pairs("allgather", 2)
    xml.chunks[1] = (1, 3, 0)
    return xml, '  <gpu id="1"'


def input_overwritten_in_place() -> tuple[Xml, Step | str]:
    xml = ring_all_reduce(2, inplace=0)
    xml.attributes |= {"inplace": 1, "outofplace": 1}
    xml.tbs[0].steps.insert(0, Step("cpy", ("i", 0), ("o", 1), 1))
    return xml, xml.tbs[0].steps[2]


FAULTS = [
    Fault(no_wait_for_the_other_threadblock, {"RACE_RW"}),
    Fault(no_wait_of_a_nop, {"RACE_RW"}),
    Fault(two_receives_into_one_chunk, {"RACE_WW"}, {"READ_UNDEFINED"}),
    Fault(a_copy_beside_its_source, {"RACE_WW"}),
    Fault(three_sends_before_the_first_receive, {"DEADLOCK_CYCLE"}),
    Fault(both_receive_first, {"DEADLOCK_CYCLE"}),
    Fault(threadblocks_wait_for_each_other, {"DEADLOCK_CYCLE"}),
    Fault(a_step_waits_for_a_later_one, {"DEADLOCK_CYCLE"}),
    Fault(nobody_says_so, {"LOST_DEPENDENCY", "WAIT_WITHOUT_POST"}),
    Fault(no_such_threadblock, {"LOST_DEPENDENCY", "WAIT_WITHOUT_POST"}),
    Fault(no_such_step, {"LOST_DEPENDENCY", "WAIT_WITHOUT_POST"}),
    Fault(a_step_before_the_first, {"LOST_DEPENDENCY", "RACE_RW"}),
    Fault(a_chunk_from_elsewhere, {"WRONG_OFFSET"}),
    Fault(chunks_exchanged_on_arrival, {"WRONG_SOURCE"}),
    Fault(own_chunk_never_copied, {"OUTPUT_MISSING"}),
    Fault(beyond_the_scratch, {"OUT_OF_BOUNDS", "RUNTIME_LIMIT"}, {"READ_UNDEFINED"}),
    Fault(a_copy_in_place_of_a_sum, {"MISSING_CONTRIBUTION"}),
    Fault(a_receive_in_place_of_a_sum, {"MISSING_CONTRIBUTION"}),
    Fault(a_sum_in_place_of_a_receive, {"DOUBLE_CONTRIBUTION"}),
    Fault(added_twice, {"DOUBLE_CONTRIBUTION"}),
    Fault(never_added, {"MISSING_CONTRIBUTION"}),
    Fault(scratch_that_nobody_wrote, {"READ_UNDEFINED"}),
    Fault(shorter_than_its_send, {"MESSAGE_MISMATCH"}, {"OUTPUT_MISSING"}),
    Fault(never_received, {"MESSAGE_MISMATCH", "UNMATCHED_POST"}),
    Fault(never_sent, {"MESSAGE_MISMATCH", "WAIT_WITHOUT_POST"}),
    Fault(many_steps, {"RUNTIME_LIMIT"}),
    Fault(many_threadblocks, {"RUNTIME_LIMIT"}),
    Fault(many_chunks_at_once, {"RUNTIME_LIMIT"}),
    Fault(a_gap_between_ids, {"RUNTIME_LIMIT"}),
    Fault(a_gap_between_steps, {"RUNTIME_LIMIT"}),
    Fault(a_nop_before_a_step_that_waits_for_nothing, {"RUNTIME_LIMIT"}),
    Fault(a_channel_too_many, {"RUNTIME_LIMIT"}),
    Fault(two_senders_on_a_connection, {"RUNTIME_LIMIT"}),
    Fault(a_send_to_nobody, {"RUNTIME_LIMIT"}),
    Fault(chunks_that_do_not_add_up, {"RUNTIME_LIMIT"}),
    Fault(input_overwritten_in_place, {"INPLACE_CLOBBER"}),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.make.__name__)
def test_fault_is_named_at_its_line(fault: Fault) -> None:
    xml, place = fault.make()
    lines = xml.text().splitlines()
    report = checked(xml)
    told = [f"{finding.name} {finding.source}: {finding.message}" for finding in report]
    assert {finding.name for finding in report.errors} == fault.names | fault.besides, told
    if isinstance(place, Step):
        line = place.line
    elif place:
        line = next(n for n, text in enumerate(lines, 1) if text.startswith(place))
    else:
        return  # what is missing stands on no line
    at_line = {f.name for f in report.errors if f.source == f"own.xml:{line}"}
    assert fault.names <= at_line, (line, told)


def test_there_are_enough_faults() -> None:
    assert len(FAULTS) >= 30
    assert len({name for fault in FAULTS for name in fault.names}) >= 14


def test_findings_speak_of_messages_and_steps() -> None:
    xml, _ = three_sends_before_the_first_receive()
    (finding,) = checked(xml).errors
    words = (
        "r0.s2.t9 is the free slot for message 2 of 0→1 on channel 0, step 2 (s) of threadblock 1"
    )
    assert words in finding.message
    assert "of GPU 0, line 9" in finding.message
