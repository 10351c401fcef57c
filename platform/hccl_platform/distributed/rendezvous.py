"""The first contact of the processes of one host: they exchange descriptors of their memory.

    first rank  listens on an abstract socket and writes its address to the store
    others      connect, and send their descriptors and settings
    first rank  sends all descriptors to every other rank

An abstract socket is no file, and closes with the process: nothing is left behind.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import secrets
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import NamedTuple

from hccl_platform.distributed.failures import as_text, from_text
from hccl_platform.distributed.shared_memory import make_file
from hccl_platform.processes.stores import accepted, connected
from hccl_py.errors import (
    ExecTimeoutError,
    HcclError,
    MismatchError,
    NotSupportedError,
    PeerLostError,
)
from hccl_py.plugins.platforms import PeerMonitor, Store

_AT_ONCE = 60
"""Ranks whose descriptors go in one message: the kernel allows 253 descriptors."""

_LONGEST = 1 << 16
_LOOK_S = 0.1

_GOOD, _BAD = b"+", b"-"


class Descriptors(NamedTuple):
    """The descriptors of a rank that the others need: its memory, an eventfd that wakes it in a
    call, its process, to be watched, and an eventfd that wakes it in a wait for messages.
    """

    memory: int
    wakeup: int
    process: int
    mail: int


def make_descriptors(rank: int) -> Descriptors:
    """Return new descriptors of this process; NotSupportedError if the kernel has none."""
    try:
        wakeup, mail = (os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK) for _ in range(2))
        return Descriptors(make_file(f"rank {rank}"), wakeup, os.pidfd_open(os.getpid()), mail)
    except (AttributeError, OSError) as error:
        if _is_out_of_files(error):
            raise _too_many_open() from None
        raise NotSupportedError(
            f"Processes cannot share memory here: {error}.",
            "The distributed platform needs Linux 5.3 or later, and `ulimit -f unlimited`.",
        ) from error


def _is_out_of_files(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)


def _too_many_open() -> NotSupportedError:
    """Return the error of a process that may open no file any more."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    per_rank = len(Descriptors._fields)
    return NotSupportedError(
        f"This process may have {most} files open, too few for the memory of its peers: "
        f"a communicator takes {per_rank} for every rank of the host.",
        "Raise the limit (`ulimit -n`), or make fewer communicators.",
    )


def exchange_descriptors(
    rank: int,
    size: int,
    host_ranks: Sequence[int],
    store: Store,
    key: str,
    settings: str,
    connect_s: float,
) -> list[Descriptors]:
    """Make this rank's descriptors; return those of all ranks of the group.

    `host_ranks` are the ranks of this host, which wait `connect_s` seconds for each other. Ranks of
    other hosts share no memory with this one, and are in step with it by messages: this rank's own
    descriptors stand in for theirs.

    Raises MismatchError if ranks have different `settings`, ExecTimeoutError if one does not come,
    PeerLostError if one ends.
    """
    own = make_descriptors(rank)
    key = f"{key}/{host_ranks[0]}"
    try:
        if rank == host_ranks[0]:
            found = _collect(own, host_ranks, store, key, settings, connect_s)
        else:
            found = _join(rank, own, host_ranks, store, key, settings, connect_s)
    except BaseException as error:
        close_descriptors(own)
        raise _in_words(error, key, connect_s) from None
    of_host = dict(zip(host_ranks, found, strict=True))
    return [of_host.get(other, own) for other in range(size)]


def _in_words(error: BaseException, key: str, connect_s: float) -> BaseException:
    """Return the error of an exchange as a user reads it."""
    if _is_out_of_files(error):
        return _too_many_open()
    if isinstance(error, TimeoutError):
        return ExecTimeoutError(
            f"The ranks of {key} did not all come within {connect_s:g} s.",
            "A process of the job has not come this far: its own output says why.",
        )
    if isinstance(error, ConnectionError | EOFError):
        return PeerLostError(
            f"A process of {key} has ended before all had come.", "Its own output says why."
        )
    return error


def close_descriptors(descriptors: Descriptors) -> None:
    """Close the descriptors of a rank."""
    for descriptor in descriptors:
        os.close(descriptor)


