"""Events become as few notifies as hold something up."""

from hccl_py.enums import TaskKind
from hccl_py.jobs import Job
from hccl_py.topology import topology_of


def test_a_stream_waits_once_for_an_event() -> None:
    job = Job(topology_of(2))
    compute, comm = job.stream("compute"), job.stream("comm")
    compute.compute(5)
    event = compute.record()
    for _ in range(3):
        comm.wait(event)
    comm.compute(1)
    tasks = job.program().tasks
    waits = (tasks.kind == TaskKind.NOTIFY_WAIT) & (tasks.stream == 1)
    assert int(waits.sum()) == 2  # one on each rank
