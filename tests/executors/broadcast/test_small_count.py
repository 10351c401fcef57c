"""The small broadcast: a tree whose steps are those of HCCL's template, whatever the root."""

from dataclasses import replace
from typing import Any

import pytest

from hccl_executors.broadcast.small_count import BroadCastSmallCountExecutor
from hccl_py.call.op_param import OpParam
from hccl_py.enums import Mode
from hccl_py.plugins.executor import Unsuitable
from hccl_py.plugins.platforms import Schedule
from hccl_py.program.program import Program
from hccl_py.simulator.chain import longest_chain
from hccl_py.topology import topology_of
from hccl_py.verifier.numeric import run_numeric
from tests.executors.flat import moves
from tests.executors.streams import streams_of
from tests.recording import op_of, recorded


def rooted(root: int, mode: Mode = Mode.OP_BASE, in_place: bool = True) -> OpParam:
    return replace(op_of("broadcast", 100, mode=mode), root=root, in_place=in_place)


def tree(ranks: int, op: OpParam) -> Program:
    return recorded(BroadCastSmallCountExecutor, op, topology_of(ranks, preset="atlas-900-a3"))


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("ranks", [3, 4, 6, 8, 13, 16])
def test_everybody_receives_once(ranks: int, mode: Mode) -> None:
    for root in {0, ranks // 2, ranks - 1}:
        program = tree(ranks, rooted(root, mode, in_place=root == 0))
        assert sum(moves(program)[0]) == ranks - 1
        assert run_numeric(program, [Schedule(root)]).wrong is None
        steps = (ranks - 1).bit_length()
        assert longest_chain(program) == (steps, 400 * steps, 0)


def test_near_ranks_come_first() -> None:
    """BroadcastHD with root 2 of 6, distances 0 1 2 3 4 5 at ranks 2 3 4 5 0 1: the root writes to
    1; 0 and 1 let 2 and 3 read, 0 and 1 let 4 and 5 read.
    """
    program = tree(6, rooted(2))
    assert streams_of(program, 2) == [
        "nothing, post, rx_ack 3, write 3, tx_data_signal 3, wait, "
        "tx_ack 4, rx_data_signal 4, "
        "post, tx_ack 0, rx_data_signal 0, wait, nothing",
        "wait, copy, post, wait, post",
    ]
    assert streams_of(program, 3) == [
        "tx_ack 2, rx_data_signal 2, tx_ack 5, rx_data_signal 5, "
        "post, tx_ack 1, rx_data_signal 1, wait, nothing",
        "wait, copy, post",
    ]
    assert streams_of(program, 4) == ["rx_ack 2, read 2, tx_data_signal 2, copy"]
    assert streams_of(program, 5) == ["rx_ack 3, read 3, tx_data_signal 3, copy"]
    assert streams_of(program, 0) == ["rx_ack 2, read 2, tx_data_signal 2"]
    assert streams_of(program, 1) == ["rx_ack 3, read 3, tx_data_signal 3"]


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        ({"servers": 2, "devices": 2}, "needs one server, there are 2"),
        ({"ranks": 2}, "which are not the same: 2 ranks"),
    ],
)
def test_refusals(shape: dict[str, Any], reason: str) -> None:
    refusal = BroadCastSmallCountExecutor().suits(rooted(0), topology_of(**shape))
    assert isinstance(refusal, Unsuitable)
    assert reason in refusal.reason
