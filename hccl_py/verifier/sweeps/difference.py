"""The first difference between two recordings of one call: in batches, and rank by rank.

They must give the same program. Where they do not, `orchestrate` or `resources` is no pure function
of its arguments, or gets round the per-rank values.
"""

from __future__ import annotations

import numpy as np

from hccl_py.program.describe import format_action, format_line_of, format_stream
from hccl_py.program.matching import Queues, queues_of
from hccl_py.program.program import Program
from hccl_py.verifier.finding import Failure

_HINT = (
    "resources() and orchestrate() depend on their arguments alone: keep no state between calls, "
    "and take no numbers out of per-rank values."
)


def difference(batched: Program, by_rank: Program) -> Failure | None:
    """Return the first difference; None where the programs are the same."""
    if batched.digest == by_rank.digest:
        return None
    head = "Recording all ranks together and rank by rank gives different programs"
    one, other = queues_of(batched), queues_of(by_rank)
    if len(one.first) != len(other.first):
        streams = f"{batched.streams} and {by_rank.streams} streams"
        return Failure(f"{head}: {streams} a rank.", _HINT)
    found = _first(batched, one, by_rank, other)
    if found is None:
        return Failure(f"{head}: their requests differ.", _HINT)
    queue, index = found
    rank, stream = divmod(queue, batched.streams)
    texts = [_task(p, q, queue, index) for p, q in ((batched, one), (by_rank, other))]
    place = f"rank {rank} {format_stream(stream)} task {index}"
    return Failure(
        f"{head}: {place} is {texts[0][0]}, and rank by rank {texts[1][0]}.",
        _HINT,
        texts[0][1] or texts[1][1] or None,
    )


def _first(
    batched: Program, one: Queues, by_rank: Program, other: Queues
) -> tuple[int, int] | None:
    """Return queue and index of the first task that differs."""
    mine, theirs = batched.tasks.meaning(), by_rank.tasks.meaning()
    for queue in range(len(one.first) - 1):
        a = one.rows[one.first[queue] : one.first[queue + 1]]
        b = other.rows[other.first[queue] : other.first[queue + 1]]
        both = min(len(a), len(b))
        differ = np.zeros(both, bool)
        for name, column in mine.items():
            differ |= column[a[:both]] != theirs[name][b[:both]]
        if differ.any():
            return queue, int(differ.argmax())
        if len(a) != len(b):
            return queue, both
    return None


def _task(program: Program, queues: Queues, queue: int, index: int) -> tuple[str, str]:
    at = int(queues.first[queue]) + index
    if at >= queues.first[queue + 1]:
        return "not there", ""
    row = int(queues.rows[at])
    return f"`{format_action(program, row)}`", format_line_of(program, row)
