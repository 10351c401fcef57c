"""The sizes at which the choice of an executor changes, with the conditions, in lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from hccl_py.cli.output import format_levels
from hccl_py.cli.request import CallRequest
from hccl_py.operators.base import MAX_COUNT
from hccl_py.selection.spans import Choice, Span, reason_of_change, spans
from hccl_py.trace.units import format_size

USUAL_POWERS = range(10, 35)
"""Sizes between which changes are looked for where the user names none: 1K to 16G."""

_SHOWN = 6


class SizeChange(NamedTuple):
    """Sizes with one choice, and the condition that ends the choice before it."""

    span: Span
    since: str

    def document(self) -> dict[str, Any]:
        """Return the entry of a JSON document."""
        choice = self.span.choice
        return {
            "min_bytes": self.span.first,
            "max_bytes": self.span.last,
            **choice._asdict(),
            "algorithm": dict(choice.algorithm),
            "since": self.since or None,
        }


def size_changes(request: CallRequest, sizes: Sequence[int]) -> list[SizeChange]:
    """Return the choices between the first and the last of some sizes, in bytes."""

    def choice(size: int) -> Choice:
        found = request.select(request.op(size))
        levels = tuple(found.algorithm.items())
        return Choice(found.executor, found.hccl_executor, found.is_same, levels)

    found = spans(sizes, choice)
    changes = [SizeChange(found[0], "")]
    for span in found[1:]:
        ops = request.op(span.first - 1), request.op(span.first)
        reason = reason_of_change(*ops, request.topology, request.comm.config)
        changes.append(SizeChange(span, reason))
    return changes


def usual_changes(request: CallRequest) -> list[SizeChange]:
    """Return the choices from 1K, or 8 bytes a rank, to 16G or the most that a call may move;
    none for calls of one size.
    """
    if request.is_fixed or request.minbytes == 0:
        return []
    powers = [1 << power for power in USUAL_POWERS if 1 << power >= 8 * request.topology.size]
    sizes = {size for size in powers if request.op(size).extent <= MAX_COUNT}
    return size_changes(request, sorted({*sizes, request.minbytes}))


def lines_of_changes(changes: Sequence[SizeChange], size: int) -> Iterator[str]:
    """Yield a line for each choice near a size: `from 16777218 bytes on: NAME, since ...`."""
    here = next((n for n, one in enumerate(changes) if one.span.last >= size), 0)
    first = max(0, min(here - _SHOWN // 2, len(changes) - _SHOWN))
    if len(changes) == 1:
        ends = map(format_size, changes[0].span[:2])
        yield f"the same from {' to '.join(ends)} bytes"
        return
    for number in range(first, min(len(changes), first + _SHOWN)):
        yield _line(changes, number, is_here=number == here)
    if len(changes) > _SHOWN:
        yield f"{len(changes) - _SHOWN} further away: --json has them"


def _line(changes: Sequence[SizeChange], number: int, *, is_here: bool) -> str:
    span, since = changes[number]
    choice = span.choice
    name = ", ".join(filter(None, [choice.executor, format_levels(dict(choice.algorithm))]))
    if choice.hccl_executor not in (None, choice.executor):
        name += f" in place of {choice.hccl_executor}"
    if number == 0:
        place = f"up to {format_size(span.last)} bytes"
    else:
        place = f"from {format_size(span.first)} bytes on"
    return f"{place}{' (here)' * is_here}: {name}" + (f", since {since}" if since else "")
