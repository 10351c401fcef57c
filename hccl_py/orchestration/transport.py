"""A link: one end of a transport, with its notifies and the peer's exported memory.

SDMA ends have Ack and DataSignal, RDMA ends also DataAck. `tx_*` sets the peer's notify, `rx_*`
waits for one's own. Legal order for one exchange: Ack pair first, then the data, then DataSignal
(and DataAck); what counts is happens-before.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from hccl_py.enums import Buffer, LinkKind, TaskKind
from hccl_py.orchestration.recorder import Recorder, orchestration_error
from hccl_py.orchestration.region import Chunks, Region
from hccl_py.orchestration.stream import Stream
from hccl_py.program.transports import ACK, DATA_ACK, DATA_SIGNAL, OWN_NOTIFIES, Transports
from hccl_py.values import IntArray, PerBool, PerRank, RankInt, values_of

if TYPE_CHECKING:
    from hccl_py.orchestration.rank import Rank


class TransportEnd:
    """One end of a transport for every rank of a batch, with the memory that the other one exports.

    `peer` is the peer's rank; `rdma` is true if data goes over RDMA. Both are per-rank values.
    """

    not_shown = "Request the transport with the memory as input_mem or output_mem."
    """The hint for memory that the peer does not export."""

    def __init__(self, recorder: Recorder, transports: Transports, ends: IntArray) -> None:
        far = transports.far[ends]
        is_rdma = transports.kind[ends] == int(LinkKind.RDMA)
        self.recorder = recorder
        self.peer: RankInt = PerRank.of(transports.peer[ends])
        self.end = PerRank.of(ends)
        self.rdma = PerBool.of(is_rdma)
        self._exported = transports.exports, far
        self._near = _NotifyCells(PerRank.of(ends * transports.stride))
        self._far = _NotifyCells(PerRank.of(far * transports.stride))
        self._has_sdma = self.rdma is not True

    @cached_property
    def _exports(self) -> frozenset[int]:
        """The memories that all peers export."""
        exports, far = self._exported
        rows = exports[far].reshape(-1, exports.shape[-1])
        rows = rows[:1] if (rows == rows[0]).all() else np.unique(rows, axis=0)
        return frozenset.intersection(*(frozenset(row) for row in rows.tolist()))

    @overload
    def remote(self, memory: Region) -> Region: ...
    @overload
    def remote(self, memory: Chunks) -> Chunks: ...
    def remote(self, memory: Region | Chunks) -> Region | Chunks:
        """Return the same place in the peer's memory, offsets and sizes in bytes as here.

        Raises OrchestrationError (REMOTE_NOT_EXPORTED) for memory that the peer's end does not
        export, and for memory of a peer.
        """
        if not isinstance(memory, (Region, Chunks)):
            raise TypeError(f"memory is a Region or Chunks, not {memory!r}")
        if memory.link is not None:
            raise orchestration_error(
                "The memory lies in a peer already, and no peer exports another rank's memory",
                "Give remote() this rank's memory: it returns the same place at the peer.",
                finding="REMOTE_NOT_EXPORTED",
            )
        if memory.buffer not in self._exports:
            exported = " and ".join(self._spelling(b) for b in sorted(self._exports))
            raise orchestration_error(
                f"{self._spelling(memory.buffer)} of the peer cannot be reached: "
                f"its transport exports {exported}",
                self.not_shown,
                finding="REMOTE_NOT_EXPORTED",
            )
        if isinstance(memory, Chunks):
            return Chunks(
                memory.buffer, memory.offsets, memory.sizes, memory.row, self, memory.order
            )
        return Region(memory.buffer, memory.offset, memory.size, self)

    def _spelling(self, buffer: int) -> str:
        return Buffer(buffer).spelling

    def _post(self, stream: Stream, notify: int) -> None:
        self._check_stream(stream)
        self.recorder.append(
            TaskKind.NOTIFY_POST, stream.index, self._far[notify], self.end, self.peer
        )

    def _wait(self, stream: Stream, notify: int) -> None:
        self._check_stream(stream)
        self.recorder.append(
            TaskKind.NOTIFY_WAIT, stream.index, self._near[notify], self.end, self.peer
        )

    def _check_stream(self, stream: Stream) -> None:
        if not isinstance(stream, Stream):
            raise TypeError(f"a stream is rank.main or one of rank.subs, not {stream!r}")
        stream.check_recorder(self.recorder)


class Link(TransportEnd):
    """This rank's end of the transport to `peer`.

    Methods record a task on `stream`, a stream of the same rank. OrchestrationError is raised for a
    stream or a rank of another recording, TypeError for an argument that is no stream.
    """

    def __init__(self, rank: Rank[Any, Any], plane: str, peer: RankInt) -> None:
        fabric = rank.fabric
        ends = fabric.ends(plane, values_of(rank.id), values_of(peer))
        super().__init__(rank.recorder, fabric.transports, ends)
        self.rank = rank
        self.peer = peer
        self._ends = ends
        self._plane = plane

    @cached_property
    def _extra(self) -> int:
        return int(np.min(self.rank.fabric.extra[self._ends]))

    @property
    def inline_reduce(self) -> bool:
        """True if this link reduces the call's data type with its op."""
        over_sdma, over_rdma = self.rank.inline_reduces
        return over_sdma if over_sdma == over_rdma or not self.rdma else over_rdma

    def tx_ack(self, stream: Stream) -> None:
        """Post the peer's Ack."""
        self._post(stream, ACK)

    def rx_ack(self, stream: Stream) -> None:
        """Wait for this end's Ack."""
        self._wait(stream, ACK)

    def tx_data_signal(self, stream: Stream) -> None:
        """Post the peer's DataSignal."""
        self._post(stream, DATA_SIGNAL)

    def rx_data_signal(self, stream: Stream) -> None:
        """Wait for this end's DataSignal."""
        self._wait(stream, DATA_SIGNAL)

    def tx_data_ack(self, stream: Stream) -> None:
        """Post the peer's DataAck; OrchestrationError where some rank's link is SDMA."""
        self._check_rdma(stream)
        self._post(stream, DATA_ACK)

    def rx_data_ack(self, stream: Stream) -> None:
        """Wait for this end's DataAck; OrchestrationError where some rank's link is SDMA."""
        self._check_rdma(stream)
        self._wait(stream, DATA_ACK)

    def post(self, stream: Stream, index: int) -> None:
        """Post the peer's extra notify `index`, from 0; OrchestrationError for one that was not
        requested (`PlaneRequest.extra_notifies`).
        """
        self._post(stream, OWN_NOTIFIES + self._extra_index(stream, index))

    def wait(self, stream: Stream, index: int) -> None:
        """Wait for this end's extra notify `index`, from 0; OrchestrationError as in `post`."""
        self._wait(stream, OWN_NOTIFIES + self._extra_index(stream, index))

    def post_barrier(self, stream: Stream) -> None:
        """Post the peer's notify for barriers (`Plane.barrier` records posts and waits)."""
        self._post(stream, OWN_NOTIFIES + self._barrier_index(stream))

    def wait_barrier(self, stream: Stream) -> None:
        """Wait for this end's notify for barriers."""
        self._wait(stream, OWN_NOTIFIES + self._barrier_index(stream))

    @contextmanager
    def handshake(self, stream: Stream, *, ack: bool = True, signal: bool = True) -> Iterator[None]:
        """Record the block between two handshakes of both ends: Ack both ways before it, DataSignal
        both ways after it. Use it as `with link.handshake(stream):` at both ends alike.

        In the block each end may read data that the other one had in place before, or write into
        memory that was free before; after it both have all data that they read or were sent.
        `ack=False` or `signal=False` leaves one of the handshakes out, where other tasks keep its
        order. Over RDMA, DataAck follows DataSignal, so that the sent memory may change.
        """
        if ack:
            self.tx_ack(stream)
            self.rx_ack(stream)
        yield
        if signal:
            self.tx_data_signal(stream)
            self.rx_data_signal(stream)
            if self.rdma:
                self.tx_data_ack(stream)
                self.rx_data_ack(stream)

    def _extra_index(self, stream: Stream, index: int) -> int:
        number = operator.index(index)
        if not 0 <= number < self._extra:
            self._check_stream(stream)
            raise orchestration_error(
                f"Notify {number} of the transport does not exist: "
                f"extra notifies requested: {self._extra}",
                "Ask for more with PlaneRequest(extra_notifies=...).",
                finding="NOTIFY_INDEX_OUT_OF_RANGE",
                stream=stream.index,
            )
        return number

    def _barrier_index(self, stream: Stream) -> int:
        """Return the place of the barrier's notify, behind the extra ones."""
        if not np.all(self.rank.fabric.has_barrier[self._ends]):
            self._check_stream(stream)
            raise orchestration_error(
                f"A link of plane {self._plane} has no notify for barriers",
                "Ask for it with PlaneRequest(..., barrier=True), and call barrier() of the whole "
                "plane: its first member meets all others.",
                finding="NOTIFY_INDEX_OUT_OF_RANGE",
                stream=stream.index,
            )
        return self._extra

    def _check_rdma(self, stream: Stream) -> None:
        if self._has_sdma:
            self._check_stream(stream)
            raise orchestration_error(
                "SDMA transports have no DataAck",
                "Only RDMA writes are acknowledged; exchange() records both kinds.",
                stream=stream.index,
            )


class _NotifyCells(dict[int, RankInt]):
    """The notify cells of an end by index, each made when it is first used."""

    def __init__(self, first: RankInt) -> None:
        super().__init__()
        self._first = first

    def __missing__(self, index: int) -> RankInt:
        found: RankInt = self._first + index
        self[index] = found
        return found
