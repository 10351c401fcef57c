"""Sockets of a job refuse processes of other users, at both ends."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hccl_platform.distributed.session import SharedSession
from hccl_platform.processes.stores import SocketStore, connected
from hccl_py.errors import NotSupportedError
from tests.platform.processes.children import FileStore

OTHER_USER = 65534
ADDRESS = "hccl_py test of other users"

as_root = pytest.mark.skipif(bool(os.geteuid()), reason="only root can be another user, too")


@contextmanager
def another_users_socket(received: int) -> Iterator[str]:
    """Listen as another user; write what the first guest sends to `received`."""
    address = f"{ADDRESS} {os.getpid()}"
    ready, is_ready = os.pipe()
    process = os.fork()
    if not process:
        os.setresuid(OTHER_USER, OTHER_USER, OTHER_USER)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(f"\0{address}")
            listening.listen()
            os.write(is_ready, b"!")
            guest, _ = listening.accept()
            os.write(received, b"guest " + guest.recv(1 << 10))
        os._exit(0)
    try:
        os.read(ready, 1)
        yield address
        os.waitpid(process, 0)
    except BaseException:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        raise
    finally:
        os.close(ready)
        os.close(is_ready)


@as_root
def test_a_socket_of_another_user_is_refused_and_sent_nothing(tmp_path: Path) -> None:
    came, received = os.pipe()
    with another_users_socket(received) as address:
        store = FileStore(tmp_path)
        store.set("key/0", address.encode())  # another user may write torchrun's store
        with pytest.raises(NotSupportedError) as refused:
            SharedSession(1, 2, store, "key", 1 << 20, connect_s=30)
    assert f"User {OTHER_USER} listens" in refused.value.message
    assert "on another port" in refused.value.hint
    assert os.read(came, 100) == b"guest "


@as_root
def test_the_launchers_store_is_of_the_same_user() -> None:
    came, received = os.pipe()
    with another_users_socket(received) as address:
        store = SocketStore(address)
        with pytest.raises(NotSupportedError, match=f"User {OTHER_USER} listens"):
            store.set("key", b"a secret")
    assert os.read(came, 100) == b"guest "
    with pytest.raises(ConnectionRefusedError):
        connected(address)


def test_a_socket_of_ones_own_is_connected() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(f"\0{ADDRESS} own {os.getpid()}")
        listening.listen()
        with connected(f"{ADDRESS} own {os.getpid()}") as connection:
            with listening.accept()[0] as guest:
                guest.send(b"welcome")
            assert connection.recv(10) == b"welcome"
