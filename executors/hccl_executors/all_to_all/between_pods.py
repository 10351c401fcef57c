"""The part of the direct full mesh that goes over RDMA: all ranks of other pods, one after the
other.

    main      wake ─────────────────────────────────────────────── wait
    control    └ wake ─┐        ┌─ wait, wake ─┐       ┌─ wait ── .. ┘
    mover              └ rank 1 ┘              └ rank 2 ┘

A part goes in pieces of half of CCL_Out: the sender copies a piece to the first half and pushes it
to the second half of the receiver, which copies it to its output.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hccl_executors.all_to_all.layout import UserParts
from hccl_executors.all_to_all.pods import Pods
from hccl_py.orchestration import Link, Region, Stream
from hccl_py.plugins.executor import AnyRank


@contextmanager
def between_pods(rank: AnyRank, pods: Pods, user: UserParts, first: int) -> Iterator[None]:
    """Record all of it on sub streams `first` and `first + 1`; main waits at the end."""
    control = rank.wake(first)
    for number in range(rank.size - int(pods.size(rank.id))):
        with rank.main.phase(f"other pods {number + 1}"):
            mover = rank.wake(first + 1, by=control)
            _exchange(rank, mover, pods, user, number)
            rank.join(first + 1, to=control)
    yield
    rank.join(first)


def _exchange(rank: AnyRank, stream: Stream, pods: Pods, user: UserParts, number: int) -> None:
    """Send to one rank while one, the same or another, sends to this rank."""
    to, frm = pods.remote(rank.id, number)
    half, memory = rank.ccl_bytes // 2, rank.ccl_out
    sends, receives = (
        int(t.rounds(rank.id, p, half)) for t, p in zip(user, (to, frm), strict=True)
    )
    for piece in range(max(sends, receives)):
        start = piece * half
        sent = user.sends.piece(start, half).at(rank.id, to)
        received = user.receives.piece(start, half).at(rank.id, frm)
        tx = rank.flat[to] if piece < sends else None
        rx = rank.flat[frm] if piece < receives else None
        _swap(stream, memory[:half], memory[half : 2 * half], tx, rx, sent, received)


def _swap(
    stream: Stream,
    staged: Region,
    landed: Region,
    tx: Link | None,
    rx: Link | None,
    sent: Region,
    received: Region,
) -> None:
    """Move one piece each way; without a link there is none."""
    if tx is not None:
        stream.copy(staged.head(sent.size), sent)
    if rx is not None:
        rx.tx_ack(stream)
    if tx is not None:
        tx.rx_ack(stream)
        stream.copy(tx.remote(landed.head(sent.size)), staged.head(sent.size))
        tx.tx_data_signal(stream)
    if rx is not None:
        rx.rx_data_signal(stream)
        rx.tx_data_ack(stream)
    if tx is not None:
        tx.rx_data_ack(stream)
    if rx is not None:
        stream.copy(received, landed.head(received.size))
