"""The meaning of a program: its waits matched to posts, by the untimed walk over one-bit notifies.

Every (rank, stream) is a queue. A queue runs until a wait finds an empty cell; a post that fills
the cell lets it go on. The walk ends when nothing moves. It links every wait to the post that it
consumed, gives a topological order of all tasks, and finds overruns (a post on a full cell), posts
that no wait consumed, and streams that are stuck.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hccl_py.enums import POST, WAIT
from hccl_py.errors import DeadlockError, OrchestrationError
from hccl_py.program.describe import format_notify, format_place, format_task, notify_name
from hccl_py.program.kernels import kernel, reading
from hccl_py.program.transports import NOTIFY_NAMES
from hccl_py.values import IntArray

if TYPE_CHECKING:
    from hccl_py.program.program import Program

Rows = npt.NDArray[np.int32]

_SHOWN = 8
_RX = dict(zip(NOTIFY_NAMES, ("rx_ack", "rx_data_signal", "rx_data_ack"), strict=True))
_TX = {name: rx.replace("rx", "tx") for name, rx in _RX.items()}


@dataclass(frozen=True, eq=False)
class Queues:
    """Task rows by (rank, stream): queue q = rank·streams + stream holds rows[first[q] : first[q +
    1]].
    """

    first: npt.NDArray[np.int64]
    rows: Rows


@dataclass(frozen=True, eq=False)
class Linked:
    """Findings of the untimed walk; all members are task rows.

    `order` lists the executed tasks, `post_of` has for every wait the post that it consumed (-1
    elsewhere), `overruns` pairs of (late post, earlier unconsumed post), `leftover` posts never
    consumed, `stuck` the waits that block a stream. Where notifies count posts, there are no
    overruns.
    """

    order: Rows
    post_of: Rows
    overruns: Rows
    leftover: Rows
    stuck: Rows
    counts_posts: bool = False

    def check(self, program: Program, *, once: bool = False) -> None:
        """Raise DeadlockError where a stream never ends, OrchestrationError where a post is lost or
        left over: what is left over on a notify that counts does no harm to a program that is run
        `once`.
        """
        if len(self.stuck):
            raise DeadlockError(*self.report(program))
        if len(self.overruns):
            late, early = self.overruns[0].tolist()
            raise OrchestrationError(
                f"Notify overrun: {format_place(program, late)} posts "
                f"{format_notify(program, late)}, but the post of {format_place(program, early)} "
                "was not consumed yet.",
                "A notify is one bit: wait for it before it is posted again.",
                finding="NOTIFY_OVERRUN",
            )
        if len(self.leftover) and not (once and self.counts_posts):
            row = int(self.leftover[0])
            raise OrchestrationError(
                f"Unmatched post: no task waits for {format_notify(program, row)} "
                f"posted by {format_place(program, row)}.",
                "Each tx needs an rx at the other end of the same transport.",
                finding="UNMATCHED_POST",
            )

    def report(self, program: Program) -> tuple[str, str]:
        """Return the stuck streams with their waits, one line each, and a hint."""
        streams = len(
            np.unique(program.tasks.rank.astype(np.int64) * program.streams + program.tasks.stream)
        )
        lines = [
            f"Deadlock: {len(self.stuck)} of {streams} streams can never go on "
            f"({len(self.order)} of {len(program.tasks)} tasks done)."
        ]
        lines += [f"  {format_task(program, row)}" for row in self.stuck[:_SHOWN].tolist()]
        if len(self.stuck) > _SHOWN:
            lines.append(f"  ... and {len(self.stuck) - _SHOWN} more")
        return "\n".join(lines), self._remedy(program)

    def _remedy(self, program: Program) -> str:
        """Return a hint how to set the stuck streams free, as far as the numbers of posts tell."""
        tasks, transports = program.tasks, program.transports
        kind, cell = tasks.kind, tasks.cell[self.stuck]
        posts, waits = (
            np.bincount(tasks.cell[kind == what], minlength=program.cells) for what in (POST, WAIT)
        )
        lacking = self.stuck[posts[cell] < waits[cell]]
        if not len(lacking):
            return "Post before you wait: the posts that are missing stand behind other waits."
        notify = int(tasks.cell[lacking[0]])
        name, rank = notify_name(program, notify), int(tasks.rank[lacking[0]])
        counts = f"{posts[notify]} of {waits[notify]}"
        if notify >= transports.cells:
            return f"Rank {rank}'s {name} has {counts} posts: post it once for each wait."
        peer = int(transports.peer[notify // transports.stride])
        both = f"; each {_RX[name]} needs a {_TX[name]} at the other end" if name in _RX else ""
        return f"Rank {peer} must post {name} to rank {rank} once for each wait ({counts}){both}."


def queues_of(program: Program) -> Queues:
    """Sort the tasks by rank and stream, keeping their order."""
    tasks, streams = program.tasks, program.streams
    if streams == 1:
        return Queues(tasks.first, np.arange(len(tasks), dtype=np.int32))
    first, rows = _sort_queues.sized(len(tasks))(
        tasks.first, tasks.instruction, tasks.table.stream, streams
    )
    return Queues(first, rows)


def match(program: Program, cells: IntArray | None = None) -> Linked:
    """Match the posts and waits of a program, without times; where notifies count posts, the k-th
    wait takes the k-th post. `cells` says of every task which cell it stands for, by default its
    own.
    """
    tasks, queues = program.tasks, queues_of(program)
    counts, cells = program.counts_posts, tasks.cell if cells is None else cells
    order, done, post_of, late, early, overruns, counter, holder = match_tasks.sized(len(tasks))(
        reading(queues.first),
        reading(queues.rows),
        reading(tasks.instruction),
        reading(tasks.table.kind),
        reading(cells),
        max(program.cells, int(cells.max(initial=-1)) + 1),
        False,
        counts,
    )
    blocked = counter < queues.first[1:]
    if counts:
        overruns = 0  # no post is lost
    return Linked(
        order=order[:done],
        post_of=post_of,
        overruns=np.column_stack([late[:overruns], early[:overruns]]),
        leftover=np.sort(holder[holder >= 0]),
        stuck=queues.rows[counter[blocked]],
        counts_posts=counts,
    )


def shared_cells(program: Program) -> IntArray:
    """Return the cells that several streams post, or for which several wait: where posts count, it
    is open which of them a wait takes.
    """
    tasks = program.tasks
    queue, kind = tasks.rank.astype(np.int64) * program.streams + tasks.stream, tasks.kind
    found = []
    for what in (POST, WAIT):
        pairs = np.unique(np.stack([tasks.cell, queue])[:, kind == what], axis=1)[0]
        found.append(pairs[1:][pairs[1:] == pairs[:-1]])
    return np.unique(np.concatenate(found))


@kernel
def _sort_queues(
    first: npt.NDArray[np.int64], instruction: Rows, stream: npt.NDArray[np.int16], streams: int
) -> tuple[npt.NDArray[np.int64], Rows]:
    """Sort every rank's rows by stream: a counting sort, two passes over the rows."""
    ranks = len(first) - 1
    queue_first = np.zeros(ranks * streams + 1, np.int64)
    rows = np.empty(len(instruction), np.int32)
    place = np.zeros(streams, np.int64)
    for rank in range(ranks):
        # place[s] counts the rows of stream s ...
        place[:] = 0
        for row in range(first[rank], first[rank + 1]):
            place[stream[instruction[row]]] += 1
        # ... then it is the place of the stream's next row, streams one behind the other.
        at = first[rank]
        for s in range(streams):
            queue_first[rank * streams + s] = at
            count = place[s]
            place[s] = at
            at += count
        # Rows of a stream keep their order.
        for row in range(first[rank], first[rank + 1]):
            s = stream[instruction[row]]
            rows[place[s]] = row
            place[s] += 1
    queue_first[ranks * streams] = first[ranks]
    return queue_first, rows


