"""Known faults, one per plan: every one is found under its name, at the line of the operation that
it was put into or shows at; and what is not wrong has no finding at all.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import pytest

from tests.interop.mscclpp import faults, plans
from tests.interop.mscclpp.importing import checked, named
from tests.interop.mscclpp.plans import Op, PlanText, local


def sums_by_way_of_packets() -> PlanText:
    """A sum is stored plainly and as packets, and unpacked to the same place in two parts: threads
    that unpack are others than those that stored, and wait for their packets.
    """
    plan = plans.packet_all_reduce(2)
    plan.chunks = (2, 2, 6)
    for rank, (block, _) in enumerate(plan.blocks):
        sum_op = named(block, "respkt")
        sum_op["name"] = "recspkt"
        sum_op["dst_buff"].insert(1, local("s", 2 + rank))
        for part in range(2):
            shared = {"tb_id": part, "tbg_size": 2}
            block.op("upkt", [local("s", 2 + rank)], [local("i", rank)], tbg_info=shared)
            block.op("cpkt", [local("i", rank)], [local("s", 4 + rank)], tbg_info=shared)
            block.op("upkt", [local("s", 4 + rank)], [local("i", rank)], tbg_info=shared)
    return plan


CLEAN: dict[str, Callable[[], PlanText]] = {
    "puts": plans.puts_all_gather,
    "puts in place": lambda: plans.puts_all_gather(3, inplace=True),
    "sums that are read": plans.read_reduce,
    "packets": plans.packet_all_reduce,
    "packets that alternate": lambda: plans.packet_all_gather(3),
    "packets of three ranks in groups": lambda: plans.packet_all_reduce(3, group=2),
    "ports": lambda: plans.port_exchange(3),
    "a switch": plans.switch_all_reduce,
    "packets that keep threads in order": sums_by_way_of_packets,
    "a pipeline": plans.pipelined_gather,
    "a pipeline with room for one": lambda: plans.pipelined_gather(first=1),
    "a barrier": plans.barrier_between_blocks,
}


@pytest.mark.parametrize("repeat", [1, 2, 3])
@pytest.mark.parametrize("name", CLEAN)
def test_clean_plans_have_no_finding(name: str, repeat: int) -> None:
    report = checked(CLEAN[name](), repeat=repeat)
    assert [f"{finding.name} {finding.source}: {finding.message}" for finding in report] == []
    assert report.ok


class Fault(NamedTuple):
    """A mistake in a plan; at the line of the operation that it returns stands a finding of one of
    the classes `names`, and each of them is found.
    """

    mistake: Callable[[PlanText], Op]
    plan: Callable[[], PlanText]
    names: set[str]


PUTS = partial(plans.puts_all_gather, 2)
SUMS = partial(plans.read_reduce, 2)
PACKETS = partial(plans.packet_all_reduce, 2)
SWITCH = partial(plans.switch_all_reduce, 2)
BARRIER = partial(plans.barrier_between_blocks, 2)

FAULTS = [
    Fault(faults.lost_signal, PUTS, {"WAIT_WITHOUT_POST"}),
    Fault(faults.missing_wait, SUMS, {"RACE_RW"}),
    Fault(faults.nobody_waits, PUTS, {"UNMATCHED_POST"}),
    Fault(faults.wrong_offset, SUMS, {"WRONG_OFFSET"}),
    Fault(faults.beyond_the_buffer, PUTS, {"OUT_OF_BOUNDS"}),
    Fault(faults.waits_before_signals, SUMS, {"DEADLOCK_CYCLE"}),
    Fault(faults.no_double_scratch, partial(plans.packet_all_gather, 2, double=False), {"RACE_RW"}),
    Fault(faults.packets_never_written, PACKETS, {"LOST_DEPENDENCY"}),
    Fault(faults.packets_written_twice, partial(plans.packet_all_reduce, 3), {"PACKET_REUSE"}),
    Fault(faults.plain_data_among_packets, PACKETS, {"PACKET_REUSE"}),
    Fault(faults.no_nop_before_the_signal, PUTS, {"MISSING_NOP"}),
    Fault(faults.no_nop_after_the_wait, SUMS, {"MISSING_NOP"}),
    Fault(
        faults.no_nop_between_chunks_of_other_sizes,
        partial(PlanText, "allreduce", 1, (2, 2, 2)),
        {"MISSING_NOP"},
    ),
    Fault(
        faults.no_nop_between_data_and_packets,
        partial(PlanText, "allreduce", 1, (1, 1, 1), protocol="LL"),
        {"MISSING_NOP"},
    ),
    Fault(faults.in_a_pipeline_no_nop, plans.pipelined_gather, {"MISSING_NOP"}),
    Fault(
        faults.semaphore_not_given_back,
        plans.pipelined_gather,
        {"LOST_DEPENDENCY", "WAIT_WITHOUT_POST"},
    ),
    Fault(
        faults.semaphore_that_begins_at_nothing,
        partial(plans.pipelined_gather, first=0),
        {"DEADLOCK_CYCLE"},
    ),
    Fault(faults.room_for_two_where_there_is_one, plans.pipelined_gather, {"RACE_RW"}),
    Fault(
        faults.too_few_at_the_barrier, partial(plans.barrier_between_blocks, 3), {"LOST_DEPENDENCY"}
    ),
    Fault(faults.one_comes_less_often_to_the_barrier, BARRIER, {"WAIT_WITHOUT_POST"}),
    Fault(faults.no_barrier, BARRIER, {"RACE_RW"}),
    Fault(faults.puts_without_flush, partial(plans.port_exchange, 2, "pws"), {"RACE_RW"}),
    Fault(faults.signal_on_a_switch, SWITCH, {"RUNTIME_LIMIT"}),
    Fault(faults.put_with_signal_in_memory, PUTS, {"RUNTIME_LIMIT"}),
    Fault(
        faults.get_of_another_chunk, partial(PlanText, "allgather", 2, (1, 2, 0)), {"RUNTIME_LIMIT"}
    ),
    Fault(faults.not_a_sum, SUMS, {"RUNTIME_LIMIT"}),
    Fault(faults.other_numbers_of_chunks, SUMS, {"RUNTIME_LIMIT"}),
    Fault(faults.plain_puts_into_a_half_of_scratch, PUTS, {"RUNTIME_LIMIT"}),
    Fault(
        faults.own_slot_of_a_peer,
        partial(plans.puts_all_gather, 2, inplace=True),
        {"RUNTIME_LIMIT"},
    ),
    Fault(faults.too_many_channels, PUTS, {"RUNTIME_LIMIT"}),
    Fault(faults.too_many_operations, PUTS, {"RUNTIME_LIMIT"}),
    Fault(faults.packets_in_a_pipeline, PACKETS, {"RUNTIME_LIMIT"}),
    Fault(faults.a_chunk_less_than_the_pipeline_takes, plans.pipelined_gather, {"OUT_OF_BOUNDS"}),
    Fault(faults.an_operation_of_the_language_only, SWITCH, {"RUNTIME_LIMIT"}),
    Fault(faults.no_such_channel, PUTS, {"RUNTIME_LIMIT"}),
    Fault(faults.no_such_buffer, PUTS, {"RUNTIME_LIMIT"}),
    Fault(faults.no_such_semaphore, PUTS, {"RUNTIME_LIMIT"}),
    Fault(faults.a_channel_to_another_rank, partial(plans.port_exchange, 3), {"MESSAGE_MISMATCH"}),
    Fault(faults.packets_outside_of_scratch, PACKETS, {"RUNTIME_LIMIT"}),
    Fault(faults.a_put_that_reads_a_peer, PUTS, {"RUNTIME_LIMIT"}),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.mistake.__name__)
def test_faults_are_found_where_they_are(fault: Fault) -> None:
    plan = fault.plan()
    op = fault.mistake(plan)
    report = checked(plan)
    assert not report.ok
    source = f"own.json:{plan.line(op)}"
    found = {(finding.name, finding.source) for finding in report.every()}
    assert {(name, source) for name in fault.names} & found, sorted(map(str, found))
    assert fault.names <= {finding.name for finding in report.errors}
