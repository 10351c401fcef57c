"""Recording HCCL's own CCU kernels, and the verdicts of the verifier on them, as data.

Every case is a call that HCCL's host code makes from its entry on: it chooses the algorithm, asks
for resources, registers kernels and launches them. The file has a row for each algorithm.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from hccl_interop.cpp import CppCall, CustomOp, find_project
from hccl_interop.cpp.build import Builder
from hccl_interop.importers.cpp_folders import as_called
from hccl_py.call.call_spec import CallSpec, ClusterSpec
from hccl_py.call.config import Config
from hccl_py.call.expansion import ExpansionMode
from hccl_py.importers import Imported
from hccl_py.selection.hccl import HcclChoice
from hccl_py.verifier import Options, Severity

KERNEL = re.compile(r"ccu_kernel_(?!alg_base|utils)\w+(?=\.cc)")
SMALL, USUAL, LARGE = 256 << 10, 1 << 20, 8 << 20
MODES: tuple[ExpansionMode, ...] = ("CCU_MS", "CCU_SCHED")
OPS = ("all_gather", "all_reduce", "reduce_scatter", "broadcast", "reduce", "scatter", "all_to_all")
SHAPES = ((1, 8), (8, 1), (2, 4))
"""Servers, and devices of each."""


class Case(NamedTuple):
    """A call of 8 ranks."""

    op: str
    mode: ExpansionMode
    servers: int
    devices: int
    size: int


def cases(ops: tuple[str, ...] = OPS) -> Iterator[Case]:
    """Yield the calls: every op, mode and shape at 1 MiB, and smaller and larger ones of a mesh."""
    for op in ops:
        for mode in MODES:
            for servers, devices in SHAPES:
                sizes = (USUAL, SMALL, LARGE) if servers == 1 else (USUAL,)
                yield from (Case(op, mode, servers, devices, size) for size in sizes)


def verdicts(folder: Path, ops: tuple[str, ...] = OPS) -> dict[str, Any]:
    """Return a row for every algorithm of the CCU that HCCL takes in a case."""
    shop = CustomOp(find_project(str(folder)), Builder.from_environment())
    found: dict[str, Any] = {}
    for case in cases(ops):
        name, row = verdict(shop, case)
        if name and name not in found:
            found[name] = row
    return dict(sorted(found.items()))


def verdict(shop: CustomOp, case: Case) -> tuple[str, dict[str, Any]]:
    """Return the algorithm of a case, "" where it is no CCU's, and its row."""
    cluster = ClusterSpec("ascend950", servers=case.servers, devices=case.devices)
    config = Config(op_expansion_mode=case.mode)
    spec = CallSpec(case.op, bytes=case.size, cluster=cluster, config=config)
    where = spec.topology()
    op = as_called(spec.param(where.size), where.size)
    row = HcclChoice(op, where, config).row
    if not row.engine.startswith("CCU") or row.executor is None:
        return "", {}
    call = CppCall(op, where, expansion=case.mode)
    return row.executor, _row(case, shop.record(call))


def _row(case: Case, imported: Imported) -> dict[str, Any]:
    report = imported.report(Options(repeat=2))
    errors = sorted({one.name for one in report.every() if one.severity is Severity.ERROR})
    hints = sorted({one.name for one in report.every()} - set(errors))
    program = imported.program
    kernels = (
        sorted({name for line in program.lines for name in KERNEL.findall(line)}) if program else []
    )
    return {
        **case._asdict(),
        "kernels": kernels,
        "tasks": len(program.tasks.kind) if program else 0,
        "errors": errors,
        "hints": hints,
    }


def write_verdicts(folder: Path, file: Path, source: str, ops: tuple[str, ...] = OPS) -> None:
    """Write the rows, with the commit that they are of."""
    found = {"source": source, "algorithms": verdicts(folder, ops)}
    file.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
