"""Executors of one rank, held against HCCL's: what is copied, as nobody else is there.

impl/coll_executor of libochao-huawei/hcomm @ 8958adb (src/legacy/ascend910/algorithm): KernelRun of
coll_*/coll_*_single_rank_executor.cc. One copy on main from the user's input to the output, of all
data whatever a CCL buffer holds (:27 and :63 of coll_all_gather/coll_all_gather_executor.cc and
its likes: no loop), none where both are one buffer; no sub streams, no notifies, no links.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from hccl_py.enums import Mode, TaskKind
from hccl_py.plugins.executor import ops_of
from hccl_py.topology import Topology, topology_of
from tests.executors.fidelity.held import EXECUTOR, Held, Holders
from tests.recording import filled, op_of, recorded

NAMES = (
    "AllGatherSingleExecutor",
    "AllReduceSingleExecutor",
    "ReduceScatterSingleExecutor",
    "ReduceSingleExecutor",
    "RunAlltoAllSingleExecutor",
    "ScatterSingleExecutor",
)
ALONE = topology_of(1)
CCL = 1 << 10


def _held(name: str, at: Topology, mode: Mode) -> Iterator[Held]:
    """Nothing that another rank could see, for data that is more than a CCL buffer holds."""
    for op in ops_of(EXECUTOR[name]()):
        yield Held(filled(op_of(op, 1000, mode=mode), at.size), lambda rank: [[]], CCL)


HELD: Holders = dict.fromkeys(NAMES, _held)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("name", NAMES)
def test_one_copy_of_everything(name: str, mode: Mode) -> None:
    for op in ops_of(EXECUTOR[name]()):
        call = filled(op_of(op, 1000, mode=mode), 1)
        program = recorded(name, call, ALONE, CCL)
        tasks, table = program.tasks, program.tasks.table
        [kind], [row] = tasks.kind.tolist(), tasks.instruction.tolist()
        assert TaskKind(kind) is TaskKind.COPY
        buffers = (table.src_buffer[row], table.dst_buffer[row])
        assert [program.buffers[number] for number in buffers] == ["IN", "OUT"]
        sized = tasks.src_offset, tasks.dst_offset, tasks.size
        assert [column.tolist() for column in sized] == [[0], [0], [4000]]
        assert (program.streams, program.declared.sub_streams.tolist()) == (1, [0])
        assert program.transports.cells == 0


@pytest.mark.parametrize("name", NAMES[:3])
def test_nothing_in_place(name: str) -> None:
    """execMem.inputPtr == execMem.outputPtr. A reduce and a scatter copy the buffer to itself
    there, which is left out.
    """
    [op] = ops_of(EXECUTOR[name]())
    program = recorded(name, replace(op_of(op, 1000), in_place=True), ALONE, CCL)
    assert program.task_count == 0
