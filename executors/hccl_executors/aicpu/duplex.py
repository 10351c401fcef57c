"""Exchanges of two ranks on one thread, as HCCL's wrapper of data transfers has them.

`tx` is the channel to the rank that gets my data, `rx` the one to the rank whose data I get; in a
mesh they are one channel. ACK says that memory is ready, DATA that the data is there; a third
notify of every channel is asked for and never used. Where HCCL writes with a notify, the last write
carries DATA: here it is posted behind it.
"""

from __future__ import annotations

from collections.abc import Iterable

from hccl_py.orchestration import Region
from hccl_py.orchestration.channels import Channel, Thread
from hccl_py.values import RankInt

ACK, DATA = 0, 1
NOTIFIES = 3
"""Notifies of a channel: ACK, DATA, and FIN_ACK."""

Moves = Iterable[tuple[Region, Region]]
"""Pairs of (destination, source) in this rank's terms: at a peer the same place is meant."""


def send_recv_write(
    thread: Thread, tx: Channel, rx: Channel, moves: Moves, *, reduces: bool = False
) -> None:
    """Write my data to one rank while another one writes to me."""
    rx.post(thread, ACK)
    tx.wait(thread, ACK)
    _write(thread, tx, moves, reduces=reduces)
    tx.post(thread, DATA)
    rx.wait(thread, DATA)


def send_write(thread: Thread, tx: Channel, moves: Moves) -> None:
    """Write my data to a rank."""
    tx.wait(thread, ACK)
    _write(thread, tx, moves)
    tx.post(thread, DATA)


def recv_write(thread: Thread, rx: Channel) -> None:
    """Let a rank write to me."""
    rx.post(thread, ACK)
    rx.wait(thread, DATA)


def exchange_write(
    thread: Thread, channel: Channel, moves: Moves, *, sends: RankInt, receives: RankInt
) -> None:
    """Write to a rank, while it writes to me, as far as there are bytes to send or to receive."""
    if sends > 0 and receives > 0:
        send_recv_write(thread, channel, channel, moves)
    elif sends > 0:
        send_write(thread, channel, moves)
    elif receives > 0:
        recv_write(thread, channel)


def send_recv_read(thread: Thread, tx: Channel, rx: Channel, moves: Moves) -> None:
    """Read the data of one rank while another one reads mine."""
    tx.post(thread, ACK)
    rx.wait(thread, ACK)
    _read(thread, rx, moves)
    rx.post(thread, DATA)
    tx.wait(thread, DATA)


def send_read(thread: Thread, tx: Channel) -> None:
    """Let a rank read my data."""
    tx.post(thread, ACK)
    tx.wait(thread, DATA)


def recv_read(thread: Thread, rx: Channel, moves: Moves) -> None:
    """Read the data of a rank."""
    rx.wait(thread, ACK)
    _read(thread, rx, moves)
    rx.post(thread, DATA)


def _write(thread: Thread, tx: Channel, moves: Moves, *, reduces: bool = False) -> None:
    write = tx.write_reduce if reduces else tx.write
    for target, source in moves:
        write(thread, tx.remote(target), source)


def _read(thread: Thread, rx: Channel, moves: Moves) -> None:
    for target, source in moves:
        rx.read(thread, target, rx.remote(source))