@kernel
def match_tasks(
    queue_first: npt.NDArray[np.int64],
    rows: Rows,
    instruction: Rows,
    kinds: npt.NDArray[np.int8],
    cell: npt.NDArray[np.int64],
    cells: int,
    patient: bool,
    counts: bool,
) -> tuple[Any, ...]:
    """Run queues from a stack; one that blocks registers with its cell and is pushed again when the
    cell changes.

    A patient walk lets a post on a full cell wait until the cell is empty, and overruns it only
    where nothing else can move. One that counts keeps posts that overran: posts of a cell stand
    behind each other, and every wait takes the first.

    A task is looked at when its queue is pushed and when its cell changes, so the cost is a few
    steps for every task, plus those of queues that wait for one cell at the same time.
    """
    queues = len(queue_first) - 1
    counter = queue_first[:-1].copy()  # the place in `rows` of the next task of every queue
    holder = np.full(cells, -1, np.int32)  # the unconsumed post of every cell
    newest = np.empty(cells if counts else 0, np.int32)  # its last post
    newer = np.full(len(rows) if counts else 0, -1, np.int32)  # the post that stands behind another
    blocked = np.full(cells, -1, np.int32)  # a queue that waits for it to change
    behind = np.empty(queues, np.int32)  # the queue that waits besides
    is_held = np.zeros(queues, np.bool_)  # by a patient post
    order = np.empty(len(rows), np.int32)  # order[:done]: rows in the order of their execution
    post_of = np.full(len(rows), -1, np.int32)
    late = np.empty(len(rows), np.int32)  # late[k] overran early[k], for k < overruns
    early = np.empty(len(rows), np.int32)
    # stack[:height]: queues that can go on, each once. All others are at their end, or registered
    # with the cell for which they wait: blocked[c], behind[blocked[c]], ...
    stack = np.empty(queues + 1, np.int32)
    for q in range(queues):
        stack[q] = queues - 1 - q
    height, done, overruns, forced = queues, 0, 0, -1
    while True:
        if height == 0:
            # No queue can go on: let the first patient post overrun its cell, or end.
            for q in range(queues):
                if is_held[q]:
                    forced = q
                    is_held[q] = False
                    stack[0] = q
                    height = 1
                    break
            if height == 0:
                break
        height -= 1
        q = stack[height]
        at = counter[q]
        while at < queue_first[q + 1]:
            row = rows[at]
            kind = kinds[instruction[row]]
            is_wait = kind == WAIT
            if is_wait or kind == POST:
                c = cell[row]
                is_full = holder[c] >= 0
                # A wait blocks on an empty cell, a patient post on a full one.
                if not is_full if is_wait else is_full and patient and forced != q:
                    is_held[q] = not is_wait
                    behind[q] = blocked[c]
                    blocked[c] = q
                    break
                if is_wait:
                    # The wait takes the first post; where posts count, the next one moves up.
                    post_of[row] = holder[c]
                    holder[c] = newer[holder[c]] if counts else -1
                else:
                    if is_full:
                        late[overruns] = row
                        early[overruns] = holder[c]
                        overruns += 1
                        forced = -1
                    # One bit keeps the late post; posts that count queue up behind the first.
                    if counts and is_full:
                        newer[newest[c]] = row
                    else:
                        holder[c] = row
                    if counts:
                        newest[c] = row
                # The cell has changed: all queues that wait for it try again.
                while blocked[c] >= 0:
                    other = blocked[c]
                    blocked[c] = behind[other]
                    is_held[other] = False
                    if other != q:
                        stack[height] = other
                        height += 1
            order[done] = row
            done += 1
            at += 1
        counter[q] = at
    return order, done, post_of, late, early, overruns, counter, holder
