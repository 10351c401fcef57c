"""Chakra execution traces (MLCommons) in and out, as jobs.

from hccl_interop.chakra import job_of, read_trace, write_trace

trace = read_trace("step")                       # step/PREFIX.RANK.et
world = hccl_py.Communicator(ranks=len(trace.ranks))
job = job_of(trace, world)
timeline = hccl_py.simulate(job.program(), world.topology)
write_trace(job, "timed", timeline)
"""

from hccl_interop.chakra.build import Roofline, job_of
from hccl_interop.chakra.folder import is_trace, read_trace
from hccl_interop.chakra.values import Trace
from hccl_interop.chakra.writing import check_folder, write_trace

__all__ = ["Roofline", "Trace", "check_folder", "is_trace", "job_of", "read_trace", "write_trace"]
