"""What surrounds the reading of a file: its name in front of errors, and no garbage collection."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from hccl_py.documents.kind import FileKind
from hccl_py.errors import FileError

__all__ = ["named"]

T = TypeVar("T")


def named(name: str, kind: FileKind, read: Callable[[], T]) -> T:
    """Return what `read` returns; put the name of the file in front of its errors, HCCL's code
    behind them.

    The error that leaves holds no frames of the reader, and so no half-read document.
    """
    with _paused_collector():
        try:
            return read()
        except FileError as error:
            message, hint, code = error.message, error.hint, error.code or kind.code
        except MemoryError:
            message = f"$: the {kind.noun} does not fit into memory."
            hint, code = "Take a larger machine.", kind.code
    if code:
        message = f"{message.removesuffix('.')} ({code})."
    raise kind.error(f"{name}: {message}", hint, code)


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
