"""Mistakes, one a function: each changes a plan, and returns the operation at whose line it
shows.
"""

from tests.interop.mscclpp.importing import named, pipelined, place
from tests.interop.mscclpp.plans import Op, PlanText, local


def lost_signal(plan: PlanText) -> Op:
    block = plan.blocks[0][0]
    del block.ops[place(block, named(block, "signal", 1))]
    return named(plan.blocks[1][0], "wait", 1)


def missing_wait(plan: PlanText) -> Op:
    block = plan.blocks[0][0]
    del block.ops[place(block, named(block, "wait"))]
    return named(block, "rres")


def nobody_waits(plan: PlanText) -> Op:
    block = plan.blocks[0][0]
    del block.ops[place(block, named(block, "wait", 1))]
    return named(plan.blocks[1][0], "signal", 1)


def wrong_offset(plan: PlanText) -> Op:
    op = named(plan.blocks[0][0], "rres")
    op["src_buff"][1]["index"] = 1
    return op


def beyond_the_buffer(plan: PlanText) -> Op:
    op = named(plan.blocks[1][0], "put")
    op["dst_buff"][0]["index"] = 2
    return op


def waits_before_signals(plan: PlanText) -> Op:
    for (block,) in plan.blocks:
        block.ops[0], block.ops[1] = block.ops[1], block.ops[0]
    return plan.blocks[0][0].ops[0]


def no_double_scratch(plan: PlanText) -> Op:
    return named(plan.blocks[0][0], "ppkt")


def packets_never_written(plan: PlanText) -> Op:
    op = named(plan.blocks[0][1], "upkt")
    op["src_buff"][0]["index"] = 0
    return op


def packets_written_twice(plan: PlanText) -> Op:
    op = named(plan.blocks[2][0], "ppkt")
    op["dst_buff"][0]["index"] = 1  # as rank 1 does to rank 0
    return op


def plain_data_among_packets(plan: PlanText) -> Op:
    block = plan.blocks[0][1]
    block.nop()
    op = block.op("copy", [local("i", 1)], [local("s", 2)])
    return op


def no_nop_before_the_signal(plan: PlanText) -> Op:
    block = plan.blocks[0][0]
    at = place(block, named(block, "signal", 1))
    del block.ops[at - 1]
    return named(block, "signal", 1)


def no_nop_after_the_wait(plan: PlanText) -> Op:
    block = plan.blocks[1][0]
    at = place(block, named(block, "rres"))
    del block.ops[at - 1]
    return named(block, "rres")


def no_nop_between_chunks_of_other_sizes(plan: PlanText) -> Op:
    block = plan.block(0)
    block.op("copy", [local("i", 0, 2)], [local("s", 0, 2)])
    block.op("copy", [local("s", 0)], [local("o", 0)])
    return block.op("copy", [local("s", 1)], [local("o", 1)])


def no_nop_between_data_and_packets(plan: PlanText) -> Op:
    """The same bytes, but a thread takes other ones of packets than of plain data."""
    block = plan.block(0)
    block.op("copy", [local("i", 0)], [local("o", 0)])
    return block.op("cpkt", [local("o", 0)], [local("s", 0)])


def in_a_pipeline_no_nop(plan: PlanText) -> Op:
    inner = pipelined(plan.blocks[0][1])
    del inner[3]
    return inner[3]


def semaphore_not_given_back(plan: PlanText) -> Op:
    inner = pipelined(plan.blocks[0][0])
    del pipelined(plan.blocks[0][1])[4]
    return inner[0]


def semaphore_that_begins_at_nothing(plan: PlanText) -> Op:
    return pipelined(plan.blocks[0][0])[0]


def room_for_two_where_there_is_one(plan: PlanText) -> Op:
    """A semaphore lets the filler go on without a look at what the sender has taken."""
    inner = pipelined(plan.blocks[0][1])
    inner[0], inner[4] = inner[4], inner[0]  # it releases first, and acquires last
    inner[0]["semaphore_ids"], inner[4]["semaphore_ids"] = [1], [0]
    return inner[2]


def too_few_at_the_barrier(plan: PlanText) -> Op:
    block = plan.blocks[0][2]
    block.ops = [op for op in block.ops if op["name"] != "barrier"]
    return named(plan.blocks[0][0], "barrier")


def one_comes_less_often_to_the_barrier(plan: PlanText) -> Op:
    del plan.blocks[0][1].ops[3]
    return named(plan.blocks[0][0], "barrier", 1)


