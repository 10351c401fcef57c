"""The loop over one rank's queues, with a peer that is a number in memory and wakes at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from hccl_platform.distributed.one_sided import (
    COPY,
    LOCKED,
    POST_LOCAL,
    POST_REMOTE,
    REDUCE,
    WAIT_LOCAL,
    WAIT_REMOTE,
    Blocked,
    Counts,
    Item,
    Lock,
    run_queues,
)
from hccl_platform.distributed.wakeups import MARK_BITS

MARK = 77


class Peers:
    """Stands in for the wakeups: each pause lets the next event happen, and counts."""

    def __init__(self, *events: Callable[[], object]) -> None:
        self.mark = MARK
        self.events = list(events)
        self.woken: list[int] = []
        self.checked = 0
        self.resumed = 0
        self.waits: list[tuple[str, tuple[int, ...]]] = []

    def pause(self, explain: Callable[[], str], *most_ms: int) -> None:
        self.waits.append((explain(), most_ms))
        self.events.pop(0)()

    def resume(self) -> None:
        self.resumed += 1

    def check_calls(self) -> None:
        self.checked += 1

    def wake_if_asleep(self, rank: int) -> None:
        self.woken.append(rank)


def words(count: int = 4) -> memoryview[int]:
    return memoryview(bytearray(8 * count)).cast("q")


def run(
    queues: Sequence[Sequence[Item]],
    peers: Peers,
    own: memoryview[int],
    counts: Counts | None = None,
    local: int = 0,
) -> None:
    def explain(blocked: Sequence[Blocked]) -> str:
        return " ".join(f"{at.queue}:{at.place}" for at in blocked)

    run_queues(queues, counts or Counts(4), local, own, peers, explain)  # type: ignore[arg-type]


def copies(into: list[int], value: int) -> Item:
    """Return an item that notes when it is done."""
    return (REDUCE, value, None, lambda what, _: into.append(what))


def posted(own: memoryview[int], word: int, count: int, mark: int = MARK) -> Callable[[], None]:
    """Return what a peer does when it posts for the count-th time."""

    def post() -> None:
        own[word] = count << MARK_BITS | mark

    return post


def test_a_copy_and_a_reduction() -> None:
    memory = np.arange(6, dtype=np.uint8)
    add: Any = lambda into, what: np.add(into, what, out=into)  # noqa: E731
    items = [(COPY, memory[:2], memory[4:], None), (REDUCE, memory[2:4], memory[4:], add)]
    run([items], Peers(), words())
    assert memory.tolist() == [4, 5, 6, 8, 4, 5]


def test_a_wait_takes_one_post_of_this_call() -> None:
    own, done = words(), list[int]()
    peers = Peers(posted(own, 2, 1), posted(own, 2, 2))
    counts = Counts(4)
    wait = (WAIT_REMOTE, 1, 2, None)
    run([[wait, copies(done, 1), wait, copies(done, 2)]], peers, own, counts)
    assert done == [1, 2]
    assert counts.waited == [0, 2, 0, 0]
    assert peers.waits == [("0:0", ()), ("0:2", ())]
    assert (peers.checked, peers.resumed) == (0, 2)


def test_posts_ahead_are_not_waited_for() -> None:
    own, done, counts = words(), list[int](), Counts(4)
    posted(own, 0, 3)()
    wait = (WAIT_REMOTE, 0, 0, None)
    run([[wait, wait, copies(done, 1), wait]], Peers(), own, counts)
    assert (done, counts.waited[0]) == ([1], 3)


@pytest.mark.parametrize(("posts", "checks"), [(1, 1), (2, 0)])
def test_the_last_post_tells_of_another_call(posts: int, checks: int) -> None:
    """An earlier post may be of this call, whatever the mark of the last one is."""
    own, peers = words(), Peers()
    posted(own, 0, posts, MARK + 1)()
    run([[(WAIT_REMOTE, 0, 0, None)]], peers, own)
    assert peers.checked == checks


def test_a_post_counts_on_marks_and_wakes() -> None:
    theirs, peers, counts = words(), Peers(), Counts(4)
    post = (POST_REMOTE, 3, (theirs, 1), 9)
    run([[post, post]], peers, words(), counts)
    assert theirs.tolist() == [0, 2 << MARK_BITS | MARK, 0, 0]
    assert (counts.posted, peers.woken) == ([0, 0, 0, 2], [9, 9])
    run([[post]], peers, words(), counts)
    assert theirs[1] == 3 << MARK_BITS | MARK


def test_a_blocked_queue_lets_the_others_run() -> None:
    own, done = words(), list[int]()
    peers = Peers(posted(own, 0, 1))
    first = [(WAIT_REMOTE, 0, 0, None), copies(done, 1)]
    second = [copies(done, 2), copies(done, 3)]
    run([first, [], second], peers, own)
    assert done == [2, 3, 1]
    assert peers.waits == [("0:0", ())]


def test_streams_of_a_rank_wait_for_each_other() -> None:
    done = list[int]()
    first = [(WAIT_LOCAL, 1, None, None), copies(done, 1), (WAIT_LOCAL, 1, None, None)]
    second = [copies(done, 2), *[(POST_LOCAL, 1, None, None)] * 2, copies(done, 3)]
    run([first, second], Peers(), words(), local=2)
    assert done == [2, 3, 1]


def test_local_posts_of_one_run_are_not_those_of_the_next() -> None:
    post, wait = (POST_LOCAL, 0, None, None), (WAIT_LOCAL, 0, None, None)

    class Stuck(Exception):
        pass

    def give_up() -> None:
        raise Stuck

    run([[post]], Peers(), words(), local=1)
    with pytest.raises(Stuck):
        run([[wait]], Peers(give_up), words(), local=1)


def test_a_taken_lock_is_looked_at_soon() -> None:
    file, goes, comes = os.memfd_create("locks"), *os.pipe()
    memory = np.array([1, 2], np.uint8)
    add: Any = lambda into, what: np.add(into, what, out=into)  # noqa: E731
    item = (LOCKED, memory[:1], memory[1:], (add, Lock(file, 0, 8)))
    process = os.fork()
    if not process:  # holds the lock until it ends
        Lock(file, 4, 8).take()
        os.write(comes, b"!")
        os.read(os.pipe()[0], 1)
    os.read(goes, 1)

    def ends() -> None:
        os.kill(process, 9)
        os.waitpid(process, 0)

    peers = Peers(ends)
    run([[item]], peers, words())
    assert memory.tolist() == [3, 2]
    assert peers.waits == [("0:0", (1,))]
    process = os.fork()  # the lock is free again
    if not process:
        os._exit(not Lock(file, 0, 8).take())
    assert os.waitpid(process, 0)[1] == 0
    for descriptor in (file, goes, comes):
        os.close(descriptor)
