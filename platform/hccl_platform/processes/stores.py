"""Stores: values that the processes of one job share before they can communicate.

The launcher of the processes provides a store: that of this package serves one on a Unix socket
(`StoreServer`, `SocketStore`), torchrun one of torch (`hccl_py.torch.store`). MPI has none; there
every value is sent to all other processes (`MpiStore`).
"""

from __future__ import annotations

import os
import secrets
import socket
import struct
import threading
import time
from contextlib import suppress
from typing import Any

from hccl_py.errors import ExecTimeoutError, NotSupportedError, PeerLostError

LARGEST = 1 << 16
"""Bytes of a request to the launcher's store: one packet holds it."""

_SET, _GET = b"S", b"G"
_UID = struct.Struct("3i")
"""The format of SO_PEERCRED: process, user, group."""

_POLL_S = 0.0005


def _late(key: str, timeout_s: float) -> ExecTimeoutError:
    return ExecTimeoutError(
        f"No process set {key!r} in the job's store within {timeout_s:g} s.",
        "A process of the job has not come this far: its own output says why.",
    )


def accepted(listening: socket.socket) -> socket.socket | None:
    """Accept a connection to a Unix socket; None if it is from a process of another user."""
    client, _ = listening.accept()
    if _user_of(client) == os.getuid():
        return client
    client.close()
    return None


def connected(address: str, timeout_s: float | None = None) -> socket.socket:
    """Return a connection to an abstract socket of this user's. NotSupportedError if another user
    listens there: an address comes from a store that other users may be able to write.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.settimeout(timeout_s)
        connection.connect(f"\0{address}")
        user = _user_of(connection)
        if user != os.getuid():
            raise NotSupportedError(
                f"User {user} listens on the socket at which the job's processes meet, and this "
                f"process is of user {os.getuid()}.",
                "Another user of this machine has written into the job's store: start the job on "
                "another port, or on a network that only its own hosts reach.",
            )
    except BaseException:
        connection.close()
        raise
    return connection


def _user_of(connection: socket.socket) -> int:
    """Return the user of the process at the other end: the one that connected, or that listens."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UID.size)
    return int(_UID.unpack(credentials)[1])


class StoreServer:
    """Serves a store to the processes of one user on this machine.

    The launcher waits on `fileno()` and the descriptors of `clients` and calls `accept` and
    `serve`; neither blocks. `address` is an abstract socket: it leaves nothing behind.
    """

    def __init__(self) -> None:
        self.address = f"hccl_py-{os.getpid()}-{secrets.token_hex(8)}"
        self.clients: dict[int, socket.socket] = {}
        self._values: dict[bytes, bytes] = {}
        self._waiting: dict[bytes, list[int]] = {}
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.bind(f"\0{self.address}")
        self._socket.listen(socket.SOMAXCONN)

    def fileno(self) -> int:
        """Return the descriptor on which clients arrive."""
        return self._socket.fileno()

    def accept(self) -> int | None:
        """Accept a client and return its descriptor; None for a process of another user."""
        client = accepted(self._socket)
        if client is None:
            return None
        self.clients[client.fileno()] = client
        return client.fileno()

    def serve(self, client: int) -> bool:
        """Answer one request; False if the client has ended."""
        packet = self._received(client)
        if not packet:
            self.clients.pop(client).close()
            return False
        kind, (size,) = packet[:1], struct.unpack("!H", packet[1:3])
        key, value = packet[3 : 3 + size], packet[3 + size :]
        if kind == _SET:
            self._values[key] = value
            for waiting in self._waiting.pop(key, []):
                self._answer(waiting, key)
        elif key in self._values:
            self._answer(client, key)
        else:
            self._waiting.setdefault(key, []).append(client)
        return True

    def close(self) -> None:
        """Close all connections."""
        for client in (*self.clients.values(), self._socket):
            client.close()
        self.clients.clear()

    def _received(self, client: int) -> bytes:
        try:
            return self.clients[client].recv(LARGEST + 1)
        except ConnectionError:
            return b""

    def _answer(self, client: int, key: bytes) -> None:
        if client in self.clients:
            with suppress(OSError):  # its end is seen when it is served next
                self.clients[client].send(self._values[key])


class SocketStore:
    """A client of a `StoreServer`; every process opens its own."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()

    def set(self, key: str, value: bytes) -> None:
        with self._lock:
            self._send(_SET, key, value)

    def get(self, key: str, timeout_s: float) -> bytes:
        with self._lock:
            connection = self._send(_GET, key)
            connection.settimeout(max(timeout_s, _POLL_S))
            try:
                answer = connection.recv(LARGEST)
            except TimeoutError:
                self._forget()  # a late answer must not be taken for that to the next request
                raise _late(key, timeout_s) from None
            except ConnectionError:
                answer = b""
            if not answer:
                raise self._gone()
            return answer[1:]

    def _send(self, kind: bytes, key: str, value: bytes = b"") -> socket.socket:
        name = key.encode()
        packet = b"".join((kind, struct.pack("!H", len(name)), name, b"=", value))
        if len(packet) > LARGEST:
            raise ValueError(f"{key!r} and its value have {len(packet)} bytes, of {LARGEST}")
        try:
            if self._socket is None:
                self._socket = connected(self._address)
            self._socket.settimeout(None)
            self._socket.send(packet)
        except OSError:
            raise self._gone() from None
        return self._socket

    def _forget(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _gone(self) -> PeerLostError:
        self._forget()
        return PeerLostError(
            "The process that started this job has ended, and the job's store with it.",
            "Start the job anew.",
        )


class MpiStore:
    """A store without a server: every value is sent to all processes, over a communicator of its
    own.
    """

    def __init__(self, communicator: Any) -> None:
        self._communicator = communicator.Dup()
        self._values: dict[str, bytes] = {}
        self._sent: list[Any] = []
        self._lock = threading.Lock()

    def set(self, key: str, value: bytes) -> None:
        with self._lock:
            self._values[key] = value
            self._sent = [request for request in self._sent if not request.test()[0]]
            for rank in range(self._communicator.size):
                if rank != self._communicator.rank:
                    self._sent.append(self._communicator.isend((key, value), rank))

    def get(self, key: str, timeout_s: float) -> bytes:
        end = time.monotonic() + timeout_s
        while True:
            with self._lock:
                self._receive()
                if key in self._values:
                    return self._values[key]
            if time.monotonic() > end:
                raise _late(key, timeout_s)
            time.sleep(_POLL_S)

    def _receive(self) -> None:
        """Receive the values that have arrived."""
        while self._communicator.iprobe():
            key, value = self._communicator.recv()
            self._values[key] = value
