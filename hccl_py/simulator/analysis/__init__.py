"""What the times of a program say: who is busy, who waits for whom, which links are full, and what
makes it take as long as it does.

`Timeline` has a method for each; arrays are columns, so that millions of tasks are no matter.
"""

from hccl_py.simulator.analysis.critical import CriticalPath, PathParts, critical_path, slack
from hccl_py.simulator.analysis.link_use import LinkUse, link_use
from hccl_py.simulator.analysis.overruns import overruns
from hccl_py.simulator.analysis.usage import StreamUsage, usage
from hccl_py.simulator.analysis.waits import Waits, waits

__all__ = [
    "CriticalPath",
    "LinkUse",
    "PathParts",
    "StreamUsage",
    "Waits",
    "critical_path",
    "link_use",
    "overruns",
    "slack",
    "usage",
    "waits",
]