def no_barrier(plan: PlanText) -> Op:
    for block in plan.blocks[0]:
        block.ops = [op for op in block.ops if op["name"] != "barrier"]
        block.ops.insert(1, {"name": "nop"})
    return named(plan.blocks[0][1], "copy", 0)


def puts_without_flush(plan: PlanText) -> Op:
    """A wait for the peer's data does not say that one's own has been sent: it is overwritten."""
    block = plan.blocks[0][0]
    block.op("copy", [local("o", 1)], [local("i", 1)])
    return named(block, "pws")


def signal_on_a_switch(plan: PlanText) -> Op:
    op = named(plan.blocks[0][0], "signal")
    op["channel_type"] = "switch"
    return op


def put_with_signal_in_memory(plan: PlanText) -> Op:
    op = named(plan.blocks[0][0], "put")
    op["name"] = "pws"
    return op


def get_of_another_chunk(plan: PlanText) -> Op:
    for rank in range(2):
        tb = plan.block(rank)
        channel = tb.channel(1 - rank)
        tb.op("copy", [local("i", 0)], [local("o", rank)])
        tb.nop()
        tb.meet(channel)
        theirs = tb.remote(1 - rank, "i", 0)
        tb.op("get", [theirs], [local("o", 1 - rank)], channel_type="memory")
        tb.nop()
        tb.meet(channel)
    return named(plan.blocks[0][0], "get")


def not_a_sum(plan: PlanText) -> Op:
    for (block,) in plan.blocks:
        named(block, "rres")["reduce_op"] = "max"
    return named(plan.blocks[0][0], "rres")


def other_numbers_of_chunks(plan: PlanText) -> Op:
    op = named(plan.blocks[0][0], "rres")
    op["dst_buff"][1]["size"] = 2
    return op


def plain_puts_into_a_half_of_scratch(plan: PlanText) -> Op:
    plan.chunks = (1, 2, 2)
    plan.members["use_double_scratch_buffer"] = True
    block = plan.blocks[0][0]
    op = block.op("put", [local("i", 0)], [block.remote(1, "s", 0)], channel_type="memory")
    return op


def own_slot_of_a_peer(plan: PlanText) -> Op:
    block = plan.blocks[0][0]
    op = block.op("put", [local("o", 0)], [block.remote(1, "i", 0)], channel_type="memory")
    return op


def too_many_channels(plan: PlanText) -> Op:
    for rank in range(2):
        block = plan.blocks[rank][0]
        more = [block.channel(1 - rank) for _ in range(9)]
        block.signal(*more)
        block.wait(*more)
    return plan.blocks[0][0].ops[-2]


def too_many_operations(plan: PlanText) -> Op:
    block = plan.blocks[0][0]
    while len(block.ops) < 65:
        block.nop()
    return block.ops[64]


def packets_in_a_pipeline(plan: PlanText) -> Op:
    block = plan.blocks[0][1]
    (unpacked,) = block.ops
    context = {"unit_size": 1 << 20, "num_chunks": 1}
    block.ops = []
    return block.op("pipeline", iter_context=context, ops=[unpacked])


def a_chunk_less_than_the_pipeline_takes(plan: PlanText) -> Op:
    """What is left of an operation's bytes is counted in 32 bits: below nothing, it is a lot."""
    for first, second in plan.blocks:
        for block in (first, second):
            named(block, "pipeline")["iter_context"]["num_chunks"] = 3
    return pipelined(plan.blocks[0][0])[2]


def an_operation_of_the_language_only(plan: PlanText) -> Op:
    op = named(plan.blocks[0][0], "glres")
    op["name"] = "glre"
    return op


def no_such_channel(plan: PlanText) -> Op:
    op = named(plan.blocks[0][0], "wait")
    op["channel_ids"] = [3]
    return op


def no_such_buffer(plan: PlanText) -> Op:
    op = named(plan.blocks[0][0], "put")
    op["dst_buff"][0]["buffer_id"] = 4
    return op


def no_such_semaphore(plan: PlanText) -> Op:
    op = plan.blocks[0][0].op("sem_release", semaphore_ids=[0])
    return op


def a_channel_to_another_rank(plan: PlanText) -> Op:
    op = named(plan.blocks[0][0], "pwsf")
    op["channel_ids"] = op["channel_ids"][::-1]
    return op


def packets_outside_of_scratch(plan: PlanText) -> Op:
    op = named(plan.blocks[0][1], "upkt")
    op["src_buff"][0]["type"] = "o"
    return op


def a_put_that_reads_a_peer(plan: PlanText) -> Op:
    op = named(plan.blocks[0][0], "put")
    op["src_buff"] = op["dst_buff"]
    return op
