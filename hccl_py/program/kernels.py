"""Loops over columns, compiled on demand.

A kernel is a plain function on arrays and numbers. Small programs run it as it is, in Python:
loading numba costs more than they do. Large ones, and small ones that come often, run it compiled;
the machine code is cached on disk, so that only the very first run compiles.

A kernel may call helpers, plain functions too. numba learns of them when their kernel is first
compiled. Its cache on disk looks at the age of the kernel's file only; here it is told that of
files that helpers live in, too, and the numbers that both take from other files.
"""

from __future__ import annotations

import fcntl
import logging
import os
import sys
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar, cast, get_type_hints
from uuid import uuid4

import numpy as np
import numpy.typing as npt

P = ParamSpec("P")
R = TypeVar("R")
Scalar = TypeVar("Scalar", bound=np.generic)

Helpers: TypeAlias = Callable[[], tuple[Callable[..., object], ...]]

WORTH_COMPILING = 50_000
"""Loop steps from which the compiled form is faster, its loading from disk included."""

COLD = 2
"""How many times as many steps it takes, for each second of compiling, while no compiled form is on
disk: a plain step costs 1 to 7 µs, and loops that have cost half of a compilation often go on.
"""

BYTES_A_SECOND = 2000
"""Bytes of Python's code that numba compiles in a second, once it has started, which takes one."""

WORTH_CALLING = 100
"""Loop steps from which a compiled form that is loaded already is faster."""

log = logging.getLogger(__name__)


class Kernel(Generic[P, R]):
    """A function with a compiled twin."""

    def __init__(
        self,
        function: Callable[P, R],
        helpers: Helpers = tuple,
        *,
        allocates: bool = True,
    ) -> None:
        self.plain = function
        self.helpers = helpers
        self.allocates = allocates
        self._plain_steps = 0
        self.__doc__ = function.__doc__

    @cached_property
    def compiled(self) -> Callable[P, R]:
        """The function compiled by numba, without the interpreter lock; cached on disk."""
        import numba
        from numba.extending import register_jitable

        from hccl_py.program.passing import pass_by_reference

        pass_by_reference(get_type_hints(self.plain).values())
        # Without numba's run time, arrays are not counted at every call of a helper: 20 x faster.
        counting = {} if self.allocates else {"_nrt": False}
        for helper in self.helpers():
            register_jitable(inline="never", **counting)(helper)
        options = {"nogil": True, "error_model": "numpy", **counting}
        try:
            jitted = numba.njit(cache=True, **options)(self.plain)
        except RuntimeError:  # no folder to cache in can be written
            log.info("no place to keep compiled code: set NUMBA_CACHE_DIR to a writable folder")
            jitted = numba.njit(**options)(self.plain)
        kept = getattr(getattr(jitted, "_cache", None), "_cache_file", None)
        if kept is not None:
            _stamp(kept, self.plain, self.helpers())
            _name_apart(kept)
        self._announce_compilation(jitted)
        return cast(Callable[P, R], jitted)

    @cached_property
    def _is_on_disk(self) -> bool:
        """True if a compiled form seems to be cached; numba decides whether it is still valid."""
        code = self.plain.__code__
        source = Path(code.co_filename)
        version = f"py{sys.version_info[0]}{sys.version_info[1]}{sys.abiflags}"
        name = f"{source.stem}.{self.plain.__qualname__}-{code.co_firstlineno}.{version}.nbi"
        own = os.environ.get("NUMBA_CACHE_DIR")
        if own:
            return any(Path(own).glob(f"*/{name}"))
        return (source.parent / "__pycache__" / name).exists()

    @property
    def seconds_to_compile(self) -> float:
        """About how long compiling takes, by the size of the code."""
        functions = (self.plain, *self.helpers())
        return 1 + sum(len(f.__code__.co_code) for f in functions) / BYTES_A_SECOND

    def sized(self, steps: int) -> Callable[P, R]:
        """Return the form that is faster for a loop of so many steps, those before it counted: a
        small loop that runs often is compiled when its plain runs have cost as much as that.
        """
        total = self._plain_steps + steps
        if total >= WORTH_CALLING and "compiled" in self.__dict__:
            return self.compiled
        if total >= WORTH_COMPILING and "compiled" not in self.__dict__:
            if self._is_on_disk:
                return self.compiled
            if total >= WORTH_COMPILING * COLD * self.seconds_to_compile:
                return self._compile_or_run
        self._plain_steps = total
        return self.plain

    def _compile_or_run(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run compiled, or plain while another process compiles a kernel of the same file: what it
        makes serves both.
        """
        file = self.plain.__code__.co_filename
        with open(file if os.path.exists(file) else os.devnull, "rb") as source:
            try:
                fcntl.flock(source, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return self.plain(*args, **kwargs)
            except OSError:  # files cannot be locked here
                log.debug("no locks on %s", source.name)
            return self.compiled(*args, **kwargs)

    def _announce_compilation(self, jitted: object) -> None:
        """Log when the kernel is compiled; loading what is on disk is not worth a word."""
        from numba.core import event

        room, seconds = ".".join(self.plain.__module__.split(".")[:2]), self.seconds_to_compile
        text = f"compiling a loop of {room} for this machine, once: about {seconds:.0f} s"

        class Listener(event.Listener):  # type: ignore[misc]
            def on_start(self, event: Any) -> None:
                if event.data["dispatcher"] is jitted:
                    log.info("%s", text)

            def on_end(self, event: Any) -> None:
                pass

        event.register("numba:compile", Listener())


def _stamp(kept: Any, plain: Callable[..., object], helpers: tuple[Any, ...]) -> None:
    """Let what is cached be out of date where a helper's file is another one than it was, or a
    number that is compiled in.
    """
    own = plain.__code__.co_filename
    files = sorted({helper.__code__.co_filename for helper in helpers} - {own})
    stats = [os.stat(file) for file in files]
    ages = [(stat.st_mtime, stat.st_size) for stat in stats]
    kept._source_stamp = (kept._source_stamp, *ages, *_numbers(plain, helpers))


def _name_apart(kept: Any) -> None:
    """Let each process write machine code to files of its own. numba numbers the files of a kernel:
    two processes that compile it for different types at once would both write the first, and the
    index would then promise the one and load the other, which crashes.
    """
    kept._data_name_pattern = kept._data_name_pattern.replace("{", uuid4().hex + ".{", 1)


def _numbers(plain: Any, helpers: tuple[Any, ...]) -> list[tuple[str, float]]:
    """Return the numbers outside of functions that they use by name."""
    used = ((f.__globals__, name) for f in (plain, *helpers) for name in f.__code__.co_names)
    found = {
        (name, known[name]) for known, name in used if isinstance(known.get(name), int | float)
    }
    return sorted(found)


def kernel(function: Callable[P, R]) -> Kernel[P, R]:
    """Make a function a kernel."""
    return Kernel(function)


def kernel_calling(
    helpers: Helpers, *, allocates: bool = True
) -> Callable[[Callable[P, R]], Kernel[P, R]]:
    """Make a function that calls helpers a kernel; `helpers` returns them, so that they may stand
    below it. State whether any of them makes arrays.
    """
    return lambda function: Kernel(function, helpers, allocates=allocates)


def reading(array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """Return an array for a kernel that only reads it: contiguous and read-only.

    numba compiles a kernel for each type of its arguments, and where an array came from (a file, a
    slice) makes types of its own.
    """
    taken = np.ascontiguousarray(array).view()
    taken.flags.writeable = False
    return taken
