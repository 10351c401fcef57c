"""The explanation of `hccl-py explain`: a plan, the reasons for it, and the sizes where the choice
changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hccl_py.cli.accuracy import TimeAccuracy
from hccl_py.cli.call import describe_topology, document_of_plan
from hccl_py.cli.options import CallOptions, Sizes, TimeModel
from hccl_py.cli.output import counted, facts, format_levels
from hccl_py.cli.request import CallRequest, checked_model
from hccl_py.cli.size_changes import SizeChange, lines_of_changes, size_changes, usual_changes
from hccl_py.cli.sizes import last_size, row_sizes
from hccl_py.communicator.planning import Plan
from hccl_py.enums import Mode
from hccl_py.plugins.fidelity import kind_and_proof
from hccl_py.program.usage import differences
from hccl_py.selection.answer import Selection
from hccl_py.selection.ccu_proofs import proof_of_ccu
from hccl_py.selection.releases import ReleaseChange
from hccl_py.trace.document import resources
from hccl_py.trace.terminal import format_each
from hccl_py.trace.units import format_size
from hccl_py.tuning.choose import RULES

if TYPE_CHECKING:
    from rich.console import RenderableType

_SHOWN_REJECTED = 6
_SHOWN_UNUSED = 4
_SHOWN_COSTS = 8
_LOOKED_THROUGH = 1_000_000
"""Tasks of the largest program whose unused resources are looked for."""


@dataclass(frozen=True)
class Explanation:
    """A plan, the sizes where the choice changes, and the choice of another release; `is_asked`
    where the user names the sizes.
    """

    request: CallRequest
    plan: Plan
    changes: list[SizeChange]
    is_asked: bool
    against: ReleaseChange | None = None

    @staticmethod
    def of(
        request: CallRequest, call: CallOptions, sizes: Sizes, against: str | None = None
    ) -> Explanation:
        """Plan for -b, and find the sizes at which the choice changes: up to -e, else near -b where
        HCCL's rules choose.
        """
        points = _sample(call, sizes)
        plan = request.plan(request.op(request.minbytes))
        found: list[SizeChange] = []
        if sizes.maxbytes:
            found = size_changes(request, points)
        elif call.executor is None and call.select == RULES:
            found = usual_changes(request)
        comm = request.comm
        change = None
        if against is not None:
            change = ReleaseChange.between(plan.op, comm.topology, comm.config, against)
        return Explanation(request, plan, found, sizes.maxbytes is not None, change)

    def document(self) -> dict[str, Any]:
        """Return the JSON document."""
        selection = self.plan.selection
        return {
            "schema": "hccl-py.explain/1",
            **document_of_plan(self.request, self.plan),
            "hccl_executor": selection.hccl_executor,
            "hccl_result": selection.result or None,
            "refusal": selection.refusal or None,
            "unknown": selection.unknown or None,
            "hccl_engine": selection.engine or None,
            "costs": [vars(cost) for cost in selection.costs],
            "hccl_algorithm": dict(selection.hccl_algorithm),
            "fidelity": selection.fidelity.document(),
            "tag": selection.tag,
            "ruleset": selection.ruleset,
            "source": selection.source or None,
            "accuracy": self._accuracy.document(),
            "against": None if self.against is None else self.against.document(),
            "reasons": list(selection.reasons),
            "why_levels": dict(selection.why_levels),
            "overruled": list(selection.overruled),
            "rejected": [{"executor": r.executor, "reason": r.reason} for r in selection.rejected],
            "resources": self._classes,
            "ccl_buffer_bytes": self._ccl_bytes,
            "memory_bytes": self._memory_bytes,
            "unused": self._unused,
            "ranges": [one.document() for one in self.changes],
        }

    def drawing(self) -> Iterator[RenderableType]:
        """Yield the parts of the text for people."""
        yield self.request.describe(self.plan.op)
        yield describe_topology(self.request.topology)
        yield ""
        yield facts(self._facts())
        if self.is_asked:
            yield ""
            yield self._span_table()

    def _facts(self) -> Iterator[tuple[str, list[str]]]:
        selection, program = self.plan.selection, self.plan.program
        yield "runs", [self.request.describe_executor(selection)]
        yield "HCCL takes", [self._hccl_choice()]
        if selection.engine.startswith("CCU") and selection.hccl_executor is not None:
            yield "its kernels", proof_of_ccu(selection.hccl_executor)
        yield "by cost", list(_costs(selection))
        yield "fidelity", _lines(selection)
        new = [text for text in selection.overruled if text not in selection.reasons]
        yield "because", [*selection.reasons, *new]
        why = selection.why_levels.items()
        yield "levels", [f"{level} {selection.algorithm[level]}: {text}" for level, text in why]
        if self.changes and not self.is_asked:
            yield "by size", list(lines_of_changes(self.changes, self.request.minbytes))
        yield "not", self._rejected()
        yield (
            "ruleset",
            [
                selection.ruleset,
                *([selection.source] if selection.source else []),
            ],
        )
        if self.against is not None:
            yield "against", self.against.sentences()
        yield "tag", [selection.tag or "none: one rank needs no resources"]
        yield "resources", [_format_class(found) for found in self._classes]
        yield "CCL buffers", [f"2 x {format_size(self._ccl_bytes)} bytes a rank"]
        yield "memory", [f"{format_size(self._memory_bytes)} bytes at the rank that needs most"]
        tasks, rounds = counted(program.task_count, "task"), counted(program.rounds, "round")
        yield "program", [f"{tasks} in {rounds}"]
        yield "accuracy", [f"of model times: {self._accuracy.line}"]
        yield "unused", self._unused[:_SHOWN_UNUSED]

    @cached_property
    def _accuracy(self) -> TimeAccuracy:
        """The accuracy of times of the product's cost model."""
        model = checked_model(TimeModel(), self.request.topology)
        return TimeAccuracy.of(self.request, self.plan.program, self.plan.op, model)

    def _rejected(self) -> list[str]:
        """Return executors of the device's table that are not taken, and how many more."""
        rejected = self.plan.selection.rejected
        shown = [r for r in rejected if r.listed][:_SHOWN_REJECTED] or rejected[:1]
        lines = [f"{r.executor}: {r.reason}" for r in shown]
        more = len(rejected) - len(shown)
        return lines + ([f"{more} more: --json says why"] if more else []) or ["no other"]

    def _hccl_choice(self) -> str:
        selection = self.plan.selection
        if selection.unknown:
            return f"not known here: {selection.unknown}"
        if selection.hccl_executor is None:
            return f"none, it refuses with {selection.result}: {selection.refusal}"
        if selection.is_same:
            return "the same"
        levels = filter(None, [format_levels(selection.hccl_algorithm), selection.engine])
        return ", ".join([selection.hccl_executor, *levels])

    def _span_table(self) -> RenderableType:
        from rich.table import Table

        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("from bytes", justify="right")
        table.add_column("to", justify="right")
        table.add_column("runs", overflow="fold")
        table.add_column("HCCL takes", overflow="fold")
        table.add_column("since", overflow="fold")
        for span, since in self.changes:
            hccl = span.choice.hccl_executor or _none(self.plan.selection)
            ends = (format_size(span.first), format_size(span.last))
            takes = "the same" if span.choice.is_same else hccl
            name = " ".join([span.choice.executor, *dict(span.choice.algorithm).values()])
            table.add_row(*ends, name, takes, since)
        return table

    @cached_property
    def _unused(self) -> list[str]:
        """Resources that ranks declare and do not use; none for very large programs."""
        program = self.plan.program
        return differences(program) if program.task_count <= _LOOKED_THROUGH else []

    @property
    def _ccl_bytes(self) -> int:
        """Bytes of each CCL buffer that the call needs: none for one rank, and none in graph mode,
        which works in user memory.
        """
        eager = self.plan.op.mode is Mode.OP_BASE and self.plan.program.ranks > 1
        return self.request.comm.config.ccl_bytes if eager else 0

    @property
    def _memory_bytes(self) -> int:
        """Bytes that a call costs beside the user's: CCL buffers, and the largest scratch."""
        scratch = max((found["scratch_bytes"] for found in self._classes), default=0)
        return 2 * self._ccl_bytes + int(scratch)

    @cached_property
    def _classes(self) -> list[dict[str, Any]]:
        """The resources of ranks, those with equal needs in one entry."""
        classes: dict[tuple[int, ...], dict[str, Any]] = {}
        for needs in resources(self.plan.program):
            rank = needs.pop("rank")
            found = classes.setdefault(tuple(needs.values()), {"ranks": [], **needs})
            found["ranks"].append(rank)
        return list(classes.values())


