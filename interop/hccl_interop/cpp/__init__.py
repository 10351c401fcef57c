"""Custom operators written in C++ on HCCL's programming API, recorded as programs.

    project.py   a folder: sources, include folders, entry
    build.py     two shared objects of it, and the recorder, from a cache
    run.py       the recorder runs the op once per rank
    traces.py    what every rank left behind
    lines.py     return addresses become lines of the author's code
    merge.py     all ranks become one program
    findings.py  what went wrong becomes findings
    recording.py the way through all of them

`include/` has our own headers of the API, `recorder/` the program that exports it.
"""

from hccl_interop.cpp.project import CppProject, find_project, is_project
from hccl_interop.cpp.recording import CppCall, Workshop

__all__ = ["CppCall", "CppProject", "Workshop", "find_project", "is_project"]
