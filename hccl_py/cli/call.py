"""From the options of a command to a communicator, an op and an executor."""

from __future__ import annotations

import os
from typing import Any

from hccl_py.cli.authors import author_class
from hccl_py.cli.errors import say_warning
from hccl_py.cli.options import Call
from hccl_py.cli.sizes import parse_size
from hccl_py.communicator import Communicator, Plan
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import ParameterError
from hccl_py.op_param import OpParam
from hccl_py.operators import Operator, make_operator
from hccl_py.platforms import Schedule
from hccl_py.program.program import Program
from hccl_py.selection import Selection
from hccl_py.topology import Topology, topology_of
from hccl_py.trace.units import spell_size

__all__ = ["Request", "check_memory", "check_tasks", "data_size", "spell_op", "spell_topology"]

BYTES_PER_TASK = 160
"""What expanding, linking and timing one task takes at its height."""


class Request:
    """What the user asks for: everything but the size, checked."""

    def __init__(self, call: Call, schedule: Schedule | None = None) -> None:
        self.operator: Operator = make_operator(call.op)
        self.dtype = DataType.parse(call.dtype)
        self.minbytes = parse_size(call.minbytes, "-b/--minbytes")
        self.platform = call.platform
        reduce = ReduceOp.parse(call.reduce_op)
        self._reduce = reduce if self.operator.reduces else None
        self.topology = topology_of(
            call.ranks, servers=call.servers, devices=call.devices, preset=call.topology
        )
        _check_root(call.root, self.topology)
        self.comm = Communicator(
            topology=self.topology,
            platform=call.platform,
            mode=call.mode,
            buffsize_mb=call.buffsize,
            algo=call.algo,
            deterministic="true" if call.deterministic else None,
            schedule=schedule,
        )
        self.executor = _executor(call.executor)
        for problem in self.comm.registry.problems:
            say_warning(problem.message)

    def op(self, size: int) -> OpParam:
        """Return the call that communicates hccl_test's data size in bytes."""
        count = self.operator.count(size, self.topology.size, self.dtype.itemsize)
        mode = self.comm.config.mode
        return OpParam(self.operator.name, count, self.dtype, self._reduce, mode=mode)

    def select(self, op: OpParam) -> Selection:
        """Return what would run, without recording it."""
        return self.comm.select(op, self.executor)[0]

    def plan(self, op: OpParam) -> Plan:
        """Select and record."""
        return self.comm.plan(op, self.executor)

    def describe(self, op: OpParam) -> str:
        """Return op, size, data type and mode in one phrase."""
        size = spell_size(data_size(self, op))
        return f"{spell_op(op)} of {size} bytes, {op.dtype.value}, {op.mode.value}"


def data_size(request: Request, op: OpParam) -> int:
    """Return hccl_test's data size of a call: the larger one of a rank's input and output."""
    return max(request.operator.user_bytes(op, request.topology.size))


def spell_op(op: OpParam) -> str:
    """Return `all_reduce sum`."""
    return op.name if op.reduce is None else f"{op.name} {op.reduce.spelling}"


def spell_topology(topology: Topology) -> str:
    """Return `4 ranks: product, servers`."""
    ranks = f"{topology.size} rank{'s' if topology.size > 1 else ''}"
    return f"{ranks}: {topology.description}"


def check_memory(size: int, what: str) -> None:
    """Refuse what the machine's memory cannot hold, rather than be killed for it."""
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if size > there:
        raise ParameterError(
            f"{what} would take {size >> 20} MB, this machine has {there >> 20} MB.",
            "Give fewer ranks or a smaller size.",
        )


def check_tasks(program: Program) -> None:
    """Refuse a program whose tasks one by one this machine cannot hold."""
    count = program.task_count
    check_memory(count * BYTES_PER_TASK, f"The program's {count:,} tasks".replace(",", " "))


def _check_root(root: int | None, topology: Topology) -> None:
    if root is not None and not 0 <= root < topology.size:
        raise ParameterError(
            f"Root {root} is out of range.",
            f"The communicator has ranks 0 to {topology.size - 1}.",
        )


def _executor(name: str | None) -> Any:
    """Return what `Communicator.plan` takes: a name, or an author's class."""
    if name is None or ":" not in name:
        return name
    return author_class(name, "--executor")
