"""The ranks of a batch as an executor on threads and channels sees them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TypeVar

import numpy as np

from hccl_py.call.op_param import OpParam
from hccl_py.enums import ChannelBuffer
from hccl_py.orchestration.channels.channel import Channel
from hccl_py.orchestration.channels.fabric import ChannelFabric
from hccl_py.orchestration.channels.thread import Thread
from hccl_py.orchestration.plane import Membership, PlaneView
from hccl_py.orchestration.rank import CallRank, OnPlanes, Requested
from hccl_py.orchestration.recorder import Recorder, orchestration_error
from hccl_py.orchestration.region import Chunks, Region
from hccl_py.orchestration.stream import Notify
from hccl_py.values import IntArray, RankInt, values_of

In = TypeVar("In", bound=Region | Chunks)
Out = TypeVar("Out", bound=Region | Chunks)


class ChannelRank(OnPlanes[PlaneView], CallRank[In, Out]):
    """The ranks of a batch whose executor requested `ChannelResources`: threads, channels, and one
    HCCL buffer.

    `buffer` is the whole HCCL buffer; every peer reaches it over its channel. `threads` are those
    of the request, `main` the first and `workers` the others; `channels` those of the request in
    its order. Planes give the rank's place (`rank.level0.id`), and have no links.
    """

    def __init__(
        self,
        ids: IntArray,
        op: OpParam,
        fabric: ChannelFabric,
        recorder: Recorder,
        ccl_bytes: int,
    ) -> None:
        OnPlanes.__init__(self, fabric.topology)
        CallRank.__init__(self, ids, op, fabric.topology, ccl_bytes)
        self.buffer = Region(ChannelBuffer.CCL, 0, ccl_bytes)
        self._ids, self._fabric, self._recorder = ids, fabric, recorder
        self._request = fabric.request_of(int(ids[0]))
        self._made: dict[object, Channel] = {}

    @cached_property
    def threads(self) -> Requested[Thread]:
        """The requested threads; OrchestrationError for an index beyond them."""
        return Requested(self._threads(), "thread", "UNDECLARED_STREAM")

    @property
    def main(self) -> Thread:
        """The thread that begins and ends the op."""
        return self.threads[0]

    @property
    def workers(self) -> tuple[Thread, ...]:
        """The threads beside main."""
        return self.threads[1:]

    @cached_property
    def channels(self) -> Requested[Channel]:
        """The channels in the order of the request; OrchestrationError for an index beyond them."""
        count = len(self._request.channels)
        found = (self._channel(self._fabric.ends(self._ids, number)) for number in range(count))
        return Requested(found, "channel", "UNDECLARED_CHANNEL")

    def channel(self, peer: RankInt, *, layer: int | None = None, number: int = 0) -> Channel:
        """Return the channel to a peer; where there are several, the `number`-th in the order of
        the request, of all or of those on `layer`.

        Raises OrchestrationError (UNDECLARED_CHANNEL) where it was not requested.
        """
        if layer not in (None, 0, 1):
            raise orchestration_error(f"There is no layer {layer}", "Layers are 0 and 1.")
        peers: IntArray = np.asarray(values_of(peer), np.int64)
        key = peers.tobytes(), layer, number
        if key not in self._made:
            whole = np.broadcast_to(peers, self._ids.shape)
            self._made[key] = self._channel(self._fabric.ends_to(self._ids, whole, layer, number))
        return self._made[key]

    def _channel(self, ends: IntArray) -> Channel:
        key = ends.tobytes()
        if key not in self._made:
            self._made[key] = Channel(self._recorder, self._fabric.transports, ends)
        return self._made[key]

    def _threads(self) -> Iterator[Thread]:
        slots = self._fabric.local_notifies.slots
        cells = self.id * len(slots) + self._fabric.transports.cells
        for index, count in enumerate(self._request.threads):
            first = slots.index((index, 0)) if count else 0
            notifies = (Notify(cells + first + k, index) for k in range(count))
            what = f"notify of thread {index} with number"
            yield Thread(
                self._recorder, index, Requested(notifies, what, "NOTIFY_INDEX_OUT_OF_RANGE")
            )

    def _make(self, name: str) -> PlaneView:
        return PlaneView(self.topology, name, Membership.of(self.topology, name, self.id))
