"""Known faults, one per plan: every one is found under its name, at the line of the operation that
it was put into or shows at; and what is not wrong has no finding at all.
"""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from tests.mscclpp import plans
from tests.mscclpp.importing import checked, named, place
from tests.mscclpp.plans import Op, PlanText, local


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
    """A mistake: `make` gives the plan, and the operation at whose line a finding of each of the
    classes `names` stands; None where it stands at no operation.
    """

    make: Callable[[], tuple[PlanText, Op | None]]
    names: set[str]
    size: int = 1 << 10


def lost_signal() -> tuple[PlanText, Op | None]:
    plan = plans.puts_all_gather(2)
    block = plan.blocks[0][0]
    del block.ops[place(block, named(block, "signal", 1))]
    return plan, named(plan.blocks[1][0], "wait", 1)


def missing_wait() -> tuple[PlanText, Op | None]:
    plan = plans.read_reduce(2)
    block = plan.blocks[0][0]
    del block.ops[place(block, named(block, "wait"))]
    return plan, named(block, "rres")


def nobody_waits() -> tuple[PlanText, Op | None]:
    plan = plans.puts_all_gather(2)
    block = plan.blocks[0][0]
    del block.ops[place(block, named(block, "wait", 1))]
    return plan, named(plan.blocks[1][0], "signal", 1)


def wrong_offset() -> tuple[PlanText, Op | None]:
    plan = plans.read_reduce(2)
    op = named(plan.blocks[0][0], "rres")
    op["src_buff"][1]["index"] = 1
    return plan, op


def beyond_the_buffer() -> tuple[PlanText, Op | None]:
    plan = plans.puts_all_gather(2)
    op = named(plan.blocks[1][0], "put")
    op["dst_buff"][0]["index"] = 2
    return plan, op


def waits_before_signals() -> tuple[PlanText, Op | None]:
    plan = plans.read_reduce(2)
    for (block,) in plan.blocks:
        block.ops[0], block.ops[1] = block.ops[1], block.ops[0]
    return plan, plan.blocks[0][0].ops[0]


def no_double_scratch() -> tuple[PlanText, Op | None]:
    plan = plans.packet_all_gather(2, double=False)
    return plan, named(plan.blocks[0][0], "ppkt")


def packets_never_written() -> tuple[PlanText, Op | None]:
    plan = plans.packet_all_reduce(2)
    op = named(plan.blocks[0][1], "upkt")
    op["src_buff"][0]["index"] = 0
    return plan, op


def packets_written_twice() -> tuple[PlanText, Op | None]:
    plan = plans.packet_all_reduce(3)
    op = named(plan.blocks[2][0], "ppkt")
    op["dst_buff"][0]["index"] = 1  # as rank 1 does to rank 0
    return plan, op


def plain_data_among_packets() -> tuple[PlanText, Op | None]:
    plan = plans.packet_all_reduce(2)
    block = plan.blocks[0][1]
    block.nop()
    op = block.op("copy", [local("i", 1)], [local("s", 2)])
    return plan, op


def no_nop_before_the_signal() -> tuple[PlanText, Op | None]:
    plan = plans.puts_all_gather(2)
    block = plan.blocks[0][0]
    at = place(block, named(block, "signal", 1))
    del block.ops[at - 1]
    return plan, named(block, "signal", 1)


def no_nop_after_the_wait() -> tuple[PlanText, Op | None]:
    plan = plans.read_reduce(2)
    block = plan.blocks[1][0]
    at = place(block, named(block, "rres"))
    del block.ops[at - 1]
    return plan, named(block, "rres")


def no_nop_between_chunks_of_other_sizes() -> tuple[PlanText, Op | None]:
    plan = PlanText("allreduce", 1, (2, 2, 2))
    block = plan.block(0)
    block.op("copy", [local("i", 0, 2)], [local("s", 0, 2)])
    return plan, block.op("copy", [local("s", 0)], [local("o", 0)]) and block.op(
        "copy", [local("s", 1)], [local("o", 1)]
    )


