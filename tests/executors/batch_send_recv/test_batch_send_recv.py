"""BatchSendRecv: any messages at once, without a deadlock, on no more links than they need."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hccl_executors.batch_send_recv.batch_send_recv import BatchSendRecv
from hccl_py.enums import DataType, LinkKind, Mode, TaskKind
from hccl_py.op_param import OpParam, Table
from hccl_py.operators import make_operator
from hccl_py.orchestration.record import record
from hccl_py.program.program import Program
from hccl_py.topology import Topology, topology_of
from tests.executors.parts import EVEN, UNEVEN, judged

OP = OpParam("batch_send_recv", 100, DataType.FP32)


def program_of(pairs: Table, topology: Topology) -> Program:
    op = replace(OP, pairs=pairs)
    executor: Any = BatchSendRecv()
    return record(executor, op, topology, make_operator(op.name), 1 << 20)


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_messages(data: st.DataObject) -> None:
    topology = data.draw(st.sampled_from([*EVEN, *UNEVEN]))
    rank = st.integers(0, topology.size - 1)
    message = st.tuples(rank, rank, st.sampled_from([0, 1, 33, 900]))
    pairs = tuple(data.draw(st.lists(message, min_size=1, max_size=14)))
    op = replace(OP, pairs=pairs, mode=data.draw(st.sampled_from(list(Mode))))
    judged(BatchSendRecv(), op, topology, data.draw(st.sampled_from([1 << 20, 2048])))


def test_everybody_with_everybody() -> None:
    for topology in (topology_of(7, preset="mesh"), topology_of(servers=5, devices=1)):
        ranks = range(topology.size)
        judged(
            BatchSendRecv(),
            replace(OP, pairs=tuple((a, b) for a in ranks for b in ranks)),
            topology,
            1 << 20,
        )


def test_sends_go_down_and_receives_go_up() -> None:
    pairs = tuple((a, b) for a in range(5) for b in range(5))
    program = program_of(pairs, topology_of(5, preset="mesh"))
    tasks = program.tasks
    reads = tasks.table.kind[tasks.instruction] == TaskKind.READ
    acks = (tasks.table.kind[tasks.instruction] == TaskKind.NOTIFY_POST) & (tasks.end >= 0)
    mine = tasks.rank == 2
    streams = tasks.table.stream[tasks.instruction]
    peers = program.transports.peer
    assert set(streams[reads]) == {1}
    assert peers[tasks.end[reads & mine]].tolist() == [0, 1, 3, 4]
    assert peers[tasks.end[acks & mine & (streams == 0)]].tolist() == [4, 3, 1, 0]


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
