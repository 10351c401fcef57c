"""Loops over columns, compiled on demand.

A kernel is a plain function on arrays and numbers. Small programs run it as it is, in Python:
loading numba costs more than they do. Large ones run it compiled; the machine code is cached on
disk, so that only the very first run compiles.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any, Generic, ParamSpec, TypeVar, cast

__all__ = ["Kernel", "kernel"]

P = ParamSpec("P")
R = TypeVar("R")

WORTH_COMPILING = 50_000
"""Loop steps from which the compiled form is faster, its loading included."""

log = logging.getLogger(__name__)


class Kernel(Generic[P, R]):
    """A function with a compiled twin."""

    def __init__(self, function: Callable[P, R]) -> None:
        self.plain = function
        self.__doc__ = function.__doc__

    @cached_property
    def compiled(self) -> Callable[P, R]:
        """The function compiled by numba, without the interpreter lock; cached on disk."""
        import numba

        _announce_compilation()
        options = {"nogil": True, "error_model": "numpy"}
        try:
            jitted = numba.njit(cache=True, **options)(self.plain)
        except RuntimeError:  # no folder to cache in can be written
            log.info("no place to keep compiled code: set NUMBA_CACHE_DIR to a writable folder")
            jitted = numba.njit(**options)(self.plain)
        return cast(Callable[P, R], jitted)

    def sized(self, steps: int) -> Callable[P, R]:
        """Return the form that is faster for a loop of so many steps."""
        return (
            self.plain
            if steps < WORTH_COMPILING or os.environ.get("NUMBA_DISABLE_JIT")
            else self.compiled
        )


@cache
def _announce_compilation() -> None:
    """Log when a kernel of ours is compiled, which takes seconds; loading a cached one does not."""
    from numba.core import event

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            function = event.data["dispatcher"].py_func
            if function.__module__.startswith("hccl_"):
                log.info("compiling %s for this machine, once", function.__name__.strip("_"))

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Listener())


def kernel(function: Callable[P, R]) -> Kernel[P, R]:
    """Make a function a kernel."""
    return Kernel(function)
