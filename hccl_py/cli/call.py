"""The keys and phrases by which commands report a call, and the limits of this machine."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from hccl_py.call.op_param import OpParam
from hccl_py.cli.request import Request
from hccl_py.communicator.planning import Plan
from hccl_py.errors import ParameterError
from hccl_py.importers.installed import writer_of
from hccl_py.program.program import Program
from hccl_py.topology import Topology

BYTES_PER_TASK = 160
"""Memory of a task at the most: expanding, linking and timing it."""


def document_of_call(request: Request, op: OpParam) -> dict[str, Any]:
    """Return the keys of the call in every JSON document."""
    return {
        "op": op.name if request.has_op else None,
        "ranks": request.topology.size,
        "topology": request.topology.description,
        "dtype": op.dtype.value,
        "reduce_op": None if op.reduce is None else op.reduce.spelling,
        "mode": op.mode.value,
    }


def document_of_plan(
    request: Request, plan: Plan, *, without: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the keys of the call and of its executor in JSON documents."""
    found = {
        **document_of_call(request, plan.op),
        "bytes": request.data_size(plan.op),
        "count": plan.op.count,
        "executor": plan.selection.executor or None,
        "algorithm": dict(plan.selection.algorithm),
        "rounds": plan.program.rounds,
        "tasks": plan.program.task_count,
    }
    return {name: value for name, value in found.items() if name not in without}


def describe_topology(topology: Topology) -> str:
    """Return `4 ranks: product, servers`."""
    ranks = f"{topology.size} rank{'s' if topology.size > 1 else ''}"
    return f"{ranks}: {topology.description}"


def check_save(path: str, option: str = "--save") -> None:
    """Refuse, before anything is recorded, a file that no program could be written to."""
    writer_of(path, is_job=True, option=option).check_target(path)


def check_memory(size: int, subject: str) -> None:
    """Refuse a size that the machine's memory cannot hold, rather than be killed for it."""
    available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if size > available:
        raise ParameterError(
            f"{subject} would take {size >> 20} MB, this machine has {available >> 20} MB.",
            "Give fewer ranks or a smaller size.",
        )


def check_tasks(program: Program) -> None:
    """Refuse a program whose tasks one by one this machine cannot hold."""
    count = program.task_count
    check_memory(count * BYTES_PER_TASK, f"The program's {count:,} tasks".replace(",", " "))
