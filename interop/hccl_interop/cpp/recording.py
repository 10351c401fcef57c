"""From a folder and a call to a program: built once, recorded for every call.

custom_op = CustomOp(find_project("my_op"), Builder.from_environment())
imported = custom_op.record(CppCall(op, topology))
imported.report(options)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from hccl_interop.cpp.build import Builder, Built
from hccl_interop.cpp.ccu import expanded, in_words
from hccl_interop.cpp.findings import Callers, findings_of, one_sided_channels
from hccl_interop.cpp.lines import functions_of, lines_of
from hccl_interop.cpp.merge import joined_channels, merged
from hccl_interop.cpp.project import SETTINGS, CppProject
from hccl_interop.cpp.run import EntryPoint, RankBuffers, RankLimits, own_folder, run_recorder
from hccl_interop.cpp.traces import RankTrace, Traces, read_traces
from hccl_py.call.expansion import ExpansionMode
from hccl_py.call.op_param import OpParam
from hccl_py.errors import NotSupportedError, ParameterError, did_you_mean
from hccl_py.importers import Imported
from hccl_py.operators import make_operator
from hccl_py.program.program import Program
from hccl_py.topology.topology import Topology
from hccl_py.verifier.finding import Finding

ENTRIES = {
    "all_reduce": "HcclAllReduce",
    "reduce_scatter": "HcclReduceScatter",
    "reduce": "HcclReduce",
    "all_gather": "HcclAllGather",
    "broadcast": "HcclBroadcast",
    "scatter": "HcclScatter",
    "all_to_all": "HcclAlltoAll",
    "all_gather_v": "HcclAllGatherV",
    "reduce_scatter_v": "HcclReduceScatterV",
    "all_to_all_v": "HcclAlltoAllV",
    "all_to_all_vc": "HcclAlltoAllVC",
    "send_recv": "HcclSend",
}
"""The function of each op that can be recorded."""

_RECEIVER = "HcclRecv"
_CCU_DEVICE = "950"

_OF_PLACES = ("WRONG_TOKEN",)
"""Findings of the source that leave no doubt what its tasks are."""

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
    expansion: ExpansionMode = "AI_CPU"


@dataclass(frozen=True)
class CustomOp:
    """A project and its builder; the build runs once, when it is first needed."""

    project: CppProject
    builder: Builder
    limits: RankLimits = field(default_factory=RankLimits)

    @cached_property
    def built(self) -> Built:
        """The project, built."""
        return self.builder.build(self.project)

    @cached_property
    def functions(self) -> tuple[str, ...]:
        """The functions that the host code defines."""
        return tuple(functions_of(self.built.host))

    def op_name(self) -> str:
        """Return the op that the folder implements, from `hccl-py.toml` or from its functions.

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

    def record(self, call: CppCall) -> Imported:
        """Record one call on all ranks.

        Raises CompilerError, ParameterError where the host code lacks the op's function, and
        NotSupportedError for a call that cannot be recorded.
        """
        entry = self._entry(call.op.name)
        if self.project.engine == "ccu" and call.topology.product.device != _CCU_DEVICE:
            raise NotSupportedError(
                f"{call.topology.product.title} has no CCU, for which {self.project.name} is "
                "written.",
                "Record for --topology ascend950, or ascend950-2x8.",
            )
        inputs, outputs = make_operator(call.op.name).user_bytes(call.op, call.topology.size)
        buffers = RankBuffers(inputs, outputs, call.ccl_bytes)
        with own_folder() as out:
            run_recorder(
                self.built,
                self.project,
                entry,
                call.op,
                call.topology,
                buffers,
                call.calls,
                call.expansion,
                self.limits,
                out,
            )
            traces = read_traces(out, call.topology.size)
        return self._recording(call, entry, buffers, traces)

    def _recording(
        self, call: CppCall, entry: EntryPoint, buffers: RankBuffers, traces: Traces
    ) -> Imported:
        lines = lines_of(traces.stacks, self.built, self.project)
        name = self.project.name
        if all(trace.result == 0 and not trace.complaints for trace in traces.ranks):
            traces = expanded(traces, joined_channels(traces.ranks))
        findings = list(findings_of(traces, lines, entry.function))
        notes = _notes(traces.ranks)
        printed = traces.loading.printed + _printed(traces.ranks)
        if notes or any(finding.name not in _OF_PLACES for finding in findings):
            own = tuple(findings)
            return Imported(name, None, lambda: own, tuple(notes), printed=printed)
        meeting = joined_channels(traces.ranks)
        findings += one_sided_channels(meeting, traces, lines)
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
        of_source, product = tuple(findings), call.topology.product
        return Imported(
            name,
            program,
            lambda: of_source,
            explain=partial(_explained, Callers.of(traces, lines), program),
            product=None if product.name in _FOR_STUDY else product,
            is_complete=not findings,
            printed=printed,
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
        """Return the function of this name, or else functions with longer names."""
        if wanted in self.functions:
            return [wanted]
        others = {*ENTRIES.values(), _RECEIVER} - {wanted}
        longer = [name for name in self.functions if name.startswith(wanted) and not exact]
        if any(wanted in (f"{other}V", f"{other}VC") for other in others):  # HcclAllGatherVia
            longer = [name for name in longer if _says_more(name, wanted)]
        nearer = [other for other in others if other.startswith(wanted)]
        return [name for name in longer if not any(_says_more(name, other) for other in nearer)]


def _explained(callers: Callers, program: Program, finding: Finding) -> Finding | None:
    """Return a finding with the callers of its line; None for an output that is overwritten by the
    next of several calls, since the caller reads the output of every call.
    """
    if program.rounds > 1 and finding.name == "DEAD_TRANSFER":
        return None
    found = in_words(finding, callers.stack_of) if program.engine == "ccu" else finding
    return found and callers.explained(found)


def _says_more(name: str, function: str) -> bool:
    """True if a name is a function's name and further words, like HcclAllGatherVCustom."""
    return name.startswith(function) and not name[len(function) :][:1].islower()


def _notes(ranks: Sequence[RankTrace]) -> list[str]:
    """Return a note on the ranks that were not recorded."""
    missing = [trace.rank for trace in ranks if not trace.was_run]
    if not missing:
        return []
    return [f"{len(missing)} ranks from {missing[0]} on were not recorded."]


def _printed(ranks: Sequence[RankTrace]) -> str:
    """Return the output of the first rank with complaints, else of the first rank with output."""
    wrong = [trace for trace in ranks if trace.complaints and trace.printed]
    return next((trace.printed for trace in [*wrong, *ranks] if trace.printed), "")
