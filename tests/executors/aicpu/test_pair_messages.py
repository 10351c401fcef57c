"""Messages between pairs of ranks on the Ascend 950."""

from hypothesis import given, settings
from hypothesis import strategies as st

import hccl_py as hccl
from hccl_executors.aicpu.pair_messages import AicpuBatchSendRecvSoleMesh, AicpuSendSole
from hccl_py.enums import DataType, TaskKind
from hccl_py.testing.calls import recorded
from hccl_py.topology import topology_of
from hccl_py.verifier.sweeps.cases import Case
from tests.executors.parts import judged

MACHINE = topology_of(servers=2, devices=2, preset="ascend950")
RANK = st.integers(0, 3)
MESSAGE = st.tuples(RANK, RANK, st.integers(0, 60))
BUFFERS = st.sampled_from((16, 64, 1 << 20))


@settings(max_examples=30, deadline=None)
@given(st.lists(MESSAGE, min_size=1, max_size=12), BUFFERS)
def test_any_messages_arrive(pairs: list[tuple[int, int, int]], ccl_bytes: int) -> None:
    op = hccl.OpParam("batch_send_recv", 0, DataType.FP32, pairs=tuple(pairs))
    judged(AicpuBatchSendRecvSoleMesh(), op, MACHINE, ccl_bytes)


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(4)), st.integers(1, 4), st.integers(1, 50), BUFFERS)
def test_ranks_send_and_receive_at_once(
    to: list[int], senders: int, count: int, ccl_bytes: int
) -> None:
    pairs = tuple(enumerate(to))[:senders]
    op = hccl.OpParam("send_recv", count, DataType.FP32, pairs=pairs)
    judged(AicpuSendSole(), op, MACHINE, ccl_bytes)


def test_of_two_messages_for_a_rank_the_larger_one_goes_first() -> None:
    op = hccl.OpParam(
        "batch_send_recv", 0, DataType.FP32, pairs=((0, 1, 2), (0, 1, 7), (2, 2, 1), (2, 2, 3))
    )
    tasks = recorded(AicpuBatchSendRecvSoleMesh, Case(MACHINE, op, 1 << 20)).tasks
    moved = tasks.size[tasks.kind == TaskKind.READ]
    assert moved.tolist() == [28, 8]
    own = slice(int(tasks.first[2]), int(tasks.first[3]))
    assert tasks.size[own][tasks.kind[own] == TaskKind.COPY].tolist() == [12, 4]
