"""Channels: transfers to and from a peer, and the notifies of both ends by their numbers.

On a channel, a post comes after the data that was written or read before it; between two channels
only the thread keeps order.
"""

from __future__ import annotations

import operator

import numpy as np

from hccl_py.enums import ChannelBuffer, ReduceOp
from hccl_py.orchestration.channels.thread import Thread
from hccl_py.orchestration.recorder import Recorder, orchestration_error
from hccl_py.orchestration.region import pieces
from hccl_py.orchestration.stream import Memory, Stream
from hccl_py.orchestration.transport import TransportEnd
from hccl_py.program.transports import Transports
from hccl_py.values import IntArray


class Channel(TransportEnd):
    """This rank's end of a channel to `peer`, a per-rank value.

    `remote(region)` is the same place in the peer's memory: in its HCCL buffer, or in user memory
    that it registered for the channel. Methods record on `thread`, a thread of the rank. They raise
    OrchestrationError for memory that is not registered (REMOTE_NOT_EXPORTED) or belongs to another
    channel's peer (WRONG_ADDRESS), for a notify that was not requested (NOTIFY_INDEX_OUT_OF_RANGE)
    and for a read over RDMA.
    """

    not_shown = "Let the peer register it: ChannelRequest(peer, memory=(Buffer.USER_OUT,))."

    def __init__(self, recorder: Recorder, transports: Transports, ends: IntArray) -> None:
        super().__init__(recorder, transports, ends)
        self.notifies = int(np.min(transports.notifies[ends]))

    def write(self, thread: Thread, dst: Memory, src: Memory) -> None:
        """Write src, of this rank, to dst at the peer."""
        self._send(thread, dst, src, None, reduces=False)

    def write_reduce(
        self, thread: Thread, dst: Memory, src: Memory, op: ReduceOp | None = None
    ) -> None:
        """Reduce src, of this rank, into dst at the peer, with the call's reduce op or `op`."""
        self._send(thread, dst, src, op, reduces=True)

    def write_with_notify(self, thread: Thread, dst: Memory, src: Memory, index: int) -> None:
        """Write src to dst at the peer, and post the peer's notify `index` behind it."""
        self._checked(thread, index)
        self.write(thread, dst, src)
        self.post(thread, index)

    def write_reduce_with_notify(
        self, thread: Thread, dst: Memory, src: Memory, index: int, op: ReduceOp | None = None
    ) -> None:
        """Reduce src into dst at the peer, and post the peer's notify `index` behind it."""
        self._checked(thread, index)
        self.write_reduce(thread, dst, src, op)
        self.post(thread, index)

    def read(self, thread: Thread, dst: Memory, src: Memory) -> None:
        """Read src, at the peer, to dst of this rank."""
        self._fetch(thread, dst, src, None, reduces=False)

    def read_reduce(
        self, thread: Thread, dst: Memory, src: Memory, op: ReduceOp | None = None
    ) -> None:
        """Reduce src, at the peer, into dst of this rank, with the call's reduce op or `op`."""
        self._fetch(thread, dst, src, op, reduces=True)

    def post(self, thread: Thread, index: int) -> None:
        """Set the peer's notify `index`, after this channel's earlier transfers."""
        self._post(thread, self._checked(thread, index))

    def wait(self, thread: Thread, index: int) -> None:
        """Wait until this end's notify `index` is set, and clear it."""
        self._wait(thread, self._checked(thread, index))

    def fence(self, thread: Thread) -> None:
        """Order the channel's transfers before and after it; no task, as a channel keeps its order
        anyway.
        """
        self._check_stream(thread)

    def _send(
        self, thread: Thread, dst: Memory, src: Memory, op: ReduceOp | None, *, reduces: bool
    ) -> None:
        self._check_stream(thread)
        self._check_sides(thread, at_peer=dst, own=src)
        thread.transfer(dst, src, op, reduces=reduces)

    def _fetch(
        self, thread: Thread, dst: Memory, src: Memory, op: ReduceOp | None, *, reduces: bool
    ) -> None:
        self._check_stream(thread)
        if self.rdma:
            raise orchestration_error(
                "A channel over RDMA only writes, and this is a read",
                "Let the peer write, or say so in suits(): not topology.has_rdma.",
                stream=thread.index,
            )
        self._check_sides(thread, at_peer=src, own=dst)
        thread.transfer(dst, src, op, reduces=reduces)

    def _check_sides(self, thread: Thread, at_peer: Memory, own: Memory) -> None:
        """Refuse addresses of the wrong rank."""
        if any(piece.link is not self for piece in pieces(at_peer)):
            raise orchestration_error(
                "The peer's side of a transfer is no memory that this channel reaches",
                "Give channel.remote(region), of the same channel.",
                finding="WRONG_ADDRESS",
                stream=thread.index,
            )
        if any(piece.link is not None for piece in pieces(own)):
            raise orchestration_error(
                "Both sides of a transfer lie at a peer",
                "One is memory of the rank: rank.buffer, rank.user_in, rank.user_out.",
                finding="WRONG_ADDRESS",
                stream=thread.index,
            )

    def _checked(self, thread: Thread, index: int) -> int:
        """Return the number of a notify; refuse one that was not asked for."""
        number = operator.index(index)
        if not 0 <= number < self.notifies:
            self._check_stream(thread)
            raise orchestration_error(
                f"Notify {number} of the channel does not exist: {self.notifies} were asked for",
                "Ask for more at both ends: ChannelRequest(peer, notifies=...).",
                finding="NOTIFY_INDEX_OUT_OF_RANGE",
                stream=thread.index,
            )
        return number

    def _check_stream(self, stream: Stream) -> None:
        if not isinstance(stream, Thread):
            raise TypeError(f"a thread is one of rank.threads, not {stream!r}")
        super()._check_stream(stream)

    def _spelling(self, buffer: int) -> str:
        return ChannelBuffer(buffer).spelling
