"""Analysis of a timeline: busy streams, waits, use of links, overruns, critical path and slack.

`Timeline` has a method for each; arrays are columns, for programs of millions of tasks.
"""

from hccl_py.simulator.analysis.critical import CriticalPath, PathParts, critical_path, slack
from hccl_py.simulator.analysis.link_use import LinkUse, link_use
from hccl_py.simulator.analysis.usage import StreamUsage, Waits, overruns, usage, waits

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
