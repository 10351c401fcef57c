"""Recording HCCL's own CCU kernels, and the verdicts of the verifier on them, as data.

Every case is a call that HCCL's host code makes from its entry on: it chooses the algorithm, asks
for resources, registers kernels and launches them. The file has a row for each algorithm that is
chosen somewhere, at the size nearest to 1 MiB, and the kernels that no row has, with the reason.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from hccl_interop.cpp import CppCall, CustomOp, find_project
from hccl_interop.cpp.build import Builder
from hccl_interop.importers.cpp_folders import as_called
from hccl_py.call.call_spec import CallSpec, ClusterSpec
from hccl_py.call.config import Config
from hccl_py.call.expansion import ExpansionMode
from hccl_py.call.op_param import OpParam
from hccl_py.importers import Imported
from hccl_py.selection.hccl import HcclChoice
from hccl_py.topology.topology import Topology
from hccl_py.verifier import Options, Severity

KERNEL = re.compile(r"ccu_kernel_(?!alg_base|utils)\w+")
SIZES = tuple(kib << 10 for kib in (1024, 512, 2048, 256, 4096, 64, 8192, 16384, 65536, 131072))
"""Bytes of a call, the nearest to 1 MiB first."""

MODES: tuple[ExpansionMode, ...] = ("CCU_MS", "CCU_SCHED")
OPS = (
    *("all_gather", "all_reduce", "reduce_scatter", "broadcast", "reduce", "scatter"),
    *("all_to_all", "all_gather_v", "reduce_scatter_v", "all_to_all_v", "all_to_all_vc"),
)
CLUSTERS = {
    "one server of 8": ClusterSpec("ascend950", servers=1, devices=8),
    "8 servers of one": ClusterSpec("ascend950", servers=8, devices=1),
    "2 servers of 4": ClusterSpec("ascend950", servers=2, devices=4),
    **{
        name: ClusterSpec(name)
        for name in (
            *("ascend950-two-dies", "ascend950-ubx", "ascend950-ubx-board", "ascend950-2x8"),
        )
    },
}


_UNSET_RANK = (
    "HCCL's host code refuses the call: CalcRes of ins_v2_reduce_omnipipe_executor.cc (:86, :150) "
    "computes with the rank before it is set"
)
OTHERS = {
    "ccu_kernel_all_reduce_mesh1d_mem2mem_2die_oneshot": "it adds to a variable that has no value "
    "(:44), so the place of its scratch memory is that of what ran before",
    "ccu_kernel_gather_omnipipe_mesh_1d_mem2mem": _UNSET_RANK,
    "ccu_kernel_gather_omnipipe_nhr1d_mem2mem": _UNSET_RANK,
    "ccu_kernel_reduce_scatter_omnipipe_mesh1d_mem2mem": "its LoopGroup runs 16 loops and is "
    "listed for one (:235)",
}
"""Reasons for which kernels are not recorded, by lines of HCCL at 09300b7."""


class Case(NamedTuple):
    """A call; `cluster` is a name of CLUSTERS."""

    op: str
    mode: ExpansionMode
    cluster: str
    size: int

    def call(self) -> tuple[OpParam, Topology, Config]:
        """Return its parameters, its topology and its settings."""
        config = Config(op_expansion_mode=self.mode)
        spec = CallSpec(self.op, bytes=self.size, cluster=CLUSTERS[self.cluster], config=config)
        where = spec.topology()
        return as_called(spec.param(where.size), where.size), where, config

    def algorithm(self) -> str:
        """Return the algorithm of the CCU that HCCL takes, "" where it takes another engine."""
        row = HcclChoice(*self.call()).row
        return row.executor or "" if row.engine.startswith("CCU") else ""


def cases(ops: Sequence[str] = OPS) -> dict[str, list[Case]]:
    """Return each algorithm that HCCL takes for one of the ops, with its cases, best ones first."""
    found: dict[str, list[Case]] = defaultdict(list)
    for size, op, cluster, mode in product(SIZES, ops, CLUSTERS, MODES):
        case = Case(op, mode, cluster, size)
        name = case.algorithm()
        if name and case.cluster not in {other.cluster for other in found[name]}:
            found[name].append(case)
    return {name: own for name, own in sorted(found.items()) if own}


def verdicts(shop: CustomOp, own: Sequence[Case]) -> dict[str, Any]:
    """Return the row of an algorithm: of its first case that HCCL's host code does not refuse."""
    rows = []
    for case in own:
        rows.append(verdict(shop, case))
        if rows[-1]["kernels"]:
            return rows[-1]
    return rows[0]


def verdict(shop: CustomOp, case: Case) -> dict[str, Any]:
    """Return the row of a case: its kernels, and what the verifier finds, or why there are none."""
    op, where, _ = case.call()
    recorded = shop.record(CppCall(op, where, expansion=case.mode))
    return {**case._asdict(), "ranks": where.size, **_found(recorded)}


def _found(recorded: Imported) -> dict[str, Any]:
    report = recorded.report(Options(repeat=2))
    errors = [one for one in report.every() if one.severity is Severity.ERROR]
    names = sorted({one.name for one in errors})
    if recorded.program is None:
        said = [*re.findall(r"^\[.*?\] \[\d+\](.*)", recorded.printed), errors[0].message]
        return {"kernels": [], "errors": names, "refused": said[0].partition(" Called from")[0]}
    kernels = {name for line in recorded.program.lines for name in KERNEL.findall(line)}
    tasks = len(recorded.program.tasks.kind)
    return {"kernels": sorted(kernels), "tasks": tasks, "errors": names}


def write_verdicts(folder: Path, file: Path, source: str, ops: Sequence[str] = OPS) -> None:
    """Write the rows of algorithms, and why the other kernels of the folder have none, with the
    commit that they are of.
    """
    shop = CustomOp(find_project(str(folder)), Builder.from_environment())
    rows = {name: verdicts(shop, own) for name, own in cases(ops).items()}
    recorded = {kernel for row in rows.values() for kernel in row["kernels"]}
    there = {path.stem for path in folder.glob("src/**/ccu_kernel_*.cc")}
    others = sorted(name for name in there - recorded if KERNEL.fullmatch(name))
    reasons = {name: OTHERS.get(name, "no call of CLUSTERS and SIZES takes it") for name in others}
    found = {"source": source, "algorithms": rows, "others": reasons}
    file.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
