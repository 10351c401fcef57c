"""From the options of a command to a communicator, an op and an executor."""

from __future__ import annotations

import os
from dataclasses import astuple, replace
from typing import Any

from hccl_py.cli.amounts import read_amounts, with_amounts
from hccl_py.cli.authors import author_class
from hccl_py.cli.errors import say_warning
from hccl_py.cli.options import Call, Sizes
from hccl_py.cli.sizes import first_size
from hccl_py.communicator import Communicator, Plan
from hccl_py.config import Config
from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import ParameterError
from hccl_py.op_param import OpParam
from hccl_py.operators import Operator, make_operator
from hccl_py.platforms import Schedule
from hccl_py.program.program import Program
from hccl_py.selection import Selection
from hccl_py.topology import Topology, topology_of
from hccl_py.topology.presets import DEFAULT_PRESET
from hccl_py.trace.units import spell_size

__all__ = ["Request", "check_memory", "check_tasks", "data_size", "spell_op", "spell_topology"]

BYTES_PER_TASK = 160
"""What expanding, linking and timing one task takes at its height."""


class Request:
    """What the user asks for: everything but the size, checked."""

    def __init__(self, call: Call, schedule: Schedule | None = None) -> None:
        self.operator: Operator = make_operator(call.op)
        self.dtype = DataType.parse(call.dtype)
        self._reduce = _reduce(call, self.operator)
        self._root = call.root
        self._in_place = call.in_place
        self._amounts = None if call.counts is None else read_amounts(call.counts, call.op)
        self._check_size(call.minbytes)
        self.platform = call.platform
        topology = _topology(call)
        _check_root(call.root, topology)
        self.comm = Communicator(
            topology=topology,
            platform=call.platform,
            mode=call.mode,
            buffsize_mb=call.buffsize,
            algo=call.algo,
            deterministic=call.deterministic,
            strict=call.strict_hccl or None,
            schedule=schedule,
            selection=call.select,
        )
        self.topology = self.comm.topology
        self.executor = _executor(call.executor)
        for problem in self.comm.registry.problems:
            say_warning(problem.message)
        self.minbytes = self._fixed_size() if self.is_fixed else first_size(call.minbytes)

    @property
    def is_fixed(self) -> bool:
        """Whether something else than a size says how much is communicated."""
        return self._amounts is not None or self.operator.name == "barrier"

    def op(self, size: int) -> OpParam:
        """Return the call that communicates hccl_test's data size in bytes; with the usual amounts
        of each rank, unless a file says them.
        """
        ranks, mode = self.topology.size, self.comm.config.mode
        count = self.operator.count(size, ranks, self.dtype.itemsize)
        op = OpParam(
            self.operator.name,
            count,
            self.dtype,
            self._reduce,
            mode=mode,
            in_place=self._in_place,
        )
        if self._amounts is not None:
            return with_amounts(op, self._amounts)
        op = self.operator.variants()[0](op, ranks)
        if self.operator.rooted and self._root is not None:
            op = replace(op, root=self._root)
        return op

    def check_sizes(self, sizes: Sizes) -> None:
        """Refuse a range of sizes where there is only one."""
        if astuple(sizes) != (None, None, None):
            self._check_size("given")

    def _check_size(self, given: str | None) -> None:
        """Refuse a size where something else says it."""
        if given is None or not self.is_fixed:
            return
        what = "barrier has no data size" if self._amounts is None else "--counts says the sizes"
        raise ParameterError(f"{what}.", "Leave -b, -e, -f and -i out.")

    def _fixed_size(self) -> int:
        op = self.op(0)
        self.operator.check(op, self.topology)
        return data_size(self, op)

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


def _reduce(call: Call, operator: Operator) -> ReduceOp | None:
    """Return the reduce op, sum unless given; ParameterError where the op has none."""
    if call.reduce_op is not None and (not operator.reduces or operator.name == "barrier"):
        raise ParameterError(
            f"{operator.name} has no reduce op to choose.", "Leave -o/--reduce-op out."
        )
    reduce = ReduceOp.parse(call.reduce_op or ReduceOp.SUM.spelling)
    return reduce if operator.reduces else None


def _topology(call: Call) -> Topology:
    """Return the topology of a rank table, or of the numbers and the preset."""
    numbers = {
        "ranks": call.ranks,
        "servers": call.servers,
        "devices": call.devices,
        "superpods": call.superpods,
    }
    if call.rank_table is None:
        return topology_of(**numbers, preset=call.topology or DEFAULT_PRESET)
    for name, number in numbers.items():
        if number is not None:
            raise ParameterError("--rank-table says where the ranks are.", f"Leave --{name} out.")
    from hccl_py.topology.rank_tables import read_rank_table

    table, config = read_rank_table(call.rank_table), Config.load()
    return table.topology(call.topology, inter_hccs=not config.inter_hccs_disable)


def data_size(request: Request, op: OpParam) -> int:
    """Return hccl_test's data size of a call: the larger one of a rank's input and output."""
    return request.operator.data_size(op, request.topology.size)


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
