"""Sends and receives by executors of send_recv: a queue and a communicator of two ranks for each
sender, receiver and tag.

Both sides open it with their first message. A sender counts its messages in the group's store,
where a receive from any source looks for one that no other receive takes.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from functools import partial
from typing import NamedTuple

import torch

from hccl_py.errors import ExecTimeoutError, PeerLostError
from hccl_py.torch.joining import Member
from hccl_py.torch.queues import Call, TorchQueue
from hccl_py.torch.repeats import TensorCommunicator
from hccl_py.torch.tensor_arrays import flat, put
from hccl_py.torch.work import TorchWork

_FIRST, _SECOND = 0, 1
"""The sender's rank in a communicator of two, and the receiver's."""

_POLL_S = 2e-4


class _Way(NamedTuple):
    """Messages with one tag from one rank to another, on one device of this process."""

    source: int
    destination: int
    tag: int
    device: torch.device


def on_current_stream(device: torch.device, call: Call) -> Call:
    """Return a call that works on what is now the current stream, in whichever thread it is made:
    streams are those of a thread.
    """
    if device.type == "cpu":
        return call
    module = torch.get_device_module(device)
    stream = module.current_stream(device)

    def work(comm: TensorCommunicator) -> None:
        with module.stream(stream):
            call(comm)

    return work


class Pairs:
    """The messages of a group, as calls of two ranks."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._queues: dict[_Way, TorchQueue] = {}
        self._lock = threading.Lock()
        self._taken: Counter[tuple[int, int]] = Counter()

    def send(self, tensor: torch.Tensor, destination: int, tag: int) -> TorchWork:
        """Send a tensor as it is now."""
        me = self._member.rank
        data = flat(tensor).copy()

        def call(comm: TensorCommunicator) -> None:
            self._member.announce(destination, tag)
            comm.send_recv([data], [(_FIRST, _SECOND)])

        return self._submit(_Way(me, destination, tag, tensor.device), call, [tensor])

    def recv(self, tensor: torch.Tensor, source: int, tag: int) -> TorchWork:
        """Receive the next message of a rank."""
        with self._lock:
            self._taken[source, tag] += 1
        work = self._receive(tensor, source, tag)
        work.source = source
        return work

    def recv_any(self, tensor: torch.Tensor, tag: int) -> TorchWork:
        """Receive the next message of the rank that sends first."""
        work = TorchWork([tensor])

        def find() -> None:
            source = self._next_source(tag)
            self._receive(tensor, source, tag).wait()
            work.source = source

        threading.Thread(target=work.run, args=(find,), daemon=True).start()
        return work

    @property
    def has_failed(self) -> bool:
        """True if a message has failed so that the group cannot be used any more."""
        return any(queue.has_failed for queue in self._queues.values())

    def close(self) -> None:
        """Let all messages end."""
        for queue in self._queues.values():
            queue.close()

    def abort(self) -> None:
        """Give up all messages."""
        for queue in self._queues.values():
            queue.abort()

    def _receive(self, tensor: torch.Tensor, source: int, tag: int) -> TorchWork:
        def call(comm: TensorCommunicator) -> None:
            data = flat(tensor)
            comm.send_recv([None], [(_FIRST, _SECOND)], out=[data])
            put(tensor, data)

        way = _Way(source, self._member.rank, tag, tensor.device)
        return self._submit(way, call, [tensor])

    def _submit(self, way: _Way, call: Call, result: list[torch.Tensor]) -> TorchWork:
        call = on_current_stream(way.device, call)
        return self._queue(way).submit(call, TorchWork(result), in_background=True)

    def _queue(self, way: _Way) -> TorchQueue:
        with self._lock:
            if way not in self._queues:
                numbers = f"{way.source}_{way.destination}_{way.tag}"
                name = f"{self._member.name}_p2p_{numbers}"
                open_pair = partial(
                    self._member.pair, way.source, way.destination, name, way.device
                )
                self._queues[way] = TorchQueue(name, open_pair)
            return self._queues[way]

    def _next_source(self, tag: int) -> int:
        """Wait for a message that no receive takes yet; return its sender."""
        end = time.monotonic() + self._member.seconds
        while time.monotonic() < end and not self._member.is_over.is_set():
            for source in self._member.others:
                sent = self._member.announced(source, tag)
                with self._lock:
                    if sent > self._taken[source, tag]:
                        self._taken[source, tag] += 1
                        return source
            ended = self._member.presence.ended(self._member.others)
            if ended and ended == self._member.others:
                gone = ", ".join(map(str, ended))
                raise PeerLostError(
                    f"Rank {gone}: the process has ended, and no rank is left to send a message.",
                    "Its own output says why. Start the job anew.",
                )
            time.sleep(_POLL_S)
        raise ExecTimeoutError(
            f"Rank {self._member.rank} waited {self._member.seconds:g} s for any rank's message.",
            "Some rank must send to it, with the same tag.",
        )