def in_a_pipeline_no_nop() -> tuple[PlanText, Op | None]:
    plan = plans.pipelined_gather()
    inner = named(plan.blocks[0][1], "pipeline")["ops"]
    del inner[3]
    return plan, inner[3]


def semaphore_not_given_back() -> tuple[PlanText, Op | None]:
    plan = plans.pipelined_gather()
    inner = named(plan.blocks[0][0], "pipeline")["ops"]
    del named(plan.blocks[0][1], "pipeline")["ops"][4]
    return plan, inner[0]


def semaphore_that_begins_at_nothing() -> tuple[PlanText, Op | None]:
    plan = plans.pipelined_gather(first=0)
    return plan, named(plan.blocks[0][0], "pipeline")["ops"][0]


def room_for_two_where_there_is_one() -> tuple[PlanText, Op | None]:
    """A semaphore lets the filler go on without a look at what the sender has taken."""
    plan = plans.pipelined_gather()
    inner = named(plan.blocks[0][1], "pipeline")["ops"]
    inner[0], inner[4] = inner[4], inner[0]  # it releases first, and acquires last
    inner[0]["semaphore_ids"], inner[4]["semaphore_ids"] = [1], [0]
    return plan, inner[2]


def too_few_at_the_barrier() -> tuple[PlanText, Op | None]:
    plan = plans.barrier_between_blocks(3)
    block = plan.blocks[0][2]
    block.ops = [op for op in block.ops if op["name"] != "barrier"]
    return plan, named(plan.blocks[0][0], "barrier")


def one_comes_less_often_to_the_barrier() -> tuple[PlanText, Op | None]:
    plan = plans.barrier_between_blocks(2)
    del plan.blocks[0][1].ops[3]
    return plan, named(plan.blocks[0][0], "barrier", 1)


def no_barrier() -> tuple[PlanText, Op | None]:
    plan = plans.barrier_between_blocks(2)
    for block in plan.blocks[0]:
        block.ops = [op for op in block.ops if op["name"] != "barrier"]
        block.ops.insert(1, {"name": "nop"})
    return plan, named(plan.blocks[0][1], "copy", 0)


def puts_without_flush() -> tuple[PlanText, Op | None]:
    """A wait for the peer's data does not say that one's own has been sent: it is overwritten."""
    plan = plans.port_exchange(2, "pws")
    block = plan.blocks[0][0]
    block.op("copy", [local("o", 1)], [local("i", 1)])
    return plan, named(block, "pws")


def signal_on_a_switch() -> tuple[PlanText, Op | None]:
    plan = plans.switch_all_reduce(2)
    op = named(plan.blocks[0][0], "signal")
    op["channel_type"] = "switch"
    return plan, op


def put_with_signal_in_memory() -> tuple[PlanText, Op | None]:
    plan = plans.puts_all_gather(2)
    op = named(plan.blocks[0][0], "put")
    op["name"] = "pws"
    return plan, op


def get_of_another_chunk() -> tuple[PlanText, Op | None]:
    plan = PlanText("allgather", 2, (1, 2, 0))
    op: Op | None = None
    for rank in range(2):
        tb = plan.block(rank)
        channel = tb.channel(1 - rank)
        tb.op("copy", [local("i", 0)], [local("o", rank)])
        tb.signal(channel, name="rlxsignal")
        tb.wait(channel)
        tb.nop()
        got = tb.op(
            "get", [tb.remote(1 - rank, "i", 0)], [local("o", 1 - rank)], channel_type="memory"
        )
        tb.nop()
        tb.signal(channel)
        tb.wait(channel)
        op = op or got
        tb.ops[1]["name"] = "signal"
        tb.ops.insert(1, {"name": "nop"})
    return plan, op


