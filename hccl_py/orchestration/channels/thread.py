"""Threads: queues of tasks on a rank's own memory, each with numbered notifies of its own."""

from __future__ import annotations

from collections.abc import Sequence

from hccl_py.enums import ReduceOp
from hccl_py.orchestration.recorder import Recorder
from hccl_py.orchestration.region import pieces
from hccl_py.orchestration.stream import Memory, Notify, Stream


class Thread(Stream):
    """A stream as HCCL's C++ API has it: main is thread 0, workers follow.

    `notifies` are its own: any thread posts them, `main.post(worker.notifies[0])`, and only this
    one waits, `worker.wait(worker.notifies[0])`. Data goes to and from peers by methods of the
    channels; `copy` and `reduce` are for memory of the rank.
    """

    def __init__(self, recorder: Recorder, index: int, notifies: Sequence[Notify]) -> None:
        super().__init__(recorder, index)
        self.notifies = notifies

    def copy(self, dst: Memory, src: Memory) -> None:
        """Copy src to dst, both of this rank, one task per contiguous piece.

        Raises OrchestrationError for memory of a peer (WRONG_ADDRESS), and where both sides do not
        have as many pieces of the same bytes (SLICE_LEN_MISMATCH).
        """
        self._check_own(dst, src)
        self._move(dst, src)

    def reduce(self, dst: Memory, src: Memory, op: ReduceOp | None = None) -> None:
        """Reduce src into dst, both of this rank, with the call's reduce op or another `op`; raises
        what `copy` does, and OrchestrationError where neither says how to reduce.
        """
        self._check_own(dst, src)
        self._move(dst, src, self._reduce_number(op))

    def wait(self, notify: Notify) -> None:
        """Wait until a notify of this thread is set, and clear it; OrchestrationError for one of
        another thread.
        """
        if isinstance(notify, Notify) and notify.owner != self.index:
            raise self._error(
                f"Thread {self.index} waits for a notify of thread {notify.owner}",
                "A thread waits for its own: thread.wait(thread.notifies[0]).",
            )
        super().wait(notify)

    def transfer(self, dst: Memory, src: Memory, op: ReduceOp | None, *, reduces: bool) -> None:
        """Record a channel's transfer, one task per contiguous piece."""
        self._move(dst, src, self._reduce_number(op) if reduces else -1)

    def _check_own(self, dst: Memory, src: Memory) -> None:
        for piece in (*pieces(dst), *pieces(src)):
            if piece.link is not None:
                raise self._error(
                    "Memory of a peer is moved by no channel",
                    "Use channel.write(thread, dst, src) or channel.read(thread, dst, src).",
                    "WRONG_ADDRESS",
                )
