"""From a folder and a call to a program: built once, recorded for every call.

workshop = Workshop(find_project("my_op"), Builder.from_environment())
recording = workshop.record(CppCall(op, topology))
recording.report(options)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from shlex import quote

from hccl_py.cpp.build import Builder, Built
from hccl_py.cpp.findings import Callers, findings_of, one_sided_channels
from hccl_py.cpp.lines import functions_of, lines_of
from hccl_py.cpp.merge import joined_channels, merged
from hccl_py.cpp.project import SETTINGS, CppProject
from hccl_py.cpp.run import EntryPoint, Limits, RankBuffers, own_folder, run_recorder
from hccl_py.cpp.traces import RankTrace, Traces, read_traces
from hccl_py.errors import NotSupportedError, ParameterError, did_you_mean
from hccl_py.op_param import OpParam
from hccl_py.operators import make_operator
from hccl_py.program.program import Program
from hccl_py.topology.topology import Topology
from hccl_py.verifier.finding import Finding, Report
from hccl_py.verifier.subject import Options
from hccl_py.verifier.verifier import verify_program

__all__ = ["ENTRIES", "CppCall", "Recording", "Workshop"]

ENTRIES = {
    "all_reduce": "HcclAllReduce",
    "reduce_scatter": "HcclReduceScatter",
    "reduce": "HcclReduce",
    "all_gather": "HcclAllGather",
    "broadcast": "HcclBroadcast",
    "scatter": "HcclScatter",
    "all_to_all": "HcclAlltoAll",
    "send_recv": "HcclSend",
}
"""The function that stands for each op that can be recorded."""

_RECEIVER = "HcclRecv"
_NOT_RECORDED = ("HcclAllGatherV", "HcclReduceScatterV", "HcclAlltoAllV", "HcclAlltoAllVC")
"""Functions with parameters of their own, whose names begin like those of ENTRIES."""

_FOR_STUDY = ("mesh", "ring", "routed")

DEFAULT_BUFFER = 400 << 20
"""Bytes of the HCCL buffer of an Ascend 950."""


@dataclass(frozen=True)
class CppCall:
    """The call to record: `calls` times in a row, on the same resources."""

    op: OpParam
    topology: Topology
    ccl_bytes: int = DEFAULT_BUFFER
    calls: int = 1


@dataclass(frozen=True)
class Recording:
    """What recording has given: a program, where every rank came to its end, and findings."""

    name: str
    program: Program | None
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    printed: str
    topology: Topology
    callers: Callers | None = None

    def report(self, options: Options) -> Report:
        """Return the findings of the recording and those of the verifier, which knows the limits
        of the product that it was recorded for.
        """
        if self.program is None or self.callers is None:
            return self.recorded()
        product = self.topology.product
        if options.product is None and product.name not in _FOR_STUDY:
            options = replace(options, product=product)
        report = verify_program(self.program, options, self.name)
        called = [finding.changed(self.callers.explained) for finding in report.findings]
        if self.program.rounds > 1:  # the caller reads the output of every call
            called = [finding for finding in called if finding.name != "DEAD_TRANSFER"]
        findings = [*self.findings, *called]
        return Report.of(self.name, findings, report.programs, notes=self.notes + report.notes)

    def recorded(self) -> Report:
        """Return the findings of the recording alone."""
        programs = {} if self.program is None else {"": self.program}
        cases = len(programs)  # what is not whole is not verified
        return Report.of(self.name, self.findings, programs, cases=cases, notes=self.notes)

    def require(self) -> Program:
        """Return the program; ParameterError with the first finding where there is none."""
        if self.program is not None and not self.findings:
            return self.program
        first = min(self.findings, key=lambda finding: finding.key)
        place = f" at {first.source}" if first.source else ""
        raise ParameterError(
            f"{self.name} cannot be recorded: {first.name}{place}. {first.message}",
            f"`hccl-py check {quote(self.name)}` with the same options shows all findings.",
        )


@dataclass(frozen=True)
class Workshop:
    """A project and what builds it; the build is done once, when it is first needed."""

    project: CppProject
    builder: Builder
    limits: Limits = field(default_factory=Limits)

    @cached_property
    def built(self) -> Built:
        """The project, built."""
        return self.builder.build(self.project)

    @cached_property
    def functions(self) -> tuple[str, ...]:
        """The functions that the host code defines."""
        return tuple(functions_of(self.built.host))

    def op_name(self) -> str:
        """Return the op that the folder implements, as `hccl-py.toml` or its functions say.

        ParameterError where that is not one op.
        """
        if self.project.op is not None:
            return self.project.op
        found = [op for op in ENTRIES if self._candidates(ENTRIES[op])]
        if len(found) == 1:
            return found[0]
        what = f"functions of {len(found)} ops: {', '.join(found)}" if found else "no op"
        raise ParameterError(
            f"{self.project.name} has {what}.",
            f"Name the op: --op all_reduce, or op in {SETTINGS}.",
        )

    def record(self, call: CppCall) -> Recording:
        """Record one call on all ranks.

        Raises BuildError, ParameterError for an op or a function that is not there, and
        NotSupportedError for a call that cannot be recorded.
        """
        entry = self._entry(call.op.name)
        buffers = _buffers(call)
        with own_folder() as out:
            run_recorder(
                self.built,
                self.project,
                entry,
                call.op,
                call.topology,
                buffers,
                call.calls,
                self.limits,
                out,
            )
            traces = read_traces(out, call.topology.size)
        return self._recording(call, entry, buffers, traces)

    def _recording(
        self, call: CppCall, entry: EntryPoint, buffers: RankBuffers, traces: Traces
    ) -> Recording:
        lines = lines_of(traces.stacks, self.built, self.project)
        name = self.project.name
        findings = list(findings_of(traces, lines, entry.function))
        notes = _notes(traces.ranks)
        printed = traces.loading.printed + _printed(traces.ranks)
        if findings or notes:
            notes.append("The program was not verified: it is not whole.")
            return Recording(name, None, tuple(findings), tuple(notes), printed, call.topology)
        meeting = joined_channels(traces.ranks)
        findings = list(one_sided_channels(meeting, traces, lines))
        program = merged(
            traces,
            meeting,
            lines,
            call.op,
            call.topology,
            buffers,
            self.project.title,
            call.calls,
        )
        callers = Callers.of(traces, lines)
        return Recording(
            name, program, tuple(findings), tuple(notes), printed, call.topology, callers
        )

    def _entry(self, op: str) -> EntryPoint:
        """Return the functions to call; ParameterError where the host code has none for the op."""
        if op not in ENTRIES:
            raise NotSupportedError(
                f"{op} cannot be recorded from C++.", f"These can: {', '.join(ENTRIES)}."
            )
        kernel = self.project.kernel or ""
        function = self._function(op, ENTRIES[op], self.project.entry, "entry")
        if op != "send_recv":
            return EntryPoint(function, kernel=kernel)
        receiver = self._function(op, _RECEIVER, self.project.receiver, "receiver")
        return EntryPoint(function, receiver, kernel)

    def _function(self, op: str, usual: str, stated: str | None, key: str) -> str:
        found = self._candidates(usual if stated is None else stated, exact=stated is not None)
        if len(found) == 1:
            return found[0]
        wanted = stated or usual
        mine = [name for name in self.functions if name.startswith("Hccl")]
        has = f"it has {', '.join(mine)}" if mine else 'it has no function extern "C" Hccl...'
        raise ParameterError(
            f"The host code of {self.project.name} has no {wanted} for {op}; {has}.",
            did_you_mean(wanted, mine) or f'Name it in {SETTINGS}: {key} = "...".',
        )

    def _candidates(self, wanted: str, *, exact: bool = False) -> list[str]:
        """Return the function of this name, or else those whose names say a little more."""
        if wanted in self.functions:
            return [wanted]
        others = {*ENTRIES.values(), _RECEIVER, *_NOT_RECORDED} - {wanted}
        longer = [name for name in self.functions if name.startswith(wanted) and not exact]
        nearer = [other for other in others if other.startswith(wanted)]
        return [name for name in longer if not any(_says_more(name, other) for other in nearer)]


def _says_more(name: str, function: str) -> bool:
    """Whether a name is that of a function and further words, like HcclAllGatherVCustom."""
    return name.startswith(function) and not name[len(function) :][:1].islower()


def _buffers(call: CppCall) -> RankBuffers:
    operator = make_operator(call.op.name)
    inputs, outputs = operator.user_bytes(call.op, call.topology.size)
    return RankBuffers(inputs, outputs, call.ccl_bytes)


def _notes(ranks: Sequence[RankTrace]) -> list[str]:
    """Say which ranks were not recorded."""
    missing = [trace.rank for trace in ranks if not trace.was_run]
    if not missing:
        return []
    return [f"{len(missing)} ranks from {missing[0]} on were not recorded."]


def _printed(ranks: Sequence[RankTrace]) -> str:
    """Return what the first rank that has something wrong printed, else the first of all."""
    wrong = [trace for trace in ranks if trace.complaints and trace.printed]
    return next((trace.printed for trace in [*wrong, *ranks] if trace.printed), "")