def not_a_sum() -> tuple[PlanText, Op | None]:
    plan = plans.read_reduce(2)
    for (block,) in plan.blocks:
        named(block, "rres")["reduce_op"] = "max"
    return plan, named(plan.blocks[0][0], "rres")


def other_numbers_of_chunks() -> tuple[PlanText, Op | None]:
    plan = plans.read_reduce(2)
    op = named(plan.blocks[0][0], "rres")
    op["dst_buff"][1]["size"] = 2
    return plan, op


def plain_puts_into_a_half_of_scratch() -> tuple[PlanText, Op | None]:
    plan = plans.puts_all_gather(2)
    plan.chunks = (1, 2, 2)
    plan.members["use_double_scratch_buffer"] = True
    block = plan.blocks[0][0]
    op = block.op("put", [local("i", 0)], [block.remote(1, "s", 0)], channel_type="memory")
    return plan, op


def own_slot_of_a_peer() -> tuple[PlanText, Op | None]:
    plan = plans.puts_all_gather(2, inplace=True)
    block = plan.blocks[0][0]
    op = block.op("put", [local("o", 0)], [block.remote(1, "i", 0)], channel_type="memory")
    return plan, op


def too_many_channels() -> tuple[PlanText, Op | None]:
    plan = plans.puts_all_gather(2)
    for rank in range(2):
        block = plan.blocks[rank][0]
        more = [block.channel(1 - rank) for _ in range(9)]
        block.signal(*more)
        block.wait(*more)
    return plan, plan.blocks[0][0].ops[-2]


def too_many_operations() -> tuple[PlanText, Op | None]:
    plan = plans.puts_all_gather(2)
    block = plan.blocks[0][0]
    while len(block.ops) < 65:
        block.nop()
    return plan, block.ops[64]


def packets_in_a_pipeline() -> tuple[PlanText, Op | None]:
    plan = plans.packet_all_reduce(2)
    block = plan.blocks[0][1]
    (unpacked,) = block.ops
    context = {"unit_size": 1 << 20, "num_chunks": 1}
    block.ops = []
    return plan, block.op("pipeline", iter_context=context, ops=[unpacked])


def a_chunk_less_than_the_pipeline_takes() -> tuple[PlanText, Op | None]:
    """What is left of an operation's bytes is counted in 32 bits: below nothing, it is a lot."""
    plan = plans.pipelined_gather()
    for first, second in plan.blocks:
        for block in (first, second):
            named(block, "pipeline")["iter_context"]["num_chunks"] = 3
    return plan, named(plan.blocks[0][0], "pipeline")["ops"][2]


def an_operation_of_the_language_only() -> tuple[PlanText, Op | None]:
    plan = plans.switch_all_reduce(2)
    op = named(plan.blocks[0][0], "glres")
    op["name"] = "glre"
    return plan, op


def no_such_channel() -> tuple[PlanText, Op | None]:
    plan = plans.puts_all_gather(2)
    op = named(plan.blocks[0][0], "wait")
    op["channel_ids"] = [3]
    return plan, op


def no_such_buffer() -> tuple[PlanText, Op | None]:
    plan = plans.puts_all_gather(2)
    op = named(plan.blocks[0][0], "put")
    op["dst_buff"][0]["buffer_id"] = 4
    return plan, op


def no_such_semaphore() -> tuple[PlanText, Op | None]:
    plan = plans.puts_all_gather(2)
    op = plan.blocks[0][0].op("sem_release", semaphore_ids=[0])
    return plan, op


def a_channel_to_another_rank() -> tuple[PlanText, Op | None]:
    plan = plans.port_exchange(3)
    op = named(plan.blocks[0][0], "pwsf")
    op["channel_ids"] = op["channel_ids"][::-1]
    return plan, op


def packets_outside_of_scratch() -> tuple[PlanText, Op | None]:
    plan = plans.packet_all_reduce(2)
    op = named(plan.blocks[0][1], "upkt")
    op["src_buff"][0]["type"] = "o"
    return plan, op


