"""What a command works on: a call, described by options, that is selected and recorded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import astuple, fields
from typing import TYPE_CHECKING, Any

from hccl_py.authors import author_class
from hccl_py.call_spec import CallSpec, ClusterSpec
from hccl_py.cli.counts import read_counts
from hccl_py.cli.errors import say_problems
from hccl_py.cli.options import CallOptions, Sizes
from hccl_py.cli.output import format_levels
from hccl_py.cli.sizes import first_size
from hccl_py.communicator import Communicator, Plan
from hccl_py.config import Config
from hccl_py.cost import CostModel
from hccl_py.discovery import find_platform
from hccl_py.errors import ParameterError
from hccl_py.op_param import OpParam
from hccl_py.operators import make_operator
from hccl_py.platforms import ProcessPlatform, Schedule
from hccl_py.selection import Selection
from hccl_py.topology import Topology
from hccl_py.trace.units import format_size

if TYPE_CHECKING:
    from hccl_py.msccl.repetition import Repetition

__all__ = ["CallRequest", "Request", "cluster_of", "communicator", "describe_op", "spec_of"]


class Request(ABC):
    """What the user asks for: everything but the size, checked."""

    def __init__(self, op: str, comm: Communicator, platform: str) -> None:
        self.operator = make_operator(op)
        self.comm, self.topology, self.platform = comm, comm.topology, platform

    minbytes: int
    """The first data size, in bytes."""

    is_fixed: bool
    """Whether something else than a size says how much is communicated."""

    cost: CostModel | None = None
    """The cost model whose times are wanted, where it is known before recording."""

    is_verified: bool = True
    """Whether it says where in memory data lie, so that it can be verified."""

    has_op: bool = True
    """Whether it is known what is computed, so that it can be run."""

    @abstractmethod
    def op(self, size: int) -> OpParam:
        """Return the parameters of the call that communicates hccl_test's data size in bytes."""

    @abstractmethod
    def select(self, op: OpParam) -> Selection:
        """Return what would run, without recording it."""

    @abstractmethod
    def plan(self, op: OpParam) -> Plan:
        """Select and record."""

    @abstractmethod
    def check_sizes(self, sizes: Sizes) -> None:
        """Refuse a range of sizes where there is only one."""

    def repetition(self, op: OpParam) -> Repetition | None:
        """Return what a call repeats that is too large to be recorded; None for all others."""
        return None

    def data_size(self, op: OpParam) -> int:
        """Return hccl_test's data size: the larger one of a rank's input and output, in bytes."""
        return self.operator.data_size(op, self.topology.size)

    def describe(self, op: OpParam) -> str:
        """Return op, size, data type and mode in one phrase."""
        size = format_size(self.data_size(op))
        return f"{describe_op(op)} of {size} bytes, {op.dtype.value}, {op.mode.value}"

    def describe_executor(self, selection: Selection) -> str:
        """Return what runs, and by which algorithm on each level."""
        levels = format_levels(selection.algorithm)
        return f"{selection.executor}, {levels}" if levels else selection.executor


class CallRequest(Request):
    """A call to be selected and recorded."""

    def __init__(
        self,
        options: CallOptions,
        schedule: Schedule | None = None,
        *,
        spec: CallSpec | None = None,
    ) -> None:
        self.spec = spec_of(options) if spec is None else spec
        self.is_fixed = self.spec.is_fixed
        if options.minbytes is not None:
            self._refuse_sizes()
        topology = self.spec.topology()
        self.spec.param(topology.size)  # raises for what does not depend on the size
        comm = communicator(options, topology, schedule)
        super().__init__(self.spec.op, comm, options.platform)
        self.executor = _executor(options.executor)
        self.minbytes = self._fixed_size() if self.is_fixed else first_size(options.minbytes)

    def op(self, size: int) -> OpParam:
        """Return the parameters of the call that communicates hccl_test's data size in bytes."""
        return self.spec.sized(size).param(self.topology.size)

    def select(self, op: OpParam) -> Selection:
        """Return what would run, without recording it."""
        return self.comm.select(op, self.executor)[0]

    def plan(self, op: OpParam) -> Plan:
        """Select and record."""
        return self.comm.plan(op, self.executor)

    def check_sizes(self, sizes: Sizes) -> None:
        """Refuse a range of sizes where there is only one."""
        if astuple(sizes) != (None,) * len(fields(sizes)) and self.is_fixed:
            self._refuse_sizes()

    def _refuse_sizes(self) -> None:
        if self.is_fixed:
            barrier = self.spec.counts is None
            what = "barrier has no data size" if barrier else "--counts says the sizes"
            raise ParameterError(f"{what}.", "Leave -b, -e, -f and -i out.")

    def _fixed_size(self) -> int:
        op = self.op(0)
        self.operator.check(op, self.topology)
        return self.data_size(op)


def spec_of(options: CallOptions) -> CallSpec:
    """Return the call that options describe, at the default size."""
    return CallSpec(
        op=options.op,
        dtype=options.dtype,
        reduce_op=options.reduce_op,
        root=options.root,
        in_place=options.in_place,
        counts=None if options.counts is None else read_counts(options.counts, options.op),
        cluster=cluster_of(options),
        config=Config.load(
            mode=options.mode,
            buffsize_mb=options.buffsize,
            algo=options.algo,
            deterministic=options.deterministic,
            strict=options.strict_hccl or None,
            ruleset=options.ruleset,
            zero_copy=options.zero_copy,
        ),
    )


def cluster_of(options: CallOptions, ranks: int | None = None) -> ClusterSpec:
    """Return where the options put the ranks."""
    return ClusterSpec(
        options.topology,
        options.rank_table,
        options.ranks if ranks is None else ranks,
        options.servers,
        options.devices,
        options.superpods,
    )


def communicator(
    options: CallOptions, topology: Topology, schedule: Schedule | None
) -> Communicator:
    """Return a communicator with the settings of the options; broken plugins are warned about."""
    if options.wire is not None and not isinstance(
        find_platform(options.platform), ProcessPlatform
    ):
        raise ParameterError(
            f"--wire is about messages between processes, and platform {options.platform} has one.",
            "Add --platform distributed, or leave --wire out.",
        )
    if options.device is not None and options.platform != "device":
        raise ParameterError(
            f"--device is about --platform device, and this is platform {options.platform}.",
            "Add --platform device, or leave --device out.",
        )
    comm = Communicator(
        topology=topology,
        platform=options.platform,
        mode=options.mode,
        buffsize_mb=options.buffsize,
        algo=options.algo,
        deterministic=options.deterministic,
        strict=options.strict_hccl or None,
        ruleset=options.ruleset,
        zero_copy=options.zero_copy,
        schedule=schedule,
        selection=options.select,
        wire=options.wire,
        device=options.device,
    )
    say_problems(comm.registry.problems)
    return comm


def describe_op(op: OpParam) -> str:
    """Return `all_reduce sum`."""
    return op.name if op.reduce is None else f"{op.name} {op.reduce.spelling}"


def _executor(name: str | None) -> Any:
    """Return what `Communicator.plan` takes: a name, or an author's class."""
    if name is None or ":" not in name:
        return name
    return author_class(name, "--executor")