def _collect(
    own: Descriptors,
    host_ranks: Sequence[int],
    store: Store,
    key: str,
    settings: str,
    connect_s: float,
) -> list[Descriptors]:
    """Collect the descriptors of all ranks, and send all of them to the others."""
    first, end = host_ranks[0], time.monotonic() + connect_s
    found, brought = {first: own}, {first: settings}
    with _listening(store, key, len(host_ranks)) as listening, ExitStack() as opened:
        guests: list[socket.socket] = []
        received = opened.enter_context(ExitStack())  # closed where the exchange fails
        try:
            while len(found) < len(host_ranks):
                guest = _accept(listening, store, end)
                if guest is not None:
                    opened.callback(guest.close)
                    guest.settimeout(connect_s)
                    guests.append(guest)
                    text, descriptors = _receive(guest, 1)
                    received.callback(close_descriptors, descriptors[0])
                    rank, brought_by = json.loads(text)
                    found[rank], brought[rank] = descriptors[0], brought_by
            other = next((rank for rank in sorted(brought) if brought[rank] != settings), None)
            if other is not None:
                raise MismatchError(
                    f"The ranks of {key} were opened differently: "
                    f"rank {first} with {settings}, rank {other} with {brought[other]}.",
                    "Give every process the same topology and settings, HCCL_BUFFSIZE among them.",
                )
            everything = [found[rank] for rank in host_ranks]
            for guest in guests:
                _send_all(guest, everything)
        except (HcclError, OSError) as error:
            reason = as_text(_in_words(error, key, connect_s), first)
            for guest in guests:
                with suppress(OSError):
                    guest.send(_BAD + reason)
            raise
        received.pop_all()
    return everything


@contextmanager
def _listening(store: Store, key: str, most: int) -> Iterator[socket.socket]:
    """Listen on a new abstract socket, whose address is in the store."""
    address = f"hccl_py-{os.getpid()}-{secrets.token_hex(16)}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(f"\0{address}")
        listening.listen(most)
        listening.settimeout(_LOOK_S)
        store.set(key, address.encode())
        yield listening


def _accept(listening: socket.socket, store: Store, end: float) -> socket.socket | None:
    """Accept a connection; None from a process of another user. TimeoutError after `end`; meanwhile
    the store may know that a process has ended.
    """
    while True:
        try:
            return accepted(listening)
        except TimeoutError:
            if time.monotonic() > end:
                raise
            if isinstance(store, PeerMonitor):
                store.look()


def _join(
    rank: int,
    own: Descriptors,
    host_ranks: Sequence[int],
    store: Store,
    key: str,
    settings: str,
    connect_s: float,
) -> list[Descriptors]:
    """Send this rank's descriptors to the first rank; return those of all ranks."""
    address = store.get(key, connect_s).decode()
    found: list[Descriptors] = []
    with connected(address, connect_s) as first, ExitStack() as received:
        socket.send_fds(first, [json.dumps([rank, settings]).encode()], list(own))
        while len(found) < len(host_ranks):
            text, descriptors = _receive(first, _AT_ONCE)
            if text.startswith(_BAD):
                raise from_text(text[1:])
            for each in descriptors:
                received.callback(close_descriptors, each)
            found += descriptors
            first.send(_GOOD)
        received.pop_all()
    place = host_ranks.index(rank)
    close_descriptors(found[place])  # copies of this rank's own, which came back
    found[place] = own
    return found


def _receive(end: socket.socket, most: int) -> tuple[bytes, list[Descriptors]]:
    """Return a message and the descriptors in it, which child programs do not inherit."""
    fields = len(Descriptors._fields)
    text, found, flags, _ = socket.recv_fds(end, _LONGEST, most * fields)
    if flags & socket.MSG_CTRUNC:  # the kernel drops those for which this process has no number
        for descriptor in found:
            os.close(descriptor)
        raise _too_many_open()
    if not text:
        raise EOFError
    for descriptor in found:
        os.set_inheritable(descriptor, False)
    ranks = zip(*[iter(found)] * fields, strict=True)
    return text, [Descriptors(*of_rank) for of_rank in ranks]


def _send_all(guest: socket.socket, everything: Sequence[Descriptors]) -> None:
    """Send all descriptors, few enough at once for the kernel's limit."""
    for start in range(0, len(everything), _AT_ONCE):
        some = everything[start : start + _AT_ONCE]
        socket.send_fds(guest, [_GOOD], [d for of_rank in some for d in of_rank])
        if not guest.recv(1):
            raise EOFError
