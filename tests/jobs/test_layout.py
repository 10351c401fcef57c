"""Where the communicators of a job lie: apart from each other, and once for calls that share."""

import numpy as np

from hccl_py.call.op_param import OpParam
from hccl_py.communicator.communicator import Communicator
from hccl_py.enums import Buffer, DataType, Mode, ReduceOp
from hccl_py.jobs import Job, JobProgram
from tests.groups import group_of

SCATTER = OpParam("scatter", 24, DataType.FP32, root=0, mode=Mode.GRAPH)  # needs scratch


def all_reduce(count: int) -> OpParam:
    return OpParam("all_reduce", count, DataType.FP32, ReduceOp.SUM)


def side_by_side(world: Communicator, first: OpParam, second: OpParam) -> JobProgram:
    """Two communicators of the same ranks, each with its call."""
    with group_of(world, range(world.size)) as other:
        job = Job(world.topology)
        job.stream("one").run(world, first)
        job.stream("two").run(other, second)
        return job.program()


def test_memory_begins_at_multiples_of_512_bytes() -> None:
    with Communicator(4, buffsize_mb=1) as world:
        program = side_by_side(world, all_reduce(3), all_reduce(5))
    assert program.buffer_sizes[:, Buffer.USER_IN].tolist() == [512 + 20] * 4
    tasks = program.tasks
    reads = tasks.table.src_buffer[tasks.instruction] == Buffer.USER_IN
    starts = {
        stream: int(tasks.src_offset[reads & (tasks.stream == stream)].min()) for stream in (0, 1)
    }
    assert starts == {0: 0, 1: 512}


def test_a_communicator_without_scratch_takes_none_away() -> None:
    with Communicator(4, buffsize_mb=1) as world:
        program = side_by_side(world, SCATTER, all_reduce(3))
    assert program.buffer_sizes[:, Buffer.SCRATCH].tolist() == [4 * 96] * 4


def test_calls_of_other_sizes_with_one_tag_share_transports() -> None:
    with Communicator(4, buffsize_mb=1) as world:
        job, ops = Job(world.topology), [all_reduce(4096), all_reduce(4100)]
        stream = job.stream("comm")
        for op in ops:
            stream.run(world, op)
        plans = [world.plan(op) for op in ops]
        assert plans[0].selection.tag == plans[1].selection.tag
        assert plans[0].program.transports is not plans[1].program.transports
        both = job.program()
    assert len(both.transports) == len(plans[0].program.transports)
    assert np.array_equal(both.transports.rank, plans[0].program.transports.rank)
