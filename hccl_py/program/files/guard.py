"""What surrounds the reading of a file: its name in front of errors, and no garbage collection."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hccl_py.errors import ProgramFileError
from hccl_py.program.program import Program

__all__ = ["named"]


def named(name: str, read: Callable[[], Program]) -> Program:
    """Return what `read` returns; put the name of the file in front of its errors.

    The error that leaves holds no frames of the reader, and so no half-read document.
    """
    with _paused_collector():
        try:
            return read()
        except ProgramFileError as error:
            message, hint = error.message, error.hint
        except MemoryError:
            message, hint = "$: the program does not fit into memory.", "Take a larger machine."
    raise ProgramFileError(f"{name}: {message}", hint)


@contextmanager
def _paused_collector() -> Iterator[None]:
    """Keep Python's cycle collector from walking millions of new lists over and over."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
