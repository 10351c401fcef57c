"""Jobs: computation and several communicators on one timeline.

    job = Job(world.topology)
    compute, comm = job.stream("compute"), job.stream("dp")
    compute.compute(950.0, "backward layer 12")
    comm.wait(compute.record())
    comm.run(world, op, "bucket 0")
    compute.wait(comm.record())
    report = overlap(hccl_py.simulate(job.program(), world.topology))

A job says what every rank issues on its streams; the host never blocks. It ends as one program,
which is verified, timed, drawn and written like any other.
"""

from hccl_py.jobs.job import Job, JobStream
from hccl_py.jobs.overlap import Overlap, overlap
from hccl_py.jobs.program import JobProgram
from hccl_py.jobs.steps import Event
from hccl_py.jobs.terminal import draw_overlap

__all__ = ["Event", "Job", "JobProgram", "JobStream", "Overlap", "draw_overlap", "overlap"]
