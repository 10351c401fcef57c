"""A link: one end of a transport, with its notifies and the peer's exported memory.

SDMA ends have Ack and DataSignal, RDMA ends also DataAck. `tx_*` sets the peer's notify, `rx_*`
waits for one's own. Legal order for one exchange: Ack pair first, then the data, then DataSignal
(and DataAck); what counts is happens-before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import numpy as np

from hccl_py.enums import Buffer, LinkKind, TaskKind
from hccl_py.orchestration.recorder import orchestration_error
from hccl_py.orchestration.region import Chunks, Region
from hccl_py.program.transports import ACK, DATA_ACK, DATA_SIGNAL, OWN_NOTIFIES
from hccl_py.values import PerBool, PerRank, RankInt, values_of

if TYPE_CHECKING:
    from hccl_py.orchestration.rank import Rank
    from hccl_py.orchestration.stream import Stream

__all__ = ["Link"]


class Link:
    """This rank's end of the transport to `peer`."""

    def __init__(self, rank: Rank[Any, Any], plane: str, peer: RankInt) -> None:
        fabric = rank.fabric
        transports = fabric.transports
        ends = fabric.ends(plane, values_of(rank.id), values_of(peer))
        far = transports.far[ends]
        self.rank = rank
        self.peer = peer
        self.end = PerRank.of(ends)
        is_rdma = transports.kind[ends] == LinkKind.RDMA
        self.rdma = PerBool.of(is_rdma)
        self._near_cell = PerRank.of(ends * transports.stride)
        self._far_cell = PerRank.of(far * transports.stride)
        self._exports = _common(transports.exports[far])
        self._extra = int(np.min(transports.notifies[ends])) - OWN_NOTIFIES
        self._has_sdma = not bool(np.all(is_rdma))

    @overload
    def remote(self, memory: Region) -> Region: ...
    @overload
    def remote(self, memory: Chunks) -> Chunks: ...
    def remote(self, memory: Region | Chunks) -> Region | Chunks:
        """Return the same place in the peer's memory; only what the peer's end exports can be
        reached.
        """
        if memory.buffer not in self._exports:
            exported = " and ".join(Buffer(b).spelling for b in sorted(self._exports))
            raise orchestration_error(
                f"{Buffer(memory.buffer).spelling} of the peer cannot be reached: "
                f"its transport exports {exported}",
                "Request the transport with the memory as input_mem or output_mem.",
                finding="REMOTE_NOT_EXPORTED",
            )
        if isinstance(memory, Chunks):
            return Chunks(
                memory.buffer, memory.offsets, memory.sizes, memory.row, self, memory.order
            )
        return Region(memory.buffer, memory.offset, memory.size, self)

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
        """Post the peer's DataAck (RDMA only)."""
        self._check_rdma()
        self._post(stream, DATA_ACK)

    def rx_data_ack(self, stream: Stream) -> None:
        """Wait for this end's DataAck (RDMA only)."""
        self._check_rdma()
        self._wait(stream, DATA_ACK)

    def post(self, stream: Stream, index: int) -> None:
        """Post the peer's extra notify `index`."""
        self._post(stream, OWN_NOTIFIES + self._extra_index(index))

    def wait(self, stream: Stream, index: int) -> None:
        """Wait for this end's extra notify `index`."""
        self._wait(stream, OWN_NOTIFIES + self._extra_index(index))

    def _post(self, stream: Stream, notify: int) -> None:
        self.rank.recorder.append(
            TaskKind.NOTIFY_POST, stream.index, self._far_cell + notify, self.end, self.peer
        )

    def _wait(self, stream: Stream, notify: int) -> None:
        self.rank.recorder.append(
            TaskKind.NOTIFY_WAIT, stream.index, self._near_cell + notify, self.end, self.peer
        )

    def _extra_index(self, index: int) -> int:
        if not 0 <= index < self._extra:
            raise orchestration_error(
                f"Notify {index} of the transport does not exist: "
                f"{self._extra} extra notifies were requested",
                "Ask for more with PlaneRequest(extra_notifies=...).",
                finding="NOTIFY_INDEX_OUT_OF_RANGE",
            )
        return index

    def _check_rdma(self) -> None:
        if self._has_sdma:
            raise orchestration_error(
                "SDMA transports have no DataAck",
                "Only RDMA writes are acknowledged; exchange() records both kinds.",
            )


def _common(exports: np.ndarray[tuple[int, ...], np.dtype[np.int8]]) -> frozenset[int]:
    """Return the memories that all peers export."""
    rows = np.unique(exports.reshape(-1, exports.shape[-1]), axis=0)
    return frozenset.intersection(*(frozenset(row) for row in rows.tolist()))
