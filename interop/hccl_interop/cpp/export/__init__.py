"""Executors as custom ops in C++: the files of a project that does what a recorded program does.

sampling.py  the same call at other sizes
sizes.py     offsets and sizes as slots, chunks and parts of the data
steps.py     what every rank does, as steps
folding.py   steps that repeat become loops
fitting.py   numbers by rank and turn become formulas
formulas.py  formulas, and their text
calls.py     one task as a call
kernel.py    functions, loops, variables
forks.py     forks and joins
channels.py  who is joined with whom
memory.py    where buffers lie
entries.py   the functions that stand for ops
host.py      host code
files.py     templates
project.py   all files
starting.py  a project to start from
same.py      whether a recording of them is the program
"""

from hccl_interop.cpp.export.entries import CAN_EXPORT
from hccl_interop.cpp.export.project import Exported, export_project

__all__ = ["CAN_EXPORT", "Exported", "export_project"]
