"""The task documents say what the columns say, and steps say the same again."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hccl_py import Communicator
from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, ReduceOp, TaskKind
from hccl_py.simulator import simulate
from hccl_py.trace import document
from hccl_py.trace.document import resources, task_documents
from hccl_py.trace.scene import scene_of
from hccl_py.trace.steps import steps_of


@given(st.integers(1, 3), st.integers(1, 3), st.sampled_from([1, 7, 4096]))
def test_documents_and_steps_agree(servers: int, devices: int, chunk: int) -> None:
    with Communicator(servers=servers, devices=devices) as comm:
        op = OpParam("all_reduce", 100, DataType.INT64, ReduceOp.SUM)
        scene = scene_of(comm.plan(op).program, comm.topology)
        timeline = simulate(scene.program, comm.topology)
    program = scene.program
    whole, document.CHUNK = document.CHUNK, chunk
    try:
        tasks = list(task_documents(timeline))
    finally:
        document.CHUNK = whole
    assert len(tasks) == program.task_count
    steps = steps_of(scene, np.argsort(scene.bars.row))
    for task, step in zip(tasks, steps, strict=True):
        assert (task["rank"], task["stream"], task["index"]) == step.place
        assert task["kind"] == step.kind.spelling
        assert task["bytes"] == step.size
        assert task["peer"] == step.peer
        times = (task["start_us"], task["end_us"], task["effect_us"])
        assert times == (step.start_us, step.end_us, step.effect_us)
        assert (task["label"] or "", task["source"]) == (step.label, step.source)
        assert task["notify"] == (step.notify or None)
        waits_for = step.partner if step.kind is TaskKind.NOTIFY_WAIT else None
        assert task["waits_for"] == (None if waits_for is None else list(waits_for))
        for name, memory in (("src", step.src), ("dst", step.dst)):
            if memory is None:
                assert task[name] is None
            else:
                buffer = program.buffers[memory.buffer]
                found = {"rank": memory.rank, "buffer": buffer, "offset": memory.start}
                assert task[name] == found
                assert memory.stop - memory.start == task["bytes"]


def test_resources_are_those_declared_and_the_transports_there_are() -> None:
    with Communicator(ranks=11) as comm:
        op = OpParam("all_reduce", 100, DataType.FP32, ReduceOp.SUM)
        program = comm.plan(op).program
    found = resources(program)
    assert [row["rank"] for row in found] == list(range(11))
    assert Counter(row["transports"] for row in found) == {2: 11}
