"""Custom operators written in C++ on HCCL's programming API, recorded as programs.

    project.py   a folder: sources, include folders, entry
    build.py     its two shared objects, and the recorder, from a cache
    run.py       the recorder, which runs the op once per rank
    traces.py    the files that the recorder writes for every rank
    lines.py     return addresses as lines of the author's code
    merge.py     the tasks of all ranks as one program
    findings.py  complaints of the recorder as findings
    recording.py all steps, from folder and call to program

`include/` has our own headers of the API, `recorder/` the program that exports it.
"""

from hccl_interop.cpp.project import CppProject, find_project
from hccl_interop.cpp.recording import CppCall, CustomOp

__all__ = ["CppCall", "CppProject", "CustomOp", "find_project"]
