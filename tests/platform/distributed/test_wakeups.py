"""Calls, waits and failures that ranks of one host publish to each other, all in this process."""

import os
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from hccl_platform.distributed.header import (
    ASLEEP,
    CALL,
    CLOSED,
    DONE,
    FAILED_BY,
    FIRST_NOTIFY,
    MOST_MISSING,
    Header,
)
from hccl_platform.distributed.rendezvous import (
    Descriptors,
    close_descriptors,
    make_descriptors,
)
from hccl_platform.distributed.shared_memory import HEADER_BYTES, NOTIFIES
from hccl_platform.distributed.wakeups import Wakeups, mismatch
from hccl_platform.lowering.call import CallIdentity
from hccl_py.errors import ExecTimeoutError, MismatchError, ParameterError, PeerLostError

RANKS = 3
LIMIT_S = 5.0
CALLED = CallIdentity(b"calls this", (5 << 24) + 9)


@pytest.fixture
def files() -> Iterator[list[int]]:
    """Of every rank, what wakes it in calls, says that its process has ended, wakes it for mail."""
    made = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(3 * RANKS)]
    yield made
    for file in made:
        os.close(file)


@pytest.fixture
def ranks(files: list[int]) -> list[Wakeups]:
    """All ranks in this process, which share their headers."""
    headers = [
        Header(memoryview(bytearray(HEADER_BYTES + 8 * NOTIFIES)).cast("q")) for _ in range(RANKS)
    ]
    made = [Descriptors(-1, *files[3 * rank : 3 * rank + 3]) for rank in range(RANKS)]
    return [Wakeups(rank, headers, made, LIMIT_S) for rank in range(RANKS)]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that stands still, `now`; each yield takes `yield_s` and is counted."""
    made = SimpleNamespace(now=100.0, yield_s=0.0, yields=0)

    def let_others_run() -> None:
        made.yields += 1
        made.now += made.yield_s

    time = SimpleNamespace(perf_counter=lambda: made.now, monotonic=lambda: made.now)
    monkeypatch.setattr("hccl_platform.distributed.wakeups.time", time)
    monkeypatch.setattr("hccl_platform.distributed.pauses.time", time)
    monkeypatch.setattr(os, "sched_yield", let_others_run)
    return made


def pause(rank: Wakeups, times: int = 1) -> None:
    for _ in range(times):
        rank.pause(lambda: "It waits", 1)


def falls_asleep(rank: Wakeups) -> None:
    """Pause until the next pause is a sleep."""
    while not rank.headers[rank.rank].words[ASLEEP]:
        pause(rank)


def test_a_rank_keeps_the_first_failure_that_reaches_it(ranks: list[Wakeups]) -> None:
    """Rank 1 has failed and has reached rank 2 only when rank 0 fails, too."""
    first, second = ParameterError("the first"), ParameterError("the second")
    ranks[1].headers[1].publish(first, 1)
    ranks[1].headers[2].words[FAILED_BY] = 1 + 1
    ranks[0].publish(second)
    for rank, words in enumerate(("the second", "the second", "the first")):
        with pytest.raises(ParameterError, match=words):
            ranks[rank].begin(CallIdentity(b"", 0))


def test_calls_are_numbered_and_marked(ranks: list[Wakeups]) -> None:
    rank, words = ranks[1], ranks[1].headers[1].words
    for number in (1, 2):
        rank.begin(CALLED)
        assert (rank.number, rank.mark, rank.call) == (number, 9, CALLED)
        assert (words[CALL], words[DONE]) == (number, number - 1)
        rank.end()
        assert (words[CALL], words[DONE]) == (number, number)


def test_ranks_that_make_different_calls_are_named(ranks: list[Wakeups]) -> None:
    ranks[0].begin(CALLED)
    ranks[0].check_calls()
    ranks[1].begin(CALLED)
    ranks[0].check_calls()
    ranks[2].begin(CallIdentity(b"calls that", 7))
    with pytest.raises(MismatchError, match="in call 1: rank 0 calls this; rank 2 calls that"):
        ranks[0].check_calls()


def test_calls_of_other_numbers_are_no_difference(ranks: list[Wakeups]) -> None:
    ranks[0].begin(CALLED)
    for _ in range(2):
        ranks[2].begin(CALLED)
    ranks[2].begin(CallIdentity(b"calls that", 7))
    ranks[0].check_calls()


def test_the_number_of_a_call_is_said_where_it_differs() -> None:
    error = mismatch({3: (8, CALLED), 1: (9, CallIdentity(b"calls that", 1))})
    assert "in call 9: rank 1 calls that; rank 3 calls this in call 8." in error.message


def test_only_a_rank_that_sleeps_is_woken_and_once(
    ranks: list[Wakeups], files: list[int], clock: SimpleNamespace
) -> None:
    ranks[0].wake_if_asleep(1)
    with pytest.raises(BlockingIOError):
        os.eventfd_read(files[3])
    falls_asleep(ranks[1])
    for _ in range(2):
        ranks[0].wake_if_asleep(1)
    assert os.eventfd_read(files[3]) == 1
    falls_asleep(ranks[1])
    ranks[1].resume()
    ranks[0].wake_if_asleep(1)
    with pytest.raises(BlockingIOError):
        os.eventfd_read(files[3])


def test_a_rank_yields_then_looks_once_more_then_sleeps(
    ranks: list[Wakeups], files: list[int], clock: SimpleNamespace
) -> None:
    ranks[0].begin(CALLED)
    words = ranks[0].headers[0].words
    for _ in range(2):
        clock.yields = 0
        pause(ranks[0], 30)
        assert (clock.yields, words[ASLEEP]) == (30, 0)
        pause(ranks[0])
        assert (clock.yields, words[ASLEEP]) == (30, 1)
        ranks[1].wake(0)
        pause(ranks[0])  # sleeps until it is woken, which it forgets
        assert (clock.yields, words[ASLEEP]) == (30, 1)
        with pytest.raises(BlockingIOError):
            os.eventfd_read(files[0])
        ranks[0].resume()
        assert words[ASLEEP] == 0


def test_a_yield_that_takes_long_spares_the_next_64(
    ranks: list[Wakeups], clock: SimpleNamespace
) -> None:
    clock.yield_s = 0.0002
    pause(ranks[0])
    clock.yield_s = 0.00005
    for _ in range(64):
        pause(ranks[0])
        assert (clock.yields, ranks[0].headers[0].words[ASLEEP]) == (1, 1)
        ranks[0].resume()
    pause(ranks[0], 2)
    assert clock.yields == 3


def test_a_rank_that_is_woken_looks_at_its_peers_every_16th_time(
    ranks: list[Wakeups], clock: SimpleNamespace
) -> None:
    ranks[0].begin(CALLED)
    ranks[1].begin(CallIdentity(b"calls that", 6 << 24))
    falls_asleep(ranks[0])
    for _ in range(15):
        ranks[1].wake(0)
        pause(ranks[0])
    ranks[1].wake(0)
    with pytest.raises(MismatchError):
        pause(ranks[0])


def test_a_condition_is_waited_for(ranks: list[Wakeups], clock: SimpleNamespace) -> None:
    answers = [True, *[False] * 33]
    ranks[0].begin(CALLED)
    ranks[0].wait_until(answers.pop, lambda: "It waits")
    assert answers == []
    assert ranks[0].headers[0].words[ASLEEP] == 0
    assert clock.yields == 30


def test_a_call_that_may_never_end_is_checked_once(
    ranks: list[Wakeups], clock: SimpleNamespace
) -> None:
    checks: list[float] = []
    ranks[0].begin(CALLED, lambda: checks.append(clock.now))
    falls_asleep(ranks[0])
    clock.now = 200.0
    pause(ranks[0])  # the wait begins with its first sleep
    clock.now = 201.0
    pause(ranks[0])
    assert checks == []
    clock.now = 201.01
    pause(ranks[0], 2)
    assert checks == [201.01]


def test_a_wait_ends_with_what_is_found(ranks: list[Wakeups], clock: SimpleNamespace) -> None:
    ranks[0].begin(CALLED)
    for _ in range(2):
        falls_asleep(ranks[0])
        pause(ranks[0])
        clock.now += LIMIT_S
        pause(ranks[0])  # no longer than allowed
        ranks[0].resume()


@pytest.mark.parametrize(
    ("begun", "asleep", "words"),
    [
        ((), (), "Rank 1, 2 has not begun this call. It waits for 5 s, longer than"),
        ((2,), (), "Rank 1 has not begun this call. It waits"),
        ((1, 2), (1,), "Rank 2 has begun this call and is in no wait. It waits"),
        ((1, 2), (1, 2), "It waits for 5 s, longer than HCCL_EXEC_TIMEOUT allows."),
    ],
)
def test_a_rank_waits_no_longer_than_allowed(
    ranks: list[Wakeups],
    clock: SimpleNamespace,
    begun: tuple[int, ...],
    asleep: tuple[int, ...],
    words: str,
) -> None:
    for rank in (0, *begun):
        ranks[rank].begin(CALLED)
    for rank in (0, *asleep):
        falls_asleep(ranks[rank])
    pause(ranks[0])
    clock.now += LIMIT_S + 0.01
    with pytest.raises(ExecTimeoutError) as caught:
        pause(ranks[0])
    assert caught.value.message.startswith(words)


@pytest.mark.parametrize(
    ("calls", "done", "words"),
    [
        (0, 0, "before call 1, which rank 0 is in"),
        (1, 0, "in call 1, which rank 0 is in"),
        (1, 1, ""),
    ],
)
@pytest.mark.parametrize("ends", [True, False])
def test_a_peer_that_is_gone_is_lost_unless_it_has_done_the_call(
    ranks: list[Wakeups],
    files: list[int],
    clock: SimpleNamespace,
    calls: int,
    done: int,
    words: str,
    ends: bool,
) -> None:
    for rank in [0] + [1] * calls:
        ranks[rank].begin(CALLED)
    if done:
        ranks[1].end()
    if ends:
        os.eventfd_write(files[3 * 1 + 1], 1)
    else:
        ranks[1].close()
        assert ranks[0].headers[1].words[CLOSED] == 1
    falls_asleep(ranks[0])
    if not words:
        pause(ranks[0], 2)
        return
    what = "Rank 1's process has ended" if ends else "Rank 1 has closed its communicator"
    with pytest.raises(PeerLostError, match=f"{what} {words}"):
        pause(ranks[0], 2)


def test_a_rank_that_closes_wakes_those_that_sleep(
    ranks: list[Wakeups], files: list[int], clock: SimpleNamespace
) -> None:
    falls_asleep(ranks[2])
    ranks[1].close()
    assert os.eventfd_read(files[6]) == 1
    with pytest.raises(BlockingIOError):
        os.eventfd_read(files[0])


def test_a_failure_wakes_everybody_and_is_raised_in_the_wait(
    ranks: list[Wakeups], files: list[int], clock: SimpleNamespace
) -> None:
    ranks[0].begin(CALLED)
    falls_asleep(ranks[0])
    ranks[2].fail(ParameterError("no such count"))
    assert [ranks[0].headers[rank].words[FAILED_BY] for rank in range(RANKS)] == [3, 3, 3]
    assert [os.eventfd_read(files[3 * rank]) for rank in (1, 2)] == [1, 1]
    with pytest.raises(ParameterError, match="no such count"):
        pause(ranks[0])
    ranks[0].fail(ValueError("too late"))
    assert ranks[0].headers[1].words[FAILED_BY] == 3


def test_descriptors_are_of_this_process_and_nothing_has_woken_it_yet() -> None:
    made = make_descriptors(3)
    with pytest.raises(BlockingIOError):
        os.eventfd_read(made.wakeup)
    assert os.readlink(f"/proc/self/fd/{made.memory}").startswith("/memfd:hccl_py rank 3")
    with open(f"/proc/self/fdinfo/{made.process}") as file:
        assert f"Pid:\t{os.getpid()}\n" in file.read()
    close_descriptors(made)
    for descriptor in made:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


def asleep_until(rank: Wakeups, missing: list[tuple[int, int]]) -> None:
    """Bring a rank to the point before it sleeps."""
    while not rank.headers[rank.rank].words[ASLEEP]:
        rank.pause(lambda: "It waits", 1, missing=lambda: missing)


def test_a_rank_that_misses_several_notifies_is_woken_by_the_last(
    ranks: list[Wakeups], files: list[int]
) -> None:
    own, first, second = ranks[0].headers[0].words, FIRST_NOTIFY, FIRST_NOTIFY + 1
    asleep_until(ranks[0], [(first, 3), (second, 1)])
    own[second] = 1
    ranks[1].wake_if_ready(0)
    assert own[ASLEEP]
    own[first] = 2
    ranks[2].wake_if_ready(0)
    assert own[ASLEEP]
    own[first] = 3
    ranks[2].wake_if_ready(0)
    assert not own[ASLEEP]
    assert os.eventfd_read(files[0]) == 1


@pytest.mark.parametrize("missing", [[], [(FIRST_NOTIFY, 1)] * (MOST_MISSING + 1)])
def test_a_rank_that_names_nothing_or_too_much_is_woken_by_any_notify(
    ranks: list[Wakeups], files: list[int], missing: list[tuple[int, int]]
) -> None:
    asleep_until(ranks[0], [(FIRST_NOTIFY, 1)])
    ranks[0].resume()
    asleep_until(ranks[0], missing)
    ranks[1].wake_if_ready(0)
    assert os.eventfd_read(files[0]) == 1
