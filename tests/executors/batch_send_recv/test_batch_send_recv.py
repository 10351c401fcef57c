"""BatchSendRecv: any messages at once, without a deadlock, on no more links than they need."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_executors.batch_send_recv.batch_send_recv import BatchSendRecv
from hccl_executors.batch_send_recv.group import BatchSendRecvGroup
from hccl_py.call.op_param import OpParam, Table
from hccl_py.enums import DataType, LinkKind, Mode, TaskKind
from hccl_py.operators import make_operator
from hccl_py.orchestration.record import record
from hccl_py.program.program import Program
from hccl_py.simulator.chain import longest_chain
from hccl_py.topology import Topology, topology_of
from tests.executors.parts import EVEN, UNEVEN, judged
from tests.executors.streams import streams_of

OP = OpParam("batch_send_recv", 100, DataType.FP32)


def program_of(pairs: Table, topology: Topology, ccl_bytes: int = 1 << 20) -> Program:
    op = replace(OP, pairs=pairs)
    executor: Any = BatchSendRecv()
    return record(executor, op, topology, make_operator(op.name), ccl_bytes)


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_messages(data: st.DataObject) -> None:
    topology = data.draw(st.sampled_from([*EVEN, *UNEVEN]))
    rank = st.integers(0, topology.size - 1)
    message = st.tuples(rank, rank, st.sampled_from([0, 1, 33, 900]))
    pairs = tuple(data.draw(st.lists(message, min_size=1, max_size=14)))
    op = replace(OP, pairs=pairs, mode=data.draw(st.sampled_from(list(Mode))))
    judged(BatchSendRecv(), op, topology, data.draw(st.sampled_from([1 << 20, 2048])))


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_messages_of_a_group(data: st.DataObject) -> None:
    topology = data.draw(st.sampled_from([*EVEN, *UNEVEN]))
    rank = st.integers(0, topology.size - 1)
    message = st.tuples(rank, rank, st.sampled_from([0, 1, 33, 900]))
    pairs = tuple(data.draw(st.lists(message, min_size=1, max_size=14)))
    op = replace(OP, pairs=pairs)
    judged(BatchSendRecvGroup(), op, topology, data.draw(st.sampled_from([1 << 20, 2048])))


def test_groups_have_no_graph_mode() -> None:
    verdict = BatchSendRecvGroup().suits(replace(OP, mode=Mode.GRAPH), topology_of(4))
    assert "op-base mode only" in repr(verdict)


def test_a_group_sends_to_several_ranks_at_once() -> None:
    """All messages of 8 ranks take as long as the longest lane: one message."""
    pairs = tuple((a, b) for a in range(8) for b in range(8) if a != b)
    op, executor = replace(OP, pairs=pairs), BatchSendRecvGroup()
    operator = make_operator(op.name)
    program = record(executor, op, topology_of(8, preset="mesh"), operator, 1 << 20)
    chain = longest_chain(program)
    assert (chain.steps, chain.moved) == (1, 400)


def test_everybody_with_everybody() -> None:
    for topology in (topology_of(7, preset="mesh"), topology_of(servers=5, devices=1)):
        ranks = range(topology.size)
        op = replace(OP, pairs=tuple((a, b) for a in ranks for b in ranks))
        for executor in (BatchSendRecv(), BatchSendRecvGroup()):
            judged(executor, op, topology, 1 << 20)


SDMA_SEND = "copy, tx_ack {0}, rx_data_signal {0}"
SDMA_RECEIVE = "rx_ack {0}, read {0}, tx_data_signal {0}, copy"
RDMA_SEND = "copy, rx_ack {0}, rdma_write {0}, tx_data_signal {0}, rx_data_ack {0}"
RDMA_RECEIVE = "tx_ack {0}, rx_data_signal {0}, tx_data_ack {0}, copy"


@pytest.mark.parametrize(
    ("topology", "send", "receive"),
    [
        (topology_of(5, preset="mesh"), SDMA_SEND, SDMA_RECEIVE),
        (topology_of(servers=5, devices=1), RDMA_SEND, RDMA_RECEIVE),
    ],
    ids=["SDMA", "RDMA"],
)
def test_the_order_is_pairwise(topology: Topology, send: str, receive: str) -> None:
    """Rank 2 of 5 sends to 1, 0, 4, 3 and receives from 3, 4, 0, 1, whatever the list's order."""
    pairs = tuple((a, b) for a in range(5) for b in range(5))
    main, sub = streams_of(program_of(pairs, topology), 2)
    assert main == ", ".join(["copy, post", *map(send.format, (1, 0, 4, 3)), "wait"])
    assert sub == ", ".join(["wait", *map(receive.format, (3, 4, 0, 1)), "post"])


def test_a_shift_at_a_time() -> None:
    """Steps are permutations: all messages of 8 ranks take 7 steps, not 13 with one receiver for
    all senders.
    """
    pairs = tuple((a, b) for a in range(8) for b in range(8) if a != b)
    chain = longest_chain(program_of(pairs, topology_of(8, preset="mesh")))
    assert (chain.steps, chain.moved) == (7, 7 * 400)


def test_messages_go_in_slices_of_a_buffer_one_after_the_other() -> None:
    """2 048 bytes hold 512 elements: 900 of them are two slices, before anything goes to rank 2;
    nothing is sent of an empty message.
    """
    program = program_of(((1, 2, 3), (1, 0, 900), (1, 0, 0)), topology_of(3, preset="mesh"), 2048)
    tasks = program.tasks
    sizes = {
        rank: tasks.size[(tasks.rank == rank) & (tasks.kind == TaskKind.READ)] for rank in (0, 2)
    }
    assert sizes[0].tolist() == [2048, 1552]
    assert sizes[2].tolist() == [12]
    assert streams_of(program, 1)[0] == ", ".join(
        ["post", *map(SDMA_SEND.format, (0, 0, 2)), "wait"]
    )


def test_links_join_only_those_who_have_messages() -> None:
    program = program_of(((0, 3), (3, 0), (3, 0), (1, 1)), topology_of(4, preset="mesh"))
    ends = zip(program.transports.rank.tolist(), program.transports.peer.tolist(), strict=True)
    assert sorted(ends) == [(0, 3), (0, 3), (3, 0), (3, 0)]


def test_two_streams_share_no_connection() -> None:
    program = program_of(((0, 1), (1, 0)), topology_of(servers=2, devices=1))
    tasks = program.tasks
    used = tasks.end >= 0
    streams = tasks.table.stream[tasks.instruction][used]
    assert (program.transports.kind == LinkKind.RDMA).all()
    for end in range(len(program.transports)):
        assert len(set(streams[tasks.end[used] == end])) == 1


@pytest.mark.sweep
def test_a_thousand_ranks() -> None:
    rng = np.random.default_rng(3)
    src, dst = rng.integers(0, 1024, (2, 3000)).tolist()
    program = program_of(tuple(zip(src, dst, strict=True)), topology_of(1024))
    moved = int((program.tasks.table.moves_data[program.tasks.instruction]).sum())
    assert moved >= 3000
    assert len(program.batches) < 1024
