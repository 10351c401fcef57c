"""Open ends: tasks that may still run when a rank that they concern has left its main stream.

A task concerns the rank on whose stream it is, and the rank whose memory it reads or writes. Some
platforms do not wait for the end of a run: the caller's next work follows main in stream order, and
may take the memory of the rank. They need every task to be over before the main streams of all
ranks that it concerns are, by stream order and from posts to waits.

One walk goes from the last task to the first. Every stream knows the ranks whose main streams end
after the task that comes next on it; a wait hands that set on to the post that it consumes. Data
and posts arrive in their order over an RDMA connection, so a write there is over for a rank that
waits for a later post on the same connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hccl_py.enums import POST, RDMA_WRITES, READS, WAIT, WRITES
from hccl_py.errors import OrchestrationError
from hccl_py.program.describe import format_action, format_line_of, format_place, format_stream
from hccl_py.program.kernels import kernel, reading
from hccl_py.values import IntArray

if TYPE_CHECKING:
    from hccl_py.program.program import Program

Int32s = npt.NDArray[np.int32]

_BITS = 63


def open_ends(program: Program) -> IntArray:
    """Return the tasks that nothing orders before the end of a main stream, one row (task, rank)
    for each rank that a task concerns. DeadlockError or OrchestrationError where the program is not
    clean (`Linked.check`).
    """
    tasks, linked = program.tasks, program.linked
    linked.check(program)
    touches = np.isin(tasks.kind, (*READS, *WRITES)) & (tasks.size > 0)
    ends = len(program.transports)
    connection = np.full(len(tasks), -1, np.int64)
    if ends and program.transports.is_rdma.any():
        goes = np.isin(tasks.kind, (*RDMA_WRITES, POST)) & (tasks.end >= 0)
        goes[goes] = program.transports.is_rdma[tasks.end[goes]]
        connection[goes] = tasks.end[goes]
    queue = tasks.rank.astype(np.int64) * program.streams + tasks.stream
    is_open = _find_open.sized(len(tasks) * (1 + program.ranks // _BITS))(
        reading(linked.order),
        reading(linked.post_of),
        reading(queue),
        reading(tasks.kind),
        reading(np.where(touches, tasks.peer, -1).astype(np.int64)),
        reading(connection),
        ends,
        program.ranks,
        program.streams,
    )
    own, peers = (np.flatnonzero(column) for column in is_open)
    found = np.concatenate(
        [np.column_stack([own, tasks.rank[own]]), np.column_stack([peers, tasks.peer[peers]])]
    )
    return found[np.lexsort((found[:, 1], found[:, 0]))].astype(np.int64)


def check_ends(program: Program) -> None:
    """Raise OrchestrationError where a rank could leave its main stream before its other streams,
    and all access to its memory, are over.
    """
    found = program.open_ends
    if len(found):
        own = np.flatnonzero(program.tasks.rank[found[:, 0]] == found[:, 1])  # a cause of others
        first = found[own[0] if len(own) else 0]
        message, hint = _described(program, *first.tolist())
        more = f" So may {len(found) - 1} more." if len(found) > 1 else ""
        raise OrchestrationError(f"Open end: {message}{more}", hint)


def _described(program: Program, row: int, rank: int) -> tuple[str, str]:
    """Return the sentence for an open end, and a hint: the task to add."""
    tasks, line = program.tasks, format_line_of(program, row)
    where = f" ({line})" if line else ""
    what = f"{format_place(program, row)} {format_action(program, row, in_sentence=True)}{where}"
    message = f"{what}, and nothing says that this is over when rank {rank}'s main ends."
    owner, stream = int(tasks.rank[row]), int(tasks.stream[row])
    if owner != rank:
        return message, (
            f"Let rank {owner} post a notify after that task, and rank {rank} wait for it before "
            "its main stream ends."
        )
    if stream:
        return message, (
            f"Let {format_stream(stream, program.stream_names)} post a notify at its end that main "
            "waits for (rank.fork() does)."
        )
    return message, (
        f"It goes on over RDMA: let rank {int(tasks.peer[row])} answer with DataAck when it has "
        f"the data, and rank {rank} wait for that before its main stream ends."
    )


@kernel
def _find_open(
    order: Int32s,
    post_of: Int32s,
    queue: IntArray,
    kind: npt.NDArray[np.int8],
    peer: IntArray,
    connection: IntArray,
    ends: int,
    ranks: int,
    streams: int,
) -> npt.NDArray[np.bool_]:
    """Return masks of tasks that are open for their own rank, and for their peer, [2, tasks].

    Tasks are taken from the last to the first of `order`. Sets of ranks are rows of bits, `words`
    numbers of _BITS bits each, so a wait or post costs `words` steps and any other task one.
    """
    words = (ranks + _BITS - 1) // _BITS
    # after[q]: ranks whose main stream ends after the task that comes next on queue q.
    after = np.zeros((ranks * streams, words), np.int64)
    # arrived[e]: the same for the post that comes next on connection e.
    arrived = np.zeros((ends, words), np.int64)
    # room[kept[post]]: the set of the wait that takes a post, from the wait to the post. Rows of
    # room are used again: free[:unused] are those below `used` that no pair needs.
    kept = np.full(len(order), -1, np.int64)
    free = np.empty(len(order), np.int64)
    room = np.zeros((64, words), np.int64)
    used, unused = 0, 0
    is_open = np.zeros((2, len(order)), np.bool_)
    # At first each main stream is followed by its own end alone.
    for rank in range(ranks):
        after[rank * streams, rank // _BITS] = np.int64(1) << (rank % _BITS)
    for at in range(len(order) - 1, -1, -1):
        row = order[at]
        q = queue[row]
        link = connection[row]
        if kind[row] == WAIT:
            # Hand the queue's set to the post, which comes later in this walk.
            if unused > 0:
                unused -= 1
                place = free[unused]
            else:
                if used == len(room):
                    larger = np.zeros((2 * used, words), np.int64)
                    for old in range(used):  # a slice compiles for seconds: its error's words
                        for word in range(words):
                            larger[old, word] = room[old, word]
                    room = larger
                place = used
                used += 1
            for word in range(words):
                room[place, word] = after[q, word]
            kept[post_of[row]] = place
        elif kind[row] == POST:
            # What comes before the post is over when the waiting rank goes on.
            place = kept[row]
            for word in range(words):
                after[q, word] |= room[place, word]
                if link >= 0:
                    arrived[link, word] |= room[place, word]
            free[unused] = place
            unused += 1
        # A write over RDMA is over when a later post on its connection has arrived, any other task
        # when its queue goes on. It is open for ranks that are not in that set.
        own, other = q // streams, peer[row]
        moves_on = link >= 0 and kind[row] != POST
        known = arrived[link] if moves_on else after[q]
        is_open[0, row] = (known[own // _BITS] >> (own % _BITS)) & 1 == 0
        if other >= 0:
            is_open[1, row] = (known[other // _BITS] >> (other % _BITS)) & 1 == 0
    return is_open
