"""The loop over one rank's queues, with a peer that is a number in memory and wakes at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from hccl_platform.distributed.header import ASLEEP
from hccl_platform.distributed.one_sided import (
    COPY,
    LOCKED,
    POST,
    REDUCE,
    Blocked,
    BoundStep,
    Counts,
    Item,
    Lock,
    Wait,
    run_steps,
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
        self.missing: list[list[tuple[int, int]]] = []

    def pause(
        self,
        explain: Callable[[], str],
        *most_ms: int,
        missing: Callable[[], list[tuple[int, int]]] = list,
    ) -> None:
        self.waits.append((explain(), most_ms))
        self.missing.append(missing())
        self.events.pop(0)()

    def resume(self) -> None:
        self.resumed += 1

    def check_calls(self) -> None:
        self.checked += 1

    def wake_if_ready(self, rank: int) -> None:
        self.woken.append(rank)


def words(count: int = 4) -> memoryview[int]:
    return memoryview(bytearray(8 * count)).cast("q")


def step(
    items: Sequence[Item] = (),
    waits: Sequence[Wait] = (),
    before: int = 0,
    then: Sequence[int] = (),
) -> BoundStep:
    return BoundStep(waits, list(items), before, then)


def run(
    steps: Sequence[BoundStep],
    peers: Peers,
    own: memoryview[int],
    counts: Counts | None = None,
) -> None:
    def explain(blocked: Sequence[Blocked]) -> str:
        return " ".join(f"{b.step}:{'wait' if b.is_waiting else 'item'} {b.at}" for b in blocked)

    run_steps(steps, counts or Counts(4), own, peers, explain)  # type: ignore[arg-type]


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
    run([step(items)], Peers(), words())
    assert memory.tolist() == [4, 5, 6, 8, 4, 5]


def test_waits_count_the_posts_of_this_run() -> None:
    own, done = words(), list[int]()
    peers = Peers(posted(own, 2, 8), posted(own, 2, 9))
    counts = Counts(4)
    counts.waited[1] = 7
    first = step([copies(done, 1)], [(1, 2, 1)], then=[1])
    run([first, step([copies(done, 2)], [(1, 2, 2)], before=1)], peers, own, counts)
    assert done == [1, 2]
    assert [text for text, _ in peers.waits] == ["0:wait 0", "1:wait 0"]
    assert (peers.checked, peers.resumed) == (0, 2)
    assert counts.waited[1] == 7  # until the whole call has ended


def test_posts_ahead_are_not_waited_for() -> None:
    own, done = words(), list[int]()
    posted(own, 0, 3)()
    run([step([copies(done, 1)], [(0, 0, 1), (0, 0, 3)])], Peers(), own)
    assert done == [1]


@pytest.mark.parametrize(("posts", "checks"), [(1, 1), (2, 0)])
def test_the_last_post_tells_of_another_call(posts: int, checks: int) -> None:
    """An earlier post may be of this call, whatever the mark of the last one is."""
    own, peers = words(), Peers()
    posted(own, 0, posts, MARK + 1)()
    run([step([], [(0, 0, 1)])], peers, own)
    assert peers.checked == checks


def test_a_post_counts_on_marks_and_wakes() -> None:
    theirs, peers, counts = words(), Peers(), Counts(4)
    post = (POST, 3, (theirs, 1), 9)
    run([step([post])], peers, words(), counts)
    assert theirs.tolist() == [0, 1 << MARK_BITS | MARK, 0, 0]
    theirs[ASLEEP] = 1
    run([step([post, post])], peers, words(), counts)
    assert theirs[1] == 3 << MARK_BITS | MARK
    assert (counts.posted, peers.woken) == ([0, 0, 0, 3], [9, 9])


def test_a_step_that_waits_lets_the_others_run() -> None:
    own, done = words(), list[int]()
    peers = Peers(posted(own, 0, 1), posted(own, 1, 1))
    steps = [
        step([copies(done, 1)], [(0, 0, 1)], then=[3]),
        step([copies(done, 2)], then=[2]),
        step([copies(done, 3)], [(1, 1, 1)], before=1, then=[3]),
        step([copies(done, 4)], before=2),
    ]
    run(steps, peers, own)
    assert done == [2, 1, 3, 4]
    assert [text for text, _ in peers.waits] == ["0:wait 0 2:wait 0", "2:wait 0"]
    assert peers.missing == [[], [(1, 1 << MARK_BITS)]]


def test_a_step_alone_waits_for_all_that_it_misses() -> None:
    own = words()
    posted(own, 1, 1)()
    peers = Peers(posted(own, 2, 1), posted(own, 0, 2))
    run([step([], [(n, n, 1 + (n == 0)) for n in range(3)])], peers, own)
    assert peers.missing == [[(0, 2 << MARK_BITS), (2, 1 << MARK_BITS)], [(0, 2 << MARK_BITS)]]


def test_a_taken_lock_is_looked_at_soon() -> None:
    file, goes, comes = os.memfd_create("locks"), *os.pipe()
    memory = np.array([1, 2], np.uint8)
    add: Any = lambda into, what: np.add(into, what, out=into)  # noqa: E731
    item, done = (LOCKED, memory[:1], memory[1:], (add, Lock(file, 0, 8))), list[int]()
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
    run([step([copies(done, 1), item, copies(done, 2)])], peers, words())
    assert (memory.tolist(), done) == ([3, 2], [1, 2])
    assert peers.waits == [("0:item 1", (1,))]
    process = os.fork()  # the lock is free again
    if not process:
        os._exit(not Lock(file, 0, 8).take())
    assert os.waitpid(process, 0)[1] == 0
    for descriptor in (file, goes, comes):
        os.close(descriptor)
