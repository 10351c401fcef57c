"""Streams and local notifies: the queues that tasks are recorded on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hccl_py.enums import Buffer, ReduceOp, TaskKind
from hccl_py.errors import OrchestrationError
from hccl_py.orchestration.recorder import Recorder, orchestration_error
from hccl_py.orchestration.region import Chunks, Region, pieces
from hccl_py.values import PerRank, RankInt, values_of

if TYPE_CHECKING:
    from hccl_py.orchestration.transport import TransportEnd

Memory = Region | Chunks | Sequence[Region]

_BUFFERS = frozenset(Buffer)


class Notify(NamedTuple):
    """One bit between two streams of a rank; `owner` is the index of the waiting stream, where that
    is fixed.
    """

    cell: RankInt
    owner: int | None = None


class Phase:
    """A block whose tasks have a label; one that is made and never entered fails the recording."""

    def __init__(self, recorder: Recorder, name: str) -> None:
        self._recorder, self._name = recorder, name
        self._outer = -1
        recorder.not_entered.append(name)

    def __enter__(self) -> None:
        self._recorder.not_entered.remove(self._name)
        self._outer = self._recorder.label
        self._recorder.label = self._recorder.labels[self._name]

    def __exit__(self, *raised: object) -> None:
        self._recorder.label = self._outer


class Stream:
    """A queue of tasks: tasks on one stream run in order, streams run at the same time.

    `rank.main` is one, `rank.subs` are the others; `index` is 0 for main and k + 1 for sub k.
    Methods record one task, or one per piece of memory, for all ranks of the batch; nothing runs.
    An impossible task raises OrchestrationError with the author's line; an argument of another type
    raises TypeError, which the recording turns into one.
    """

    def __init__(self, recorder: Recorder, index: int) -> None:
        self.recorder = recorder
        self.index = index

    def copy(self, dst: Memory, src: Memory) -> None:
        """Copy src to dst, one task per contiguous piece; either may lie in a peer's memory
        (`link.remote`): SDMA reads or writes there, RDMA only writes.

        Both sides have as many pieces of the same bytes. Raises OrchestrationError where they do
        not (SLICE_LEN_MISMATCH), where both lie at a peer, and for a read over RDMA.
        """
        self._move(dst, src)

    def reduce(self, dst: Memory, src: Memory, op: ReduceOp | None = None) -> None:
        """Reduce src into dst, element by element, with the call's reduce op, or with another `op`;
        inline where one side lies in a peer's memory.

        Raises the errors of `copy`, and OrchestrationError where neither the call nor `op` says how
        to reduce.
        """
        self._move(dst, src, self._reduce_number(op))

    def post(self, notify: Notify) -> None:
        """Set a notify of this rank."""
        self.recorder.append(TaskKind.NOTIFY_POST, self.index, _cell(notify))

    def wait(self, notify: Notify) -> None:
        """Wait until a notify of this rank is set, and clear it."""
        self.recorder.append(TaskKind.NOTIFY_WAIT, self.index, _cell(notify))

    def compute(self, microseconds: float) -> None:
        """Run a kernel of the given duration; OrchestrationError for one below 0 or infinite."""
        if not 0 <= microseconds < float("inf"):
            raise self._error(
                f"A kernel cannot take {microseconds} microseconds", "Give 0 or more, not infinity."
            )
        self.recorder.append(TaskKind.COMPUTE, self.index, duration_us=float(microseconds))

    def phase(self, name: str) -> Phase:
        """Label the rank's tasks inside of `with stream.phase(name):`, on any stream."""
        if not isinstance(name, str):
            raise TypeError(f"a label is a text, not {name!r}")
        return Phase(self.recorder, name)

    def steps(self, name: str, count: RankInt) -> Iterator[int]:
        """Yield 0 .. count - 1; the rank's tasks in a step are labelled `name step/count`."""
        total = int(count)
        for step in range(total):
            with self.phase(f"{name} {step + 1}/{total}"):
                yield step

    def _reduce_number(self, op: ReduceOp | None) -> int:
        """Return the number of the call's reduce op, or of `op`; refuse where there is none."""
        if op is not None and not isinstance(op, ReduceOp):
            raise TypeError(f"a reduce op is a ReduceOp such as ReduceOp.SUM, not {op!r}")
        number = self.recorder.reduce if op is None else int(op)
        if number < 0:
            raise self._error(
                "This op has no reduce op, so nothing can be reduced",
                "Use copy, or say which: reduce(dst, src, ReduceOp.SUM).",
            )
        return number

    def _move(self, dst: Memory, src: Memory, reduce: int = -1) -> None:
        """Record one task per piece; `reduce` is the number of a ReduceOp, -1 to copy."""
        into, out_of = pieces(dst), pieces(src)
        if len(into) != len(out_of):
            raise self._error(
                f"{len(out_of)} pieces cannot be copied to {len(into)}",
                "Give as many pieces on both sides; region.split(n) and chunks.parts(n) cut alike.",
                "SLICE_LEN_MISMATCH",
            )
        for d, s in zip(into, out_of, strict=True):
            self._check_piece(d)
            self._check_piece(s)
            self._check_sizes(d, s)
            kind, link = self._kind(d.link, s.link, reduce >= 0)
            end, peer = (-1, -1) if link is None else (link.end, link.peer)
            self.recorder.append_move(
                kind, self.index, end, peer, (s.buffer, s.offset), (d.buffer, d.offset), d.size,
                reduce,
            )  # fmt: skip

    def _kind(
        self, into: TransportEnd | None, out_of: TransportEnd | None, reduces: bool
    ) -> tuple[TaskKind, TransportEnd | None]:
        """Return the task that moves data to or from a link; a read needs SDMA, a write takes the
        link's own kind.
        """
        if into is not None and out_of is not None:
            raise self._error(
                "Source and destination both lie in a peer's memory", "Stage the data in between."
            )
        link = into or out_of
        if link is None:
            return (TaskKind.REDUCE if reduces else TaskKind.COPY), None
        self.check_recorder(link.recorder)
        if out_of is not None:
            if out_of.rdma:
                raise self._error(
                    "RDMA transports can only write, not read",
                    "Use exchange(), which lets the sender push.",
                )
            return (TaskKind.READ_REDUCE if reduces else TaskKind.READ), link
        if link.rdma:
            return (TaskKind.RDMA_WRITE_REDUCE if reduces else TaskKind.RDMA_WRITE), link
        return (TaskKind.WRITE_REDUCE if reduces else TaskKind.WRITE), link

    def _check_sizes(self, dst: Region, src: Region) -> None:
        a, b = dst.size, src.size
        if isinstance(a, PerRank) and isinstance(b, PerRank):
            same = a.key() == b.key()
        else:
            same = isinstance(a, int) and isinstance(b, int) and a == b
        if same:
            return
        differ = values_of(a) != values_of(b)
        if np.any(differ):
            lane = int(np.argmax(np.atleast_1d(differ)))
            sizes = [
                int(np.broadcast_to(np.atleast_1d(values_of(x)), max(np.size(differ), 1))[lane])
                for x in (b, a)
            ]
            raise self._error(
                f"A source of {sizes[0]} bytes does not fit a destination of {sizes[1]}",
                "Both sides of a task have the same size.",
                "SLICE_LEN_MISMATCH",
            )

    def _check_piece(self, piece: Region) -> None:
        """Refuse regions that an author made by hand from no memory of a rank."""
        numbers = isinstance(piece.offset, (int, PerRank)) and isinstance(
            piece.size, (int, PerRank)
        )
        if piece.buffer not in _BUFFERS or not numbers:
            raise self._error(
                f"{piece!r} is no memory of a rank",
                "Take regions from rank.user_in, rank.ccl_in and so on, and slice them.",
                "OUT_OF_BOUNDS",
            )

    def check_recorder(self, recorder: Recorder) -> None:
        """Refuse to record for other ranks, or for the same ones in an attempt that has ended."""
        if recorder is not self.recorder:
            raise self._error(
                "The stream and the link are not of the same recording",
                "Take both from the rank that orchestrate is given, and keep none between calls.",
            )

    def _error(self, message: str, hint: str, finding: str = "") -> OrchestrationError:
        return orchestration_error(message, hint, finding, stream=self.index)


def _cell(notify: Notify) -> RankInt:
    if not isinstance(notify, Notify):
        raise TypeError(f"a notify is one of rank.notifies, not {notify!r}")
    return notify.cell
