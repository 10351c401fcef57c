"""hccl-py: author, verify, time and run collective algorithms for Ascend NPUs, in Python.

    import numpy as np
    import hccl_py as hccl

    comm = hccl.Communicator(ranks=4)
    result = comm.all_gather([np.full(5, r + 1.0, np.float32) for r in range(4)])

Names are loaded when they are first used, so that `import hccl_py` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hccl_py import moved

if TYPE_CHECKING:
    from hccl_py.call.op_param import OpParam as OpParam
    from hccl_py.communicator.communicator import Communicator as Communicator
    from hccl_py.communicator.groups import ParallelGroups as ParallelGroups
    from hccl_py.communicator.groups import parallel_groups as parallel_groups
    from hccl_py.communicator.pending import Pending as Pending
    from hccl_py.communicator.pending import Result as Result
    from hccl_py.communicator.planning import Plan as Plan
    from hccl_py.enums import DataType as DataType
    from hccl_py.enums import Mode as Mode
    from hccl_py.enums import ReduceOp as ReduceOp
    from hccl_py.errors import HcclError as HcclError
    from hccl_py.errors import HcclResult as HcclResult
    from hccl_py.formats import load as load
    from hccl_py.jobs import Job as Job
    from hccl_py.orchestration.entry import record as record
    from hccl_py.plugins.platforms import Adversary as Adversary
    from hccl_py.plugins.platforms import Schedule as Schedule
    from hccl_py.program.program import Program as Program
    from hccl_py.selection import Selection as Selection
    from hccl_py.simulator.entry import simulate as simulate
    from hccl_py.topology import Topology as Topology
    from hccl_py.topology import topology_of as topology_of
    from hccl_py.verifier.entry import verify as verify

__version__ = "0.2.0"

_HOMES = {
    "Adversary": "hccl_py.plugins.platforms",
    "Communicator": "hccl_py.communicator.communicator",
    "DataType": "hccl_py.enums",
    "HcclError": "hccl_py.errors",
    "HcclResult": "hccl_py.errors",
    "Job": "hccl_py.jobs",
    "Mode": "hccl_py.enums",
    "OpParam": "hccl_py.call.op_param",
    "ParallelGroups": "hccl_py.communicator.groups",
    "Pending": "hccl_py.communicator.pending",
    "Plan": "hccl_py.communicator.planning",
    "Program": "hccl_py.program.program",
    "ReduceOp": "hccl_py.enums",
    "Result": "hccl_py.communicator.pending",
    "Schedule": "hccl_py.plugins.platforms",
    "Selection": "hccl_py.selection",
    "Topology": "hccl_py.topology",
    "load": "hccl_py.formats",
    "parallel_groups": "hccl_py.communicator.groups",
    "record": "hccl_py.orchestration.entry",
    "simulate": "hccl_py.simulator.entry",
    "topology_of": "hccl_py.topology",
    "verify": "hccl_py.verifier.entry",
}

__all__ = sorted(_HOMES)


moved.install()


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hccl_py' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
