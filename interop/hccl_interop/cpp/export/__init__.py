"""Executors as custom ops in C++: the files of a project with the tasks of a recorded program.

sampling.py  the same call at other sizes
sizes.py     offsets and sizes as slots, chunks and parts of the data
steps.py     a program as steps
folding.py   repeated steps as loops
fitting.py   numbers by rank and turn as formulas
formulas.py  formulas, and their text
calls.py     one task as a call
kernel.py    functions, loops, variables
forks.py     forks and joins
channels.py  the channels of every rank
memory.py    buffers as parts of the HCCL buffer
entries.py   the functions of ops in HCCL's API
host.py      host code
text.py      templates and lines
project.py   all files
starting.py  a project to start from
same.py      comparison of a recording with the program
"""

from hccl_interop.cpp.export.entries import CAN_EXPORT
from hccl_interop.cpp.export.project import Exported, export_project

__all__ = ["CAN_EXPORT", "Exported", "export_project"]
