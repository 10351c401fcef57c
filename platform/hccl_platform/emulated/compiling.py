"""Kernels that call helpers.

numba calls only functions that it knows. Helpers are plain functions like the kernels themselves;
numba learns of them when their kernel is first compiled, because nothing may load numba earlier. A
helper lives in its kernel's file: numba's cache on disk looks at the age of that file only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import ParamSpec, TypeVar

from hccl_py.program.kernels import Kernel

__all__ = ["compiled"]

P = ParamSpec("P")
R = TypeVar("R")


def compiled(kernel: Kernel[P, R], *helpers: Callable[..., object]) -> Callable[P, R]:
    """Return a kernel's compiled form, after numba has learned of its helpers."""
    _teach_numba(helpers)
    return kernel.compiled


@cache
def _teach_numba(helpers: tuple[Callable[..., object], ...]) -> None:
    from numba.extending import register_jitable

    for helper in helpers:
        register_jitable(helper)
