"""`verify`: one call for programs and executors."""

from __future__ import annotations

from collections.abc import Callable

from hccl_py.enums import InPlace
from hccl_py.plugins.discovery import Registry
from hccl_py.plugins.executor import Executor
from hccl_py.program.program import Call, Program
from hccl_py.topology.presets import Product
from hccl_py.verifier.finding import Report
from hccl_py.verifier.subject import Options
from hccl_py.verifier.sweeps.cases import Cases
from hccl_py.verifier.sweeps.sweep import verify_executor
from hccl_py.verifier.verifier import verify_program


def verify(
    target: Program | Executor | type[Executor],
    *,
    repeat: int = 2,
    in_place: bool | InPlace = False,
    deterministic: bool = False,
    product: Product | None = None,
    calls: tuple[Call, ...] = (),
    cases: Cases | None = None,
    numeric: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Verify a program, or an executor on a selection of all the calls that it suits.

    `repeat` copies of the op run back to back, or `calls` on several streams of the caller;
    `in_place` puts IN and OUT in the same memory, too, in one layout of `InPlace` or in all;
    `deterministic` (or an op that asks for it) makes sums in an open order an error; `product`
    checks the limits of its hardware. For executors, `cases` narrows the sweep, `numeric` also runs
    each call with data in that many interleavings, and `progress` is called with the number of
    calls done and their total.

    Raises PluginError if `target` is no executor, and the error of recording if no call of an
    executor can be recorded.
    """
    options = Options(repeat, in_place, deterministic, product, calls)
    if isinstance(target, Program):
        return verify_program(target, options)
    executor = Registry().add(target, "verify()").executor
    return verify_executor(
        executor, Cases() if cases is None else cases, options, progress=progress, seeds=numeric
    )
