"""What the errors of program files are and say, and how large the files may be."""

from hccl_py.documents.kind import FileKind
from hccl_py.errors import ProgramFileError

__all__ = ["JSON_LIMIT", "NPZ_LIMIT", "PROGRAM"]

JSON_LIMIT = 32 << 20
"""Bytes of a JSON file that are read unless the caller allows more."""

NPZ_LIMIT = 1 << 30
"""Bytes that an npz file may unpack to unless the caller allows more."""

PROGRAM = FileKind(
    noun="program",
    parts="tasks",
    error=ProgramFileError,
    larger="Allow more with --max-size (max_bytes), or keep large programs as .npz.",
    text="Save the file as UTF-8; large programs are kept as .npz.",
    depth="A task is at most a list of lists.",
    digits="Offsets, lengths and counts are below 2**62.",
    allows_nan=True,
)
