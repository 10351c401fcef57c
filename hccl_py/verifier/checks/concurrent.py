"""Calls of one communicator's op that its caller has put on unordered streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from hccl_py.program.program import Call, Program
from hccl_py.verifier.finding import Finding
from hccl_py.verifier.subject import Subject


def find_concurrent(subject: Subject) -> Iterator[Finding]:
    """Yield CONCURRENT_OPS, for the first two calls that nothing orders.

    Calls of a program that uses neither notifies nor buffers of the communicator may run at once.
    """
    calls, program = subject.calls, subject.program
    loose = _first_unordered(calls)
    if loose is None or not _shares(program):
        return
    one, other = loose
    yield subject.finding(
        "CONCURRENT_OPS",
        f"Op {other + 1} runs on the caller's stream {calls[other].stream} and op {one + 1} on "
        f"stream {calls[one].stream}, in no order, and both use the notifies and CCL buffers of "
        "one communicator: they take each other's notifies, overwrite each other's data, and hang "
        "where two ranks run them in different orders.",
        "Issue the ops of a communicator on one stream, let the second stream wait for an event "
        "recorded after the first op, or use two communicators.",
        rows=[(0, other), (0, one)],
        ranks=range(program.ranks),
    )


def _first_unordered(calls: Sequence[Call]) -> tuple[int, int] | None:
    """Return two calls without a path between them."""
    before: list[set[int]] = []
    for number, call in enumerate(calls):
        direct = set(call.after)
        direct |= {k for k in range(number) if calls[k].stream == call.stream}
        known = direct.union(*(before[k] for k in direct))
        for other in range(number):
            if other not in known:
                return other, number
        before.append(known)
    return None


def _shares(program: Program) -> bool:
    """True if the program uses notifies or buffers of the communicator."""
    if not len(program.tasks):
        return False
    tasks, table = program.tasks, program.tasks.table
    own = [number for number, name in enumerate(program.buffers) if name not in ("IN", "OUT")]
    inside = np.isin(table.src_buffer, own) | np.isin(table.dst_buffer, own)
    return bool((tasks.cell >= 0).any() or inside.any())
