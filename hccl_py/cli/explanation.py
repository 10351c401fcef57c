"""What `hccl-py explain` says: the selection, what it costs, and where it changes with the size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from hccl_py.cli.call import Request, data_size, spell_topology
from hccl_py.cli.options import Call, Sizes
from hccl_py.cli.output import spell_levels
from hccl_py.cli.sizes import last_size, row_sizes
from hccl_py.communicator import Plan
from hccl_py.enums import Mode
from hccl_py.errors import ParameterError
from hccl_py.program.usage import differences
from hccl_py.trace.document import resources
from hccl_py.trace.units import spell_size

if TYPE_CHECKING:
    from rich.console import RenderableType

_SHOWN_REJECTED = 6
_SHOWN_UNUSED = 4
_LOOKED_THROUGH = 1_000_000
"""Tasks of the largest program whose use is held against its declarations."""

__all__ = ["Choice", "Explanation", "Span", "spans"]

MOST_SIZES = 1 << 16


class Choice(NamedTuple):
    """What runs, and what HCCL takes; None where it refuses."""

    executor: str
    hccl_executor: str | None


class Span(NamedTuple):
    """Sizes in bytes, both ends included, with the same choice."""

    first: int
    last: int
    choice: Choice


@dataclass(frozen=True)
class Explanation:
    """A plan and what to say about it."""

    request: Request
    plan: Plan
    spans: list[Span]

    @staticmethod
    def of(request: Request, call: Call, sizes: Sizes) -> Explanation:
        """Plan for -b; where -e is given, find the sizes at which the choice changes."""
        points = _sample(call, sizes)
        plan = request.plan(request.op(request.minbytes))

        def choice(size: int) -> Choice:
            selection = request.select(request.op(size))
            return Choice(selection.executor, selection.hccl_executor)

        return Explanation(request, plan, spans(points, choice) if sizes.maxbytes else [])

    def document(self) -> dict[str, Any]:
        """Return the JSON document."""
        op, selection, program = self.plan.op, self.plan.selection, self.plan.program
        return {
            "schema": "hccl-py.explain/1",
            "op": op.name,
            "ranks": program.ranks,
            "topology": self.request.topology.description,
            "bytes": data_size(self.request, op),
            "count": op.count,
            "dtype": op.dtype.value,
            "reduce_op": None if op.reduce is None else op.reduce.spelling,
            "mode": op.mode.value,
            "executor": selection.executor,
            "hccl_executor": selection.hccl_executor,
            "hccl_result": selection.result or None,
            "refusal": selection.refusal or None,
            "algorithm": dict(selection.algorithm),
            "hccl_algorithm": dict(selection.hccl_algorithm),
            "tag": selection.tag,
            "ruleset": selection.ruleset,
            "reasons": list(selection.reasons),
            "rejected": [{"executor": r.executor, "reason": r.reason} for r in selection.rejected],
            "resources": self._classes,
            "ccl_buffer_bytes": self._ccl_bytes,
            "memory_bytes": self._memory_bytes,
            "rounds": program.rounds,
            "tasks": program.task_count,
            "unused": self._unused,
            "ranges": [
                {"min_bytes": span.first, "max_bytes": span.last, **span.choice._asdict()}
                for span in self.spans
            ],
        }

    def drawing(self) -> Iterator[RenderableType]:
        """Yield what people read."""
        from rich.table import Table
        from rich.text import Text

        yield self.request.describe(self.plan.op)
        yield spell_topology(self.request.topology)
        yield ""
        facts = Table.grid(padding=(0, 2))
        facts.add_column(style="bold", no_wrap=True)
        facts.add_column(overflow="fold")
        for name, lines in self._facts():
            facts.add_row(name, Text("\n".join(lines)))
        yield facts
        if self.spans:
            yield ""
            yield self._span_table()

    def _facts(self) -> Iterator[tuple[str, list[str]]]:
        selection, program = self.plan.selection, self.plan.program
        yield "runs", [_with_levels(selection.executor, selection.algorithm)]
        yield "HCCL takes", [self._hccl_choice()]
        yield "because", list(selection.reasons)
        yield "not", self._rejected()
        yield "ruleset", [selection.ruleset]
        yield "tag", [selection.tag or "none: one rank needs no resources"]
        yield "resources", [_spell_class(found) for found in self._classes]
        yield "CCL buffers", [f"2 x {spell_size(self._ccl_bytes)} bytes a rank"]
        yield "memory", [f"{spell_size(self._memory_bytes)} bytes at the rank that needs most"]
        rounds = f"{program.rounds} round{'s' if program.rounds > 1 else ''}"
        tasks = f"{program.task_count} task{'s' if program.task_count > 1 else ''}"
        yield "program", [f"{tasks} in {rounds}"]
        if self._unused:
            yield "unused", self._unused[:_SHOWN_UNUSED]

    def _rejected(self) -> list[str]:
        """Return executors of the device's table that are not taken, and how many more."""
        rejected = self.plan.selection.rejected
        shown = [r for r in rejected if r.listed][:_SHOWN_REJECTED] or rejected[:1]
        lines = [f"{r.executor}: {r.reason}" for r in shown]
        more = len(rejected) - len(shown)
        return lines + ([f"{more} more: --json says why"] if more else []) or ["no other"]

    def _hccl_choice(self) -> str:
        selection = self.plan.selection
        if selection.hccl_executor is None:
            return f"none, it refuses with {selection.result}: {selection.refusal}"
        if selection.hccl_executor == selection.executor:
            return "the same"
        return _with_levels(selection.hccl_executor, selection.hccl_algorithm)

    def _span_table(self) -> RenderableType:
        from rich.table import Table

        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("from bytes", justify="right")
        table.add_column("to", justify="right")
        table.add_column("runs", overflow="fold")
        table.add_column("HCCL takes", overflow="fold")
        for span in self.spans:
            hccl = span.choice.hccl_executor or "none: it refuses"
            same = hccl == span.choice.executor
            ends = (spell_size(span.first), spell_size(span.last))
            table.add_row(*ends, span.choice.executor, "the same" if same else hccl)
        return table

    @cached_property
    def _unused(self) -> list[str]:
        """Return what ranks declare and do not use; nothing for programs too large to look at."""
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
        """Group ranks that need the same."""
        classes: dict[tuple[int, ...], dict[str, Any]] = {}
        for needs in resources(self.plan.program):
            rank = needs.pop("rank")
            found = classes.setdefault(tuple(needs.values()), {"ranks": [], **needs})
            found["ranks"].append(rank)
        return list(classes.values())


