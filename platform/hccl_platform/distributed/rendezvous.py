"""How the processes of one host hand each other their memory, before anything else is shared.

    first rank  listens on an abstract socket and says in the store which
    others      connect, and hand over their descriptors and what they were opened with
    first rank  hands everybody's descriptors to everybody

An abstract socket is no file, and closes with the process: nothing is left, whatever happens.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import struct
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from hccl_platform.distributed.failures import as_text, from_text
from hccl_platform.distributed.memory import make_file
from hccl_py.errors import (
    ExecTimeoutError,
    HcclError,
    MismatchError,
    NotSupportedError,
    PeerLostError,
)
from hccl_py.plugins.platforms import Store, Watchful

_AT_ONCE = 80
"""Ranks whose descriptors go in one message: the kernel takes 253 descriptors."""

_LONGEST = 1 << 16
_LOOK_S = 0.1
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
    mates: Sequence[int],
    store: Store,
    key: str,
    own: Descriptors,
    settings: str,
    connect_s: float,
) -> list[Descriptors]:
    """Return the descriptors of a host's ranks, `mates`, which wait `connect_s` for each other;
    this rank's are `own`.

    Raises MismatchError where ranks bring different `settings`, ExecTimeoutError where one does not
    come, PeerLostError where one goes.
    """
    try:
        if rank != mates[0]:
            return _Guest(rank, mates, store, key, connect_s).exchange(own, settings)
        return _Host(mates, store, key, connect_s).exchange(own, settings)
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
    """The first rank: everybody comes here."""

    def __init__(self, mates: Sequence[int], store: Store, key: str, connect_s: float) -> None:
        self._mates, self._connect_s = mates, connect_s
        self._address = f"\0hccl_py-{os.getpid()}-{secrets.token_hex(16)}"
        self._store, self._key = store, key
        self._guests: dict[int, socket.socket] = {}

    def exchange(self, own: Descriptors, settings: str) -> list[Descriptors]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(self._address)
            listening.listen(len(self._mates))
            listening.settimeout(_LOOK_S)
            self._store.set(self._key, self._address[1:].encode())
            try:
                found = self._received(listening, own, settings)
                everything = [found[rank] for rank in self._mates]
                for guest in self._guests.values():
                    _hand_out(guest, everything)
            except HcclError as error:
                self._refuse(error)
                raise
            finally:
                for guest in self._guests.values():
                    guest.close()
        return everything

    def _received(
        self, listening: socket.socket, own: Descriptors, settings: str
    ) -> dict[int, Descriptors]:
        """Return the descriptors of all ranks, which bring the same settings."""
        first, end = self._mates[0], time.monotonic() + self._connect_s
        found, brought = {first: own}, {first: settings}
        while len(found) < len(self._mates):
            guest = self._accepted(listening, end)
            if guest is not None:
                text, descriptors = _receive(guest, 1)
                rank, brought_by = json.loads(text)
                self._guests[rank], found[rank] = guest, descriptors[0]
                brought[rank] = brought_by
        other = next((rank for rank in sorted(brought) if brought[rank] != settings), None)
        if other is not None:
            raise MismatchError(
                f"The ranks of {self._key} were opened differently: "
                f"rank {first} with {settings}, rank {other} with {brought[other]}.",
                "Give every process the same topology and settings, HCCL_BUFFSIZE among them.",
            )
        return found

    def _accepted(self, listening: socket.socket, end: float) -> socket.socket | None:
        """Take one in; nobody of another user. Meanwhile the store may know that one has gone."""
        while True:
            try:
                guest, _ = listening.accept()
                break
            except TimeoutError:
                if time.monotonic() > end:
                    raise
                if isinstance(self._store, Watchful):
                    self._store.look()
        guest.settimeout(self._connect_s)
        credentials = guest.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UID.size)
        if _UID.unpack(credentials)[1] != os.getuid():
            guest.close()
            return None
        return guest

    def _refuse(self, error: HcclError) -> None:
        """Let who has come know why nothing comes of it."""
        for guest in self._guests.values():
            with suppress(OSError):
                guest.send(_BAD + as_text(error, self._mates[0]))


class _Guest:
    """Any other rank."""

    def __init__(
        self, rank: int, mates: Sequence[int], store: Store, key: str, connect_s: float
    ) -> None:
        self._rank, self._mates, self._store, self._key = rank, mates, store, key
        self._connect_s = connect_s

    def exchange(self, own: Descriptors, settings: str) -> list[Descriptors]:
        address = self._store.get(self._key, self._connect_s).decode()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as host:
            host.settimeout(self._connect_s)
            host.connect(f"\0{address}")
            socket.send_fds(host, [json.dumps([self._rank, settings]).encode()], list(own))
            found: list[Descriptors] = []
            while len(found) < len(self._mates):
                text, descriptors = _receive(host, _AT_ONCE)
                if text.startswith(_BAD):
                    raise from_text(text[1:])
                found += descriptors
                host.send(_GOOD)
        place = self._mates.index(self._rank)
        for descriptor in found[place]:  # our own, which came back
            os.close(descriptor)
        found[place] = own
        return found


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
