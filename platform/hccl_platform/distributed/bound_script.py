"""A script bound to memory and messages, for a rank whose peers are on several hosts.

The first message of a program from one rank to another has room for the number and the text of the
call. So ranks that make different calls are found before their data is used, without a message for
that alone.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_platform.distributed.bound_part import BoundPart, RankContext
from hccl_platform.distributed.messages import Messenger
from hccl_platform.distributed.one_sided import Explain
from hccl_platform.distributed.wakeups import mismatch
from hccl_platform.lowering.call import CallIdentity
from hccl_platform.lowering.moves import Bytes
from hccl_platform.lowering.part import Task
from hccl_platform.lowering.script import PACKET, HostMessage, Script
from hccl_platform.lowering.steps import RankStep, steps_of, turns_in_order
from hccl_py.program.program import Program

_OPENING = struct.Struct("<qqH")
OPENING_BYTES = 1 << 10
"""Bytes of a packet before its data, where it opens."""


class BoundScript(BoundPart):
    """One rank's script under a tag; group k has the steps after exchange k."""

    def __init__(
        self, tag: str, program: Program, script: Script, context: RankContext, half: int = 0
    ) -> None:
        super().__init__(tag, program, script.part, context, half)
        self.script = script
        self.landing = np.zeros(script.landing_bytes, np.uint8)
        self._packets: dict[tuple[bool, int, int], Bytes] = {}
        self._callers_bytes: dict[int, Bytes] = {}

    def begin(self, into: npt.NDArray[Any], out: npt.NDArray[Any]) -> None:
        super().begin(into, out)
        self._callers_bytes = self.callers(into, out)

    def end(self, out: npt.NDArray[Any]) -> None:
        super().end(out)
        self._callers_bytes = {}

    def exchange(self, level: int, number: int, messenger: Messenger) -> None:
        """Send and receive the messages of a level, in the `number`-th call of the session.

        Raises MismatchError if a peer makes another call, and the errors of `Messenger.wait`.
        """
        sends, receives = self.script.exchanges[level]
        into = [self._buffer(m, level, k, is_sent=False) for k, m in enumerate(receives)]
        begun = [messenger.irecv(m.peer, b) for m, b in zip(receives, into, strict=True)]
        works = [(m.peer, work) for m, work in zip(receives, begun, strict=True)]
        sent = []
        for place, message in enumerate(sends):
            buffer = self._buffer(message, level, place, is_sent=True)
            if message.is_packet:
                self._pack(message, buffer, number)
            sent.append((message.peer, messenger.isend(message.peer, buffer)))
        opening = [k for k, m in enumerate(receives) if m.opens]
        messenger.wait([works[k] for k in opening])
        for k in opening:
            check_opening(into[k], receives[k].peer, self.rank, number, self.call)
        messenger.wait([work for k, work in enumerate(works) if not receives[k].opens] + sent)
        for message, buffer in zip(receives, into, strict=True):
            if message.is_packet:
                self._unpack(message, buffer)

    def explain(self, group: int) -> Explain:
        """Return a function that describes what steps after an exchange wait for."""
        explain = super().explain(group)
        return lambda blocked: f"{explain(blocked)}, after {group} exchanges between hosts,"

    def _where(self, stream: int, task: Task) -> str:
        return f"Rank {self.rank} has waited"

    def _groups(self, program: Program) -> list[tuple[RankStep, ...]]:
        turns = turns_in_order(self.part.streams)
        return [steps_of(program, self.part, turns, [n]) for n in range(len(self.part.streams))]

    def _buffer(self, message: HostMessage, level: int, place: int, *, is_sent: bool) -> Bytes:
        """Return the bytes that a message is sent from or received in: memory itself, or the buffer
        of a packet, which is kept for the next run.
        """
        if not message.is_packet:
            ((slot, start, stop),) = message.ranges
            return self._bytes(slot, self._callers_bytes)[start:stop]
        key = is_sent, level, place
        if key not in self._packets:
            size = message.size
            if message.opens:
                size = OPENING_BYTES + (size if is_sent else PACKET)
            self._packets[key] = np.zeros(size, np.uint8)
        return self._packets[key]

    def _pack(self, message: HostMessage, buffer: Bytes, number: int) -> None:
        at = 0
        if message.opens:
            write_opening(buffer, number, self.call)
            at = OPENING_BYTES
        for slot, start, stop in message.ranges:
            buffer[at : at + stop - start] = self._bytes(slot, self._callers_bytes)[start:stop]
            at += stop - start

    def _unpack(self, message: HostMessage, buffer: Bytes) -> None:
        at = OPENING_BYTES if message.opens else 0
        for slot, start, stop in message.ranges:
            self._bytes(slot, self._callers_bytes)[start:stop] = buffer[at : at + stop - start]
            at += stop - start


def write_opening(buffer: Bytes, number: int, call: CallIdentity) -> None:
    """Write the identity of the `number`-th call of a session to the beginning of a packet."""
    text = call.text[: OPENING_BYTES - _OPENING.size]
    _OPENING.pack_into(buffer.data, 0, number, call.digest, len(text))
    buffer[_OPENING.size : _OPENING.size + len(text)] = np.frombuffer(text, np.uint8)


def check_opening(buffer: Bytes, peer: int, rank: int, number: int, call: CallIdentity) -> None:
    """Compare a peer's call with that of a rank; MismatchError if they differ."""
    theirs, digest, size = _OPENING.unpack_from(buffer.data, 0)
    if (theirs, digest) != (number, call.digest):
        text = buffer[_OPENING.size : _OPENING.size + size].tobytes()
        raise mismatch({rank: (number, call), peer: (theirs, CallIdentity(text, digest))})
