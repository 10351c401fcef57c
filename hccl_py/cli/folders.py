"""A folder with a custom op in C++ where a command takes an op or a file: recorded for the call
that the options describe.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from hccl_py.call_spec import CallSpec
from hccl_py.cli.options import OF_SELECTION, CallOptions, ProgramOptions, given
from hccl_py.cli.request import CallRequest, spec_of
from hccl_py.communicator import Plan
from hccl_py.documents.disk import format_path
from hccl_py.errors import ParameterError
from hccl_py.op_param import OpParam
from hccl_py.platforms import Schedule
from hccl_py.selection import Selection
from hccl_py.topology import Topology

if TYPE_CHECKING:  # the verifier comes with it, which most commands do without
    from hccl_py.cpp import CppCall, Recording, Workshop

__all__ = ["FolderCalls", "FolderRequest", "as_called", "open_workshop", "record_call"]

TOPOLOGY = "ascend950"
"""What folders are recorded for unless the options say otherwise: the products of this API."""

_MEGABYTE = 1 << 20


class FolderRequest(CallRequest):
    """A call of a custom op in C++: built once, recorded at every size that is asked for."""

    def __init__(self, options: ProgramOptions, schedule: Schedule | None = None) -> None:
        self.name = format_path(options.op)
        _refuse_options(options, options.op)
        self._calls = options.calls
        self._ccl_bytes = None if options.buffsize is None else options.buffsize * _MEGABYTE
        self.workshop = open_workshop(options.op)
        op = self.workshop.op_name() if options.cpp_op is None else options.cpp_op
        self._known: dict[OpParam, Recording] = {}
        self._schedule = schedule
        super().__init__(_of_call(options, op), schedule)

    def op(self, size: int) -> OpParam:
        """Return the parameters of the call, as C++ code is called."""
        return as_called(super().op(size), self.topology.size)

    def select(self, op: OpParam) -> Selection:
        """Return a selection of nothing but the folder."""
        return Selection(
            op=op.name,
            executor=self.workshop.project.title,
            hccl_executor=None,
            algorithm={},
            tag=self.name,
            reasons=(f"it is recorded from the C++ code in {self.name}",),
            ruleset="",
        )

    def plan(self, op: OpParam) -> Plan:
        """Record; ParameterError where the code has findings of its own."""
        recording = self.recording(op)
        return Plan(op, self.select(op), recording.require())

    def recording(self, op: OpParam) -> Recording:
        """Record, once for every call."""
        if op not in self._known:
            call = _cpp_call(op, self.topology, self._ccl_bytes, self._calls)
            self._known[op] = record_call(self.workshop, call)
        return self._known[op]

    def describe_executor(self, selection: Selection) -> str:
        """Return where the code is."""
        return f"custom op in C++ {self.name}"


def open_workshop(name: str) -> Workshop:
    """Return a folder's project, built; what the compiler says goes to stderr as it is."""
    from hccl_py.cpp import Workshop, find_project
    from hccl_py.cpp.build import Builder, BuildError

    workshop = Workshop(find_project(name), Builder.from_environment())
    try:
        _ = workshop.built
    except BuildError as error:
        sys.stderr.write(error.output)
        raise
    return workshop


def record_call(workshop: Workshop, call: CppCall) -> Recording:
    """Record; what the author's code prints on a rank is shown once, on stderr."""
    recording = workshop.record(call)
    if recording.printed:
        text = recording.printed if recording.printed.endswith("\n") else recording.printed + "\n"
        sys.stderr.write(text)
    return recording


@dataclass(frozen=True)
class FolderCalls:
    """The calls for which `check` records folders: an op, a size, some numbers of ranks."""

    options: CallOptions
    ranks: tuple[int | None, ...] = (None,)
    op: str | None = None
    calls: int = 1
    size: int = 1 << 20

    def recordings(self, name: str) -> Iterator[tuple[str, Recording]]:
        """Yield what each call has given, by the name of its report."""
        workshop = open_workshop(name)
        op = workshop.op_name() if self.op is None else self.op
        ccl_bytes = None if self.options.buffsize is None else self.options.buffsize * _MEGABYTE
        for ranks in self.ranks:
            spec = spec_of(_of_call(replace(self.options, ranks=ranks), op)).sized(self.size)
            param, topology = _param(spec)
            call = _cpp_call(param, topology, ccl_bytes, self.calls)
            recording = record_call(workshop, call)
            title = name if len(self.ranks) == 1 else f"{name} ({topology.size} ranks)"
            yield title, replace(recording, name=title)


def _param(spec: CallSpec) -> tuple[OpParam, Topology]:
    topology = spec.topology()
    op = as_called(spec.param(topology.size), topology.size)
    spec.operator.check(op, topology)
    return op, topology


def as_called(op: OpParam, ranks: int) -> OpParam:
    """Return what HCCL's signature leaves no choice about: one buffer in a broadcast, IN at the
    root and OUT at the others; one pair for every two ranks in send_recv.
    """
    if op.name == "broadcast":
        return replace(op, in_place=True)
    if op.name == "send_recv":
        return replace(op, pairs=tuple((r, r + 1) for r in range(0, ranks - 1, 2)))
    return op


def _cpp_call(op: OpParam, topology: Topology, ccl_bytes: int | None, calls: int) -> CppCall:
    """Return the call to record; the HCCL buffer is that of the product by default."""
    from hccl_py.cpp import CppCall

    call = CppCall(op, topology, calls=calls)
    return call if ccl_bytes is None else replace(call, ccl_bytes=ccl_bytes)


def _of_call(options: CallOptions, op: str) -> CallOptions:
    """Return the options as those of a call of the op."""
    is_placed = options.topology is not None or options.rank_table is not None
    named = {field.name: getattr(options, field.name) for field in fields(CallOptions)}
    return CallOptions(
        **named | {"op": op, "topology": options.topology if is_placed else TOPOLOGY}
    )


def _refuse_options(options: CallOptions, name: str) -> None:
    for option in given(options, OF_SELECTION):
        raise ParameterError(
            f"{option} does not go with a folder: its code decides that.",
            f"Leave it out of what is said about {format_path(name)}.",
        )
