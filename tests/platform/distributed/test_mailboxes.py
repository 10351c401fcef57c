"""Messages between ranks that are all in this process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from random import Random

import numpy as np
import pytest

from hccl_platform.distributed.header import CLOSED, FAILED_BY, Header
from hccl_platform.distributed.mailboxes import RingMailboxes, RingMessage
from hccl_platform.distributed.rendezvous import Descriptors
from hccl_platform.distributed.rings import RING_BYTES, ByteRing
from hccl_platform.distributed.shared_memory import HEADER_BYTES
from hccl_py.enums import DataType
from hccl_py.errors import ExecTimeoutError, HcclError, MismatchError, ParameterError, PeerLostError

RANKS = 3
LONG = 3 * RING_BYTES + 5
SOON_S = 60.0


class Job:
    """The mailboxes of all ranks, and the files that say that a process has ended."""

    def __init__(self, files: list[int], limit_s: float | None = None) -> None:
        self.headers = [Header(memoryview(bytearray(HEADER_BYTES)).cast("q")) for _ in range(RANKS)]
        self.processes = files[RANKS:]
        self.published: list[BaseException] = []
        self.ended: list[RingMessage] = []
        memory = {
            (owner, sender): np.zeros(RING_BYTES, np.uint8)
            for owner in range(RANKS)
            for sender in range(RANKS)
        }
        made = [Descriptors(-1, -1, files[RANKS + rank], files[rank]) for rank in range(RANKS)]
        self.ranks = [
            RingMailboxes(
                rank,
                self.headers,
                made,
                limit_s,
                lambda owner, sender: ByteRing(memory[owner, sender]),
                self.published.append,
            )
            for rank in range(RANKS)
        ]

    def send(self, rank: int, peer: int, data: bytes, tag: int = 0) -> RingMessage:
        bytes_ = np.frombuffer(data, np.uint8)
        return self.ranks[rank].send(peer, tag, DataType.UINT8, bytes_, self.ended.append)

    def receive(
        self, rank: int, peer: int | None, size: int, tag: int = 0
    ) -> tuple[RingMessage, Callable[[], bytes]]:
        """Return a receive, and what gives its bytes."""
        into = np.zeros(size, np.uint8)
        ended = self.ended.append
        return self.ranks[rank].receive(peer, tag, DataType.UINT8, into, ended), into.tobytes


@pytest.fixture
def files() -> Iterator[list[int]]:
    made = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(2 * RANKS)]
    yield made
    for file in made:
        os.close(file)


@pytest.fixture
def job(files: list[int]) -> Iterator[Job]:
    made = Job(files)
    yield made
    for rank in made.ranks:
        rank.close()


def test_a_message_that_fits_waits_for_no_receive(job: Job) -> None:
    sent = job.send(0, 1, b"first")
    assert sent.is_over
    received, got = job.receive(1, 0, 5)
    assert received.is_over
    assert (received.peer, received.error, got()) == (0, None, b"first")
    assert job.ended == [sent, received]


def test_a_receive_takes_the_first_message_of_its_source_and_tag(job: Job) -> None:
    for number, tag in enumerate((3, 7, 3)):
        job.send(0, 1, bytes([number]), tag)
    job.send(2, 1, b"\t", 7)
    results = [job.receive(1, 0, 1, tag)[1]() for tag in (7, 3, 3)]
    assert results == [b"\x01", b"\x00", b"\x02"]
    assert job.receive(1, 2, 1, 7)[1]() == b"\t"


def test_a_receive_from_any_rank_takes_its_turn_among_others(job: Job) -> None:
    posted = [job.receive(0, source, 1, 5) for source in (1, None, 2, None)]
    for rank, number in ((2, 1), (1, 2), (1, 3), (2, 4)):
        assert job.send(rank, 0, bytes([number]), 5).is_over
    job.ranks[0].finish()
    # Receives from any rank take messages as they find them; the others take those of their rank.
    assert [posted[0][0].peer, posted[2][0].peer] == [1, 2]
    assert sorted(got()[0] for _, got in posted) == [1, 2, 3, 4]
    of_rank = {rank: [g()[0] for m, g in posted if m.peer == rank] for rank in (1, 2)}
    assert of_rank == {1: [2, 3], 2: [1, 4]}


def test_a_long_message_goes_through_while_its_receiver_waits(job: Job) -> None:
    """No thread of the sender waits: its helper moves the bytes."""
    data = Random(5).randbytes(LONG)
    sent = job.send(0, 1, data)
    assert not sent.is_over
    received, got = job.receive(1, 0, LONG)
    assert job.ranks[1].wait(received, SOON_S)
    assert got() == data
    assert job.ranks[0].wait(sent, SOON_S)


def test_a_long_message_that_no_receive_takes_holds_up_none_of_another_tag(job: Job) -> None:
    data = Random(6).randbytes(LONG)
    job.send(0, 1, data, 1)
    job.send(0, 1, b"x", 2)
    second, got = job.receive(1, 0, 1, 2)
    assert job.ranks[1].wait(second, SOON_S)
    assert got() == b"x"
    first, got = job.receive(1, 0, LONG, 1)
    assert first.is_over
    assert got() == data


def test_empty_messages(job: Job) -> None:
    received, _ = job.receive(1, 0, 0)
    assert job.send(0, 1, b"").is_over
    assert job.ranks[1].wait(received, SOON_S)


def test_a_wait_may_end_before_its_message(job: Job) -> None:
    received, got = job.receive(1, 0, 1)
    assert not job.ranks[1].wait(received, 0.01)
    job.send(0, 1, b"y")
    assert job.ranks[1].wait(received, SOON_S)
    assert got() == b"y"


def test_a_message_of_another_size_is_named_and_published(job: Job) -> None:
    received, _ = job.receive(1, 0, 2)
    job.send(0, 1, b"long")
    job.ranks[1].wait(received, SOON_S)
    text = (
        "Ranks differ in a message with tag 0: rank 0 sends 4 uint8; rank 1 receives 2 uint8.\n"
        "Give the receive as many elements of the same type as are sent."
    )
    assert isinstance(received.error, MismatchError)
    assert str(received.error) == text
    assert job.published == [received.error]
    with pytest.raises(MismatchError):
        job.send(1, 0, b"more")


def test_a_message_of_another_size_that_came_before_is_named(job: Job) -> None:
    """It was read out of the ring for a receive with another tag."""
    job.send(0, 1, b"long", 1)
    job.send(0, 1, b"x", 2)
    assert job.receive(1, 0, 1, 2)[1]() == b"x"
    received, _ = job.receive(1, 0, 2, 1)
    assert job.ranks[1].wait(received, SOON_S)
    assert isinstance(received.error, MismatchError)


@pytest.mark.parametrize("way", ["closed", "ended"])
@pytest.mark.parametrize("sends", [True, False])
def test_a_rank_that_has_gone_ends_a_wait_for_it(job: Job, way: str, sends: bool) -> None:
    """What it has sent before still comes."""
    job.send(2, 1, b"last")
    if way == "closed":
        job.headers[2].words[CLOSED] = 1
    else:
        os.eventfd_write(job.processes[2], 1)
    taken, got = job.receive(1, 2, 4)
    assert taken.is_over
    assert got() == b"last"
    message = job.send(1, 2, bytes(LONG), 4) if sends else job.receive(1, 2, LONG, 4)[0]
    assert job.ranks[1].wait(message, SOON_S)
    what = {"closed": "Rank 2 has closed its communicator", "ended": "Rank 2's process has ended"}
    assert isinstance(message.error, PeerLostError)
    wait = "for rank 2 to take a message" if sends else "for a message of rank 2"
    assert f"{what[way]}. Rank 1 has waited {wait} with tag 4." in str(message.error)


def test_a_receive_from_any_rank_ends_with_the_last_rank_that_could_send(job: Job) -> None:
    job.headers[2].words[CLOSED] = 1
    received, _ = job.receive(1, None, 4)
    assert not job.ranks[1].wait(received, 0.3)
    job.headers[0].words[CLOSED] = 1
    assert job.ranks[1].wait(received, SOON_S)
    assert isinstance(received.error, PeerLostError)
    assert "Rank 1 has waited for a message of any rank with tag 0." in str(received.error)


def test_a_message_that_takes_too_long(files: list[int]) -> None:
    job = Job(files, limit_s=0.05)
    received, _ = job.receive(1, 0, 4, 9)
    assert job.ranks[1].wait(received, SOON_S)
    assert isinstance(received.error, ExecTimeoutError)
    assert "Rank 1 has waited for a message of rank 0 with tag 9 for 0.05 s" in str(received.error)
    for rank in job.ranks:
        rank.close()


def test_a_failed_session_ends_messages(job: Job) -> None:
    received, _ = job.receive(1, 0, 4)
    job.headers[2].publish(ParameterError("no such count"), 2)
    job.headers[1].words[FAILED_BY] = 1 + 2
    assert job.ranks[1].wait(received, SOON_S)
    assert str(received.error).startswith("no such count")


def test_closing_fails_messages_that_have_not_ended(job: Job) -> None:
    received, _ = job.receive(1, 0, 4)
    job.ranks[1].close()
    assert received.is_over
    assert isinstance(received.error, HcclError)
    with pytest.raises(ParameterError, match="The communicator is closed"):
        job.send(1, 0, b"late")


def test_an_interrupt_of_a_wait_ends_all_messages(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job.ranks[1], "_ask_for_help", lambda: None)
    received, _ = job.receive(1, 0, 4)

    def interrupted(*_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(job.ranks[1], "_look", interrupted)
    with pytest.raises(KeyboardInterrupt):
        job.ranks[1].wait(received, SOON_S)
    assert isinstance(received.error, KeyboardInterrupt)


def test_random_messages_among_all_ranks_at_once(job: Job) -> None:
    """Every rank in a thread: sends and receives in an order of its own, waits in another."""
    random = Random(11)
    plan = [
        (
            sender,
            receiver,
            random.randrange(3),
            random.randbytes(random.choice([0, 5, 4096, 99_999])),
        )
        for _ in range(150)
        for sender, receiver in [random.sample(range(RANKS), 2)]
    ]
    wrong: list[str] = []

    def work(rank: int) -> None:
        posted: list[tuple[int, RingMessage, Callable[[], bytes] | None]] = []
        for number, (sender, receiver, tag, data) in enumerate(plan):
            if rank == sender:
                posted.append((number, job.send(sender, receiver, data, tag), None))
            elif rank == receiver:
                posted.append((number, *job.receive(receiver, sender, len(data), tag)))
        Random(rank).shuffle(posted)
        for number, message, got in posted:
            if not job.ranks[rank].wait(message, SOON_S) or message.error:
                wrong.append(f"{number}: {message.error}")
            elif got is not None and got() != plan[number][3]:
                wrong.append(f"{number}: other bytes")

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(RANKS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(job.ended) == 2 * len(plan)