def a_put_that_reads_a_peer() -> tuple[PlanText, Op | None]:
    plan = plans.puts_all_gather(2)
    op = named(plan.blocks[0][0], "put")
    op["src_buff"] = op["dst_buff"]
    return plan, op


FAULTS = [
    Fault(lost_signal, {"WAIT_WITHOUT_POST"}),
    Fault(missing_wait, {"RACE_RW"}),
    Fault(nobody_waits, {"UNMATCHED_POST"}),
    Fault(wrong_offset, {"WRONG_OFFSET"}),
    Fault(beyond_the_buffer, {"OUT_OF_BOUNDS"}),
    Fault(waits_before_signals, {"DEADLOCK_CYCLE"}),
    Fault(no_double_scratch, {"RACE_RW"}),
    Fault(packets_never_written, {"LOST_DEPENDENCY"}),
    Fault(packets_written_twice, {"PACKET_REUSE"}),
    Fault(plain_data_among_packets, {"PACKET_REUSE"}),
    Fault(no_nop_before_the_signal, {"MISSING_NOP"}),
    Fault(no_nop_after_the_wait, {"MISSING_NOP"}),
    Fault(no_nop_between_chunks_of_other_sizes, {"MISSING_NOP"}),
    Fault(in_a_pipeline_no_nop, {"MISSING_NOP"}),
    Fault(semaphore_not_given_back, {"LOST_DEPENDENCY", "WAIT_WITHOUT_POST"}),
    Fault(semaphore_that_begins_at_nothing, {"DEADLOCK_CYCLE"}),
    Fault(room_for_two_where_there_is_one, {"RACE_RW"}),
    Fault(too_few_at_the_barrier, {"LOST_DEPENDENCY"}),
    Fault(one_comes_less_often_to_the_barrier, {"WAIT_WITHOUT_POST"}),
    Fault(no_barrier, {"RACE_RW"}),
    Fault(puts_without_flush, {"RACE_RW"}),
    Fault(signal_on_a_switch, {"RUNTIME_LIMIT"}),
    Fault(put_with_signal_in_memory, {"RUNTIME_LIMIT"}),
    Fault(get_of_another_chunk, {"RUNTIME_LIMIT"}),
    Fault(not_a_sum, {"RUNTIME_LIMIT"}),
    Fault(other_numbers_of_chunks, {"RUNTIME_LIMIT"}),
    Fault(plain_puts_into_a_half_of_scratch, {"RUNTIME_LIMIT"}),
    Fault(own_slot_of_a_peer, {"RUNTIME_LIMIT"}),
    Fault(too_many_channels, {"RUNTIME_LIMIT"}),
    Fault(too_many_operations, {"RUNTIME_LIMIT"}),
    Fault(packets_in_a_pipeline, {"RUNTIME_LIMIT"}),
    Fault(a_chunk_less_than_the_pipeline_takes, {"OUT_OF_BOUNDS"}),
    Fault(an_operation_of_the_language_only, {"RUNTIME_LIMIT"}),
    Fault(no_such_channel, {"RUNTIME_LIMIT"}),
    Fault(no_such_buffer, {"RUNTIME_LIMIT"}),
    Fault(no_such_semaphore, {"RUNTIME_LIMIT"}),
    Fault(a_channel_to_another_rank, {"MESSAGE_MISMATCH"}),
    Fault(packets_outside_of_scratch, {"RUNTIME_LIMIT"}),
    Fault(a_put_that_reads_a_peer, {"RUNTIME_LIMIT"}),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.make.__name__)
def test_faults_are_found_where_they_are(fault: Fault) -> None:
    plan, op = fault.make()
    report = checked(plan, fault.size)
    assert not report.ok
    assert op is not None
    source = f"own.json:{plan.line(op)}"
    found = {(finding.name, finding.source) for finding in report.every()}
    assert {(name, source) for name in fault.names} & found, sorted(map(str, found))
    assert fault.names <= {finding.name for finding in report.errors}