def _with_levels(executor: str, algorithm: Mapping[str, str]) -> str:
    levels = spell_levels(algorithm)
    return f"{executor}, {levels}" if levels else executor


def spans(points: list[int], choice: Callable[[int], Choice]) -> list[Span]:
    """Return the sizes between the first and the last point, by choice.

    A change between two neighbouring points is located to the byte.
    """
    choices = [choice(point) for point in points]
    found = [Span(points[0], points[0], choices[0])]
    for low, high, below, above in zip(points, points[1:], choices, choices[1:], strict=False):
        for size, new in _changes(low, high, below, above, choice):
            found[-1] = found[-1]._replace(last=size - 1)
            found.append(Span(size, size, new))
        found[-1] = found[-1]._replace(last=high)
    return found


def _changes(
    low: int, high: int, below: Choice, above: Choice, choice: Callable[[int], Choice]
) -> Iterator[tuple[int, Choice]]:
    """Yield the sizes in low + 1 .. high at which a new choice begins, by bisection."""
    if below == above:
        return
    if high == low + 1:
        yield high, above
        return
    middle = (low + high) // 2
    between = choice(middle)
    yield from _changes(low, middle, below, between, choice)
    yield from _changes(middle, high, between, above, choice)


def _sample(call: Call, sizes: Sizes) -> list[int]:
    """Return the sizes at which to look: as -f or -i say, else powers of two."""
    points = row_sizes(call.minbytes, sizes)
    if sizes.stepfactor is None and sizes.stepbytes is None:
        points = [size for size in (points[0], *(1 << k for k in range(61))) if size >= points[0]]
    if len(points) > MOST_SIZES:
        raise ParameterError(
            f"{len(points)} sizes are too many.", "Leave -i out: changes are found to the byte."
        )
    last = last_size(call.minbytes, sizes)
    return sorted({*(size for size in points if size <= last), last})


def _spell_class(found: dict[str, Any]) -> str:
    from hccl_py.trace.terminal import spell_runs

    return (
        f"{spell_runs(found['ranks'])}: {found['sub_streams']} sub streams, "
        f"{found['notifies']} notifies, {found['transports']} transports, "
        f"scratch {spell_size(found['scratch_bytes'])}"
    )
