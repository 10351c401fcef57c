"""A program: the tasks of all ranks, immutable, and everything needed to verify, time, draw or run
them.
"""

from __future__ import annotations

import copy
import hashlib
import os
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hccl_py.call.op_param import OpParam
from hccl_py.program.instruction import Batch
from hccl_py.program.matching import Linked, match, queues_of
from hccl_py.program.tasks import Tasks, expand
from hccl_py.program.transports import LocalNotifies, Transports
from hccl_py.values import IntArray

__all__ = ["Call", "Declared", "Program"]


@dataclass(frozen=True)
class Call:
    """One of several calls of an op: on which of the caller's streams, after which earlier calls.

    Calls on one stream run in order; `after` names calls of other streams, by number from 0, that
    an event makes this one wait for.
    """

    stream: int = 0
    after: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Declared:
    """Requests of every rank, one value per rank: sub streams, local notifies, scratch bytes.

    `local_notifies[rank, stream]` are the local notifies by the stream that owns them; there is a
    column for every stream of the program, and for others that own one.

    `stated` tells for every rank if streams, local notifies and notifies of transports were stated,
    [ranks, 3]. Resources that a file leaves out count as requested exactly as its tasks use them.
    """

    sub_streams: IntArray
    notifies: IntArray
    scratch_bytes: IntArray
    local_notifies: IntArray
    stated: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class Program:
    """All tasks of all ranks for one call of an op.

    `buffers` are the names of memories, `buffer_sizes` their bytes, of shape [ranks, buffers], 0
    where a rank has none. `labels` and `lines` are what instructions name by number: phases, and
    the author's lines. `rounds` is how often the executor recorded, `splits` at which lines ranks
    had to be recorded apart. `calls` says how the caller issues the op where that is not once, or
    back to back. `protocol` is one of `clocks.cost.PROTOCOLS` where MSCCL's threadblocks run the
    streams, and "" elsewhere: it changes times alone, as does `engine`, one of
    `clocks.cost.ENGINES` where a recording says which. With `counts_posts` notifies are semaphores:
    a post adds one and a wait takes one, where otherwise a notify is one bit. `alternating` names
    buffers of which every rank has two, of the size that is stated: one for calls 0, 2, 4, ...,
    the other for those between. `stream_names` are names of the first streams where they are not
    main and sub k, the same on all ranks. Without `has_op` the op is not known: `op` has a data
    type and nothing else, and the program cannot be saved. Two programs are the same when
    their task views are, however their ranks were batched: compare `digest`.
    """

    op: OpParam
    executor: str
    ranks: int
    buffers: tuple[str, ...]
    buffer_sizes: npt.NDArray[np.int64]
    transports: Transports
    local_notifies: LocalNotifies
    declared: Declared
    batches: tuple[Batch, ...]
    labels: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    rounds: int = 1
    splits: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    protocol: str = ""
    engine: str = ""
    counts_posts: bool = False
    alternating: tuple[str, ...] = ()
    has_op: bool = True
    stream_names: tuple[str, ...] = ()

    def __repr__(self) -> str:
        what = self.executor or "file"
        return f"<Program {self.op_name} {what}: {self.ranks} ranks, {self.task_count} tasks>"

    def _repr_html_(self) -> str:
        """Return a table of what it is and how large, for notebooks."""
        from hccl_py.program.page import program_html

        return program_html(self)

    @property
    def op_name(self) -> str:
        """The op with its reduction, as messages name it."""
        if not self.has_op:
            return "unknown op"
        reduce = self.op.reduce
        return self.op.name if reduce is None else f"{self.op.name} {reduce.spelling}"

    @property
    def batching_hint(self) -> str:
        """A hint at the line that makes ranks fall into many batches; "" where no line does."""
        if not self.splits:
            return ""
        line, _ = Counter(self.splits).most_common(1)[0]
        return (
            f"{self.executor} records {self.ranks} ranks in {len(self.batches)} batches: "
            f"{line} needs another number for every rank. "
            "Index chunks and links with per-rank values instead of branching on them."
        )

    @cached_property
    def task_count(self) -> int:
        """Number of tasks of all ranks together."""
        return sum(batch.tasks for batch in self.batches)

    @cached_property
    def streams(self) -> int:
        """Streams of the rank that has most, main included."""
        used = max((i.stream for batch in self.batches for i in batch.instructions), default=0)
        return max(used, int(self.declared.sub_streams.max(initial=0))) + 1

    @property
    def cells(self) -> int:
        """Notify cells: those of the transports, then every rank's local ones."""
        return self.transports.cells + self.ranks * len(self.local_notifies.slots)

    @cached_property
    def tasks(self) -> Tasks:
        """The task view: one row per task, expanded on first use; 52 bytes for each of
        them, so that programs of very many ranks are better left as batches.
        """
        return expand(self)

    @cached_property
    def linked(self) -> Linked:
        """Posts matched to waits, and a topological order, found on first use. Nothing is raised
        here: `linked.check(program)` raises DeadlockError for streams that can never go on, and
        OrchestrationError for posts on a set notify or left over.
        """
        return match(self)

    def with_pairs(self, linked: Linked) -> Program:
        """Return this program, its task view included, with other pairs of posts and waits:
        notifies that count posts leave several.
        """
        again = copy.copy(self)
        object.__setattr__(again, "linked", linked)  # frozen: in the place of the property
        return again

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the program to a `.json` or `.npz` file: as a whole, or not at all.

        npz keeps what was recorded and suits programs of any size; JSON has a line per task and is
        for small programs, people and other tools. The same program gives the same bytes, and
        `hccl_py.load` reads them. Raises ProgramFileError for another suffix, for a place that
        cannot be written, and for a file there that is not a program's.
        """
        from hccl_py.formats import save  # a leaf: files know programs, programs know no file

        save(self, path)

    @cached_property
    def open_ends(self) -> IntArray:
        """Rows (task, rank): tasks that may still run when the main stream of a rank that they
        concern has ended, found on first use. `ends.check_ends` raises for them.
        """
        from hccl_py.program.ends import open_ends  # few platforms need it

        return open_ends(self)

    @cached_property
    def digest(self) -> str:
        """A hash of the tasks, stream by stream.

        Labels, source lines, batching and the order of recording between streams do not count, nor
        how local notifies are numbered.
        """
        queues = queues_of(self)
        local, cell = self._notifies_in_order()
        said: tuple[object, ...] = (self.op, self.ranks, self.buffers, local.slots, self.rounds)
        if self.counts_posts or self.alternating:
            said += (self.counts_posts, self.alternating)
        parts = [repr(said).encode()]
        t = self.transports
        arrays = [
            self.buffer_sizes,
            t.rank,
            t.peer,
            t.plane,
            t.kind,
            t.exports,
            t.notifies,
            queues.first,
        ]
        meaning = self.tasks.meaning() | {"cell": cell}
        arrays += [column[queues.rows] for column in meaning.values()]
        parts += [np.ascontiguousarray(a).tobytes() for a in arrays]
        return hashlib.sha256(b"|".join(parts)).hexdigest()

    def _notifies_in_order(self) -> tuple[LocalNotifies, IntArray]:
        """Return the local notifies in their usual order, and the cells of tasks by that."""
        cell, slots = self.tasks.cell, len(self.local_notifies.slots)
        subs = int(self.declared.sub_streams.max(initial=0))
        ordered, place = self.local_notifies.in_order(subs)
        if ordered.slots == self.local_notifies.slots:
            return ordered, cell
        first, found = self.transports.cells, cell.copy()
        local = np.flatnonzero(cell >= first)
        rank, slot = np.divmod(cell[local] - first, max(slots, 1))
        found[local] = first + rank * len(ordered.slots) + place[slot]
        return ordered, found