def _sample(call: CallOptions, sizes: Sizes) -> list[int]:
    """Return the sizes at which choices are compared: as -f or -i say, else powers of two."""
    points = row_sizes(call.minbytes, sizes)
    if sizes.stepfactor is None and sizes.stepbytes is None:
        points = [size for size in (points[0], *(1 << k for k in range(61))) if size >= points[0]]
    last = last_size(call.minbytes, sizes)
    return sorted({*(size for size in points if size <= last), last})


def _lines(selection: Selection) -> list[str]:
    """Return the fidelity of what runs: its kind with the proof, its deviation from HCCL, and the
    sources. Where HCCL takes another executor, the word is about HCCL's of the name of what runs.
    """
    fidelity = selection.fidelity
    more = fidelity.deviation or str(fidelity.proof or "")
    own = selection.executor != selection.hccl_executor and fidelity.kind != "ours"
    here = "" if selection.unknown else ", which HCCL does not take here"
    subject = f" as HCCL's {selection.executor}{here}" if own else ""
    kind = kind_and_proof(fidelity.document()) + subject
    return [": ".join(filter(None, [kind, more])), *map(str, fidelity.sources)]


def _costs(selection: Selection) -> Iterator[str]:
    """Yield the executors of HCCL's cost table, the cheapest first."""
    ordered = sorted(selection.costs, key=lambda cost: cost.seconds)
    for cost in ordered[:_SHOWN_COSTS]:
        yield f"{cost.seconds * 1e6:.1f} us {cost.executor}"
    if len(ordered) > _SHOWN_COSTS:
        yield f"{len(ordered) - _SHOWN_COSTS} more: --json has them"


def _none(selection: Selection) -> str:
    """Return the words for a call whose executor HCCL does not say."""
    return "not known here" if selection.unknown else "none: it refuses"


def _format_class(found: dict[str, Any]) -> str:
    return (
        f"{format_each(found['ranks'])}: {found['sub_streams']} sub streams, "
        f"{found['notifies']} notifies, {found['transports']} transports, "
        f"scratch {format_size(found['scratch_bytes'])}"
    )
