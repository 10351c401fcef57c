"""Streams and local notifies: the queues that tasks are recorded on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hccl_py.enums import TaskKind
from hccl_py.orchestration.recorder import Recorder, orchestration_error
from hccl_py.orchestration.region import Chunks, Region, pieces
from hccl_py.values import PerRank, RankInt, values_of

if TYPE_CHECKING:
    from hccl_py.orchestration.transport import Link

__all__ = ["Memory", "Notify", "Stream"]

Memory = Region | Chunks | Sequence[Region]


class Notify(NamedTuple):
    """One bit between two streams of a rank; the stream that waits owns it."""

    cell: RankInt


class Stream:
    """A queue of tasks: tasks on one stream run in order, streams run at the same time."""

    def __init__(self, recorder: Recorder, index: int) -> None:
        self._recorder = recorder
        self.index = index

    def copy(self, dst: Memory, src: Memory) -> None:
        """Copy src to dst, one task per contiguous piece; either may lie in a peer's memory."""
        self._move(dst, src, reduces=False)

    def reduce(self, dst: Memory, src: Memory) -> None:
        """Reduce src into dst with the op's reduce op; inline where one side lies in a peer's
        memory.
        """
        if self._recorder.reduce < 0:
            raise orchestration_error(
                "This op has no reduce op, so nothing can be reduced", "Use stream.copy."
            )
        self._move(dst, src, reduces=True)

    def post(self, notify: Notify) -> None:
        """Set a notify of this rank."""
        self._recorder.append(TaskKind.NOTIFY_POST, self.index, notify.cell)

    def wait(self, notify: Notify) -> None:
        """Wait until a notify of this rank is set, and clear it."""
        self._recorder.append(TaskKind.NOTIFY_WAIT, self.index, notify.cell)

    def compute(self, microseconds: float) -> None:
        """Run a kernel of the given duration."""
        if not 0 <= microseconds < float("inf"):
            raise ValueError(f"a kernel cannot take {microseconds} microseconds")
        self._recorder.append(TaskKind.COMPUTE, self.index, duration_us=float(microseconds))

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Label what the rank records inside the block, on any stream."""
        outer = self._recorder.label
        self._recorder.label = self._recorder.labels.number(name)
        try:
            yield
        finally:
            self._recorder.label = outer

    def steps(self, name: str, count: RankInt) -> Iterator[int]:
        """Yield 0 .. count - 1; what the rank records in a step is labelled `name step/count`."""
        total = int(count)
        for step in range(total):
            with self.phase(f"{name} {step + 1}/{total}"):
                yield step

    def _move(self, dst: Memory, src: Memory, *, reduces: bool) -> None:
        into, out_of = pieces(dst), pieces(src)
        if len(into) != len(out_of):
            raise orchestration_error(
                f"{len(out_of)} pieces cannot be copied to {len(into)}",
                finding="SLICE_LEN_MISMATCH",
            )
        for d, s in zip(into, out_of, strict=True):
            _check_sizes(d, s)
            kind, link = _kind(d.link, s.link, reduces)
            end, peer = (-1, -1) if link is None else (link.end, link.peer)
            self._recorder.append_move(
                kind, self.index, end, peer, (s.buffer, s.offset), (d.buffer, d.offset), d.size
            )


def _kind(into: Link | None, out_of: Link | None, reduces: bool) -> tuple[TaskKind, Link | None]:
    """Return the task that moves data to or from a link; a read needs SDMA, a write takes the
    link's own kind.
    """
    if into is not None and out_of is not None:
        raise orchestration_error(
            "Source and destination both lie in a peer's memory", "Stage the data in between."
        )
    if out_of is not None:
        if out_of.rdma:
            raise orchestration_error(
                "RDMA transports can only write, not read",
                "Use exchange(), which lets the sender push.",
            )
        return (TaskKind.READ_REDUCE if reduces else TaskKind.READ), out_of
    if into is not None:
        if into.rdma:
            return (TaskKind.RDMA_WRITE_REDUCE if reduces else TaskKind.RDMA_WRITE), into
        return (TaskKind.WRITE_REDUCE if reduces else TaskKind.WRITE), into
    return (TaskKind.REDUCE if reduces else TaskKind.COPY), None


def _check_sizes(dst: Region, src: Region) -> None:
    a, b = dst.size, src.size
    if isinstance(a, PerRank) and isinstance(b, PerRank) and a.key() == b.key():
        return
    differ = values_of(a) != values_of(b)
    if np.any(differ):
        lane = int(np.argmax(np.atleast_1d(differ)))
        sizes = [
            int(np.broadcast_to(np.atleast_1d(values_of(x)), max(np.size(differ), 1))[lane])
            for x in (b, a)
        ]
        raise orchestration_error(
            f"A source of {sizes[0]} bytes does not fit a destination of {sizes[1]}",
            "Both sides of a task have the same size.",
            finding="SLICE_LEN_MISMATCH",
        )
