"""How the processes of one host hand each other their memory, before anything else is shared.

    rank 0      listens on an abstract socket and says in the store which
    rank r      connects, and hands over its descriptors and what it was opened with
    rank 0      hands everybody's descriptors to everybody

An abstract socket is no file, and closes with the process: nothing is left, whatever happens.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from hccl_platform.distributed.memory import make_file
from hccl_py.errors import ExecTimeoutError, MismatchError, NotSupportedError, PeerLostError
from hccl_py.platforms import Store

__all__ = ["Descriptors", "exchange", "make_descriptors"]

_AT_ONCE = 80
"""Ranks whose descriptors go in one message: the kernel takes 253 descriptors."""

_LONGEST = 1 << 16
_UID = struct.Struct("3i")
"""What SO_PEERCRED tells: process, user, group."""

_GOOD, _BAD = b"+", b"-"


class Descriptors(NamedTuple):
    """What a rank hands to the others: its memory, its bell, and its process to be watched."""

    memory: int
    bell: int
    process: int


def make_descriptors(rank: int) -> Descriptors:
    """Return new descriptors of this process; NotSupportedError where there can be none."""
    try:
        return Descriptors(make_file(f"rank {rank}"), make_bell(), os.pidfd_open(os.getpid()))
    except (AttributeError, OSError) as error:
        raise NotSupportedError(
            f"Processes cannot share memory here: {error}.",
            "The distributed platform needs Linux 5.3 or later, and `ulimit -f unlimited`.",
        ) from error


def make_bell() -> int:
    """Return the descriptor of a new bell: who writes to it wakes who polls it."""
    return os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)


def exchange(
    rank: int,
    size: int,
    store: Store,
    key: str,
    own: Descriptors,
    settings: str,
    connect_s: float,
) -> list[Descriptors]:
    """Return the descriptors of all ranks, which wait `connect_s` for each other; this rank's are
    `own`.

    Raises MismatchError where ranks bring different `settings`, ExecTimeoutError where one does not
    come, PeerLostError where one goes.
    """
    try:
        if rank:
            return _Guest(rank, size, store, key, connect_s).exchange(own, settings)
        return _Host(size, store, key, connect_s).exchange(own, settings)
    except TimeoutError:
        raise ExecTimeoutError(
            f"The ranks of {key} did not all come within {connect_s:g} s.",
            "A process of the job has not come this far: its own output says why.",
        ) from None
    except (ConnectionError, EOFError):
        raise PeerLostError(
            f"A process of {key} has ended before all had come.",
            "Its own output says why.",
        ) from None


class _Host:
    """Rank 0: everybody comes here."""

    def __init__(self, size: int, store: Store, key: str, connect_s: float) -> None:
        self._size, self._connect_s = size, connect_s
        self._address = f"\0hccl_py-{os.getpid()}-{secrets.token_hex(16)}"
        self._store, self._key = store, key

    def exchange(self, own: Descriptors, settings: str) -> list[Descriptors]:
        guests: dict[int, socket.socket] = {}
        found, brought = {0: own}, {0: settings}
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(self._address)
            listening.listen(self._size)
            listening.settimeout(self._connect_s)
            self._store.set(self._key, self._address[1:].encode())
            try:
                while len(found) < self._size:
                    guest = self._accept(listening)
                    if guest is not None:
                        text, descriptors = _receive(guest, 1)
                        rank, brought_by = json.loads(text)
                        guests[rank], found[rank] = guest, descriptors[0]
                        brought[rank] = brought_by
                self._check(brought, guests)
                everything = [found[rank] for rank in range(self._size)]
                for guest in guests.values():
                    _hand_out(guest, everything)
            finally:
                for guest in guests.values():
                    guest.close()
        return everything

    def _accept(self, listening: socket.socket) -> socket.socket | None:
        """Take one in; nobody of another user."""
        guest, _ = listening.accept()
        guest.settimeout(self._connect_s)
        credentials = guest.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UID.size)
        if _UID.unpack(credentials)[1] != os.getuid():
            guest.close()
            return None
        return guest

    def _check(self, brought: dict[int, str], guests: dict[int, socket.socket]) -> None:
        """Refuse ranks that do not agree, and let all of them know."""
        other = next((rank for rank in sorted(brought) if brought[rank] != brought[0]), None)
        if other is None:
            return
        message = (
            f"The ranks of {self._key} were opened differently: "
            f"rank 0 with {brought[0]}, rank {other} with {brought[other]}."
        )
        for guest in guests.values():
            with suppress(OSError):
                guest.send(_BAD + message.encode())
        raise _differ(message)


class _Guest:
    """Any other rank."""

    def __init__(self, rank: int, size: int, store: Store, key: str, connect_s: float) -> None:
        self._rank, self._size, self._store, self._key = rank, size, store, key
        self._connect_s = connect_s

    def exchange(self, own: Descriptors, settings: str) -> list[Descriptors]:
        address = self._store.get(self._key, self._connect_s).decode()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as host:
            host.settimeout(self._connect_s)
            host.connect(f"\0{address}")
            socket.send_fds(host, [json.dumps([self._rank, settings]).encode()], list(own))
            found: list[Descriptors] = []
            while len(found) < self._size:
                text, descriptors = _receive(host, _AT_ONCE)
                if text.startswith(_BAD):
                    raise _differ(text[1:].decode())
                found += descriptors
                host.send(_GOOD)
        for descriptor in found[self._rank]:  # our own, which came back
            os.close(descriptor)
        found[self._rank] = own
        return found


def _differ(message: str) -> MismatchError:
    return MismatchError(
        message, "Give every process the same topology and settings, HCCL_BUFFSIZE among them."
    )


def _receive(end: socket.socket, most: int) -> tuple[bytes, list[Descriptors]]:
    """Return a message and the descriptors that came with it, which no program started inherits."""
    fields = len(Descriptors._fields)
    text, found, _, _ = socket.recv_fds(end, _LONGEST, most * fields)
    if not text:
        raise EOFError
    for descriptor in found:
        os.set_inheritable(descriptor, False)
    triples = zip(*[iter(found)] * fields, strict=True)
    return text, [Descriptors(*triple) for triple in triples]


def _hand_out(guest: socket.socket, everything: Sequence[Descriptors]) -> None:
    """Hand over all descriptors; what is under way at once stays below the kernel's limit."""
    for start in range(0, len(everything), _AT_ONCE):
        some = everything[start : start + _AT_ONCE]
        socket.send_fds(guest, [_GOOD], [d for triple in some for d in triple])
        if not guest.recv(1):
            raise EOFError
