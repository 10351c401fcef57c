"""Notifies that count posts: order, races, findings and calls in a row, by every interleaving."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest

from hccl_py.formats import from_json
from hccl_py.program.matching import shared_cells
from hccl_py.program.program import Program
from hccl_py.verifier import verify_program
from hccl_py.verifier.analysis import clocks, dependencies
from hccl_py.verifier.analysis import ordering as ordering_module
from hccl_py.verifier.analysis.clocks import emissions
from hccl_py.verifier.analysis.memory import memory_of
from hccl_py.verifier.analysis.ordering import Ordering, ordering_of
from hccl_py.verifier.analysis.unrolled import Unrolled, unrolled
from hccl_py.verifier.subject import Options, Subject
from tests.verifier.interleavings import Interleavings, TooMany
from tests.verifier.naive import Byte
from tests.verifier.test_ordering import RACES, bytes_of, pairs

SIZE = 4
DOCUMENT: dict[str, Any] = {
    "format": "hccl-py.program/1",
    "op": {"name": "all_gather", "dtype": "uint8", "count": SIZE},
    "ranks": 2,
    "notifies": "counting",
    "link": "sdma",
    "exported": ["IN", "OUT", "CCL"],
    "buffers": {str(rank): {"IN": SIZE, "OUT": SIZE, "CCL": SIZE} for rank in range(2)},
}


def counting(tasks: dict[str, Any], **more: object) -> Program:
    return from_json(json.dumps(DOCUMENT | {"tasks": tasks} | more))


def random_program(random: Random, **more: object) -> Program:
    """Return a program of two ranks with a few streams, that share notifies; posts and waits of a
    notify are mostly as many, and stand anywhere.
    """
    shape = random.choice(((1, 1), (2, 1), (2, 2), (3, 1)))
    link = random.choice(("sdma", "sdma", "rdma"))
    moves = ("write",) if link == "rdma" else ("read", "write")
    places = [(rank, stream) for rank in range(2) for stream in range(shape[rank])]
    streams: dict[tuple[int, int], list[Any]] = {place: [] for place in places}
    for _ in range(random.randint(2, 8)):
        place, other = random.choice(places), random.choice(places)
        peer, index, at = 1 - place[0], int(random.random() < 0.2), random.randint(0, 1)
        if random.random() < 0.3:
            into = ["CCL", random.randint(2, 3), 1]
            move = [random.choice(moves), peer, ["CCL", at, 1], into]
            streams[place].append(random.choice((move, ["copy", ["IN", 0, 1], ["CCL", at, 1]])))
        elif other[0] != place[0]:
            streams[place].append(["post", peer, index])
            streams[other].append(["wait", place[0], index])
        elif other != place:
            streams[place].append(["local_post", other[1], index])
            streams[other].append(["local_wait", index])
    if random.random() < 0.1:
        streams[0, 0].append(["post", 1, 0])  # which is left over for the next call
    tasks: dict[str, Any] = {"0": {}, "1": {}}
    for (rank, stream), listed in streams.items():
        if random.random() < 0.3:
            random.shuffle(listed)
        tasks[str(rank)][str(stream)] = listed
    return counting(tasks, link=link, **more)


def judged(program: Program, copies: int) -> tuple[Unrolled, Ordering, set[Byte]]:
    run = unrolled(program, copies)
    memory = memory_of(Subject(program, Options()))
    ordering = ordering_of(run, memory, meets=False)
    found = set[Byte]()
    for what, _, _, first, last in ordering.emitted.tolist():
        if what in RACES:
            found |= bytes_of(memory, range(first, last))
    return run, ordering, found


def handing_over(random: Random, **more: object) -> Program:
    """Return a program in which streams of rank 0 write, and post one notify; rank 1 waits for it,
    reads, and answers now and then.
    """
    posters = random.randint(2, 3)
    streams: dict[tuple[int, int], list[Any]] = {(0, stream): [] for stream in range(posters)}
    streams[1, 0] = []
    if random.random() < 0.3:
        streams[1, 0], streams[1, 1] = [["local_post", 1, 1]], [["local_wait", 1]]
    for _ in range(random.randint(2, 4)):
        stream, other = random.randrange(posters), random.randrange(posters)
        if random.random() < 0.7:
            there = ["CCL", random.randint(0, 2), 1]
            streams[0, stream].append(["write", 1, ["IN", 0, 1], there])
        streams[0, stream].append(["post", 1, 0])
        if random.random() < 0.3 and other != stream:
            streams[0, stream].append(["local_post", other, 2])
            streams[0, other].append(["local_wait", 2])
        taker = streams.get((1, int(random.random() < 0.15)), streams[1, 0])
        taker.append(["wait", 0, 0])
        if random.random() < 0.6:
            here = ["CCL", random.randint(0, 2), 1]
            taker.append(["copy", here, ["OUT", random.randint(0, 3), 1]])
        if random.random() < 0.4:
            taker.append(["post", 0, 1])
            streams[0, other].append(["wait", 1, 1])
    tasks: dict[str, Any] = {"0": {}, "1": {}}
    for (rank, stream), listed in streams.items():
        tasks[str(rank)][str(stream)] = listed
    return counting(tasks, link=random.choice(("sdma", "rdma")), **more)


Maker = Callable[..., Program]


class Looked(NamedTuple):
    """A program, what the verifier tells of it, and all its interleavings."""

    seed: int
    program: Program
    ordering: Ordering
    told: set[Byte]
    every: Interleavings


def every(
    make: Maker, seeds: int, copies: int = 0, most: int = 8000, **more: object
) -> Iterator[Looked]:
    """Yield drawn programs that come to their end in the walk, with all their interleavings, of at
    most so many states; one or two copies of each unless their number is given.
    """
    for seed in range(seeds):
        random = Random(seed)
        program = make(random, **more)
        run, ordering, told = judged(program, copies or random.randint(1, 2))
        if not len(run.stuck):
            with suppress(TooMany):
                yield Looked(seed, program, ordering, told, Interleavings(run, most))


@pytest.mark.parametrize(
    ("make", "seeds", "copies", "more"),
    [
        (random_program, 170, 0, {}),
        (random_program, 140, 3, {"alternating": ["CCL"]}),
        (handing_over, 100, 0, {}),
        pytest.param(random_program, 500, 0, {}, marks=pytest.mark.long),
        pytest.param(random_program, 400, 3, {"alternating": ["CCL"]}, marks=pytest.mark.long),
        pytest.param(handing_over, 300, 0, {}, marks=pytest.mark.long),
    ],
)
def test_a_race_is_told_where_two_accesses_have_no_order_in_all_interleavings(
    make: Maker, seeds: int, copies: int, more: dict[str, Any]
) -> None:
    looked_at = racing = with_shared = 0
    for found in every(make, seeds, copies, **more):
        races = found.every.races()
        assert found.told == races, found.seed
        if found.every.can_hang():
            assert pairs(found.ordering, emissions.TWO_WAITS), found.seed
        looked_at += 1
        racing += bool(races)
        with_shared += len(shared_cells(found.program)) > 0
    assert min(looked_at, racing, with_shared) > seeds / 9


@pytest.mark.parametrize(
    ("seeds", "most"), [(110, 800), pytest.param(300, 8000, marks=pytest.mark.long)]
)
def test_where_passes_do_not_settle_every_race_is_told(
    seeds: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordering_module, "MOST_PASSES", -1)
    more = 0
    for found in every(handing_over, seeds, most=most):
        races = found.every.races()
        assert found.told >= races, found.seed
        more += found.told > races
    assert more > 3


@pytest.mark.parametrize("broken", ["shared_cells", "_is_as_given"])
def test_what_is_left_out_shows(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the k-th wait behind the k-th post alone, or the first pass believed, races would be
    missed: so the programs above are no easy ones.
    """
    if broken == "shared_cells":
        nothing = np.zeros(0, np.int64)
        monkeypatch.setattr(dependencies, "shared_cells", lambda program: nothing)
    else:
        monkeypatch.setattr(ordering_module, "_is_as_given", lambda graph, state, prior: True)
    assert any(not found.told >= found.every.races() for found in every(handing_over, 200))


LATE_WRITES: dict[str, tuple[Any, ...]] = {
    "a post of call 1 is left over": (
        2,
        # One post of three is left over: of call 2 rank 1 may take it and one more of sub 0.
        [],
        [["wait", 1, 1], ["post", 1, 0], ["post", 1, 0]],
        ["write", ["post", 1, 0]],
        [["wait", 0, 0], ["post", 0, 1], ["wait", 0, 0], "take"],
    ),
    "sub 0 posts twice before main writes": (
        1,
        # Both posts of sub 0 may be there before main has written.
        ["write", ["post", 1, 0], ["post", 1, 0]],
        [["wait", 1, 1], ["post", 1, 0], ["wait", 1, 1], ["post", 1, 0]],
        [],
        [["post", 0, 1], ["wait", 0, 0], ["post", 0, 1], ["wait", 0, 0], "take"],
    ),
    "main of call 2 takes a post of call 1": (
        2,
        # Rank 1 posts twice, and main waits once: in call 2 it may post before rank 1 has begun.
        [["wait", 1, 1], ["post", 1, 0]],
        [],
        ["write", ["post", 1, 0], ["post", 1, 0]],
        [["wait", 0, 0], "take", ["post", 0, 1], ["wait", 0, 0], ["wait", 0, 0], ["post", 0, 1]],
    ),
}
"""The number of calls, and the tasks of rank 0's main, sub 0 and sub 1, and of rank 1."""


@pytest.mark.parametrize("name", LATE_WRITES)
def test_passes_go_on_while_a_post_that_may_come_first_knows_less_than_before(name: str) -> None:
    """Rank 1 may take posts other than the one behind the write, and copy before it. It does so in
    a half of CCL that only this call uses.
    """
    moves = {
        "write": ["write", 1, ["IN", 0, 1], ["CCL", 0, 1]],
        "take": ["copy", ["CCL", 0, 1], ["OUT", 0, 1]],
    }
    calls, *streams = LATE_WRITES[name]
    main, sub, other, peer = (
        [moves[task] if isinstance(task, str) else task for task in listed] for listed in streams
    )
    tasks = {"0": {"0": main, "1": sub, "2": other}, "1": {"0": peer}}
    program = counting(tasks, alternating=["CCL"])
    run, _, told = judged(program, calls)
    assert (1, "CCL", 0) in told
    assert told == Interleavings(run).races()


def one_way(posts: int, waits: int, **more: object) -> Program:
    """Rank 0 hands rank 1 what is in CCL; nothing comes back."""
    write = ["write", 1, ["IN", 0, 1], ["CCL", 0, 1]]
    take = ["copy", ["CCL", 0, 1], ["OUT", 0, 1]]
    return counting(
        {
            "0": {"0": [write, *[["post", 1, 0]] * posts]},
            "1": {"0": [*[["wait", 0, 0]] * waits, take]},
        },
        **more,
    )


def classes(program: Program, repeat: int = 2) -> set[str]:
    return {finding.name for finding in verify_program(program, Options(repeat=repeat))}


def test_no_notify_that_counts_is_overrun() -> None:
    twice = one_way(2, 2)
    assert "NOTIFY_OVERRUN" in classes(replace(twice, counts_posts=False), 1)
    assert not classes(twice, 1) & {"NOTIFY_OVERRUN", "RACE_RW", "DEADLOCK_CYCLE", "UNMATCHED_POST"}


def test_what_is_left_over_lets_the_next_call_pass_too_early() -> None:
    report = verify_program(one_way(2, 1), Options(repeat=1))
    (finding,) = report.of_class("UNMATCHED_POST")
    assert finding.message.endswith(
        "but it is posted 2 times and waited for 1 times: a post that is left over lets a "
        "wait of the next op pass too early."
    )
    run = unrolled(one_way(2, 1), 2)
    waits = np.flatnonzero(run.post_of >= 0)
    assert run.post_of[waits].tolist() == [1, 2]  # both posts of the first copy, rows 1 and 2
    assert len(run.leftover) == 1


def test_a_wait_that_gets_too_few_posts_never_ends() -> None:
    report = verify_program(one_way(1, 2), Options(repeat=1))
    assert [f.name for f in report.errors if "WAIT" in f.name] == ["WAIT_WITHOUT_POST"]


def test_the_next_call_overtakes_where_nothing_comes_back() -> None:
    """One-bit notifies would be overrun, too; here rank 0 runs ahead and overwrites CCL."""
    assert not {"RACE_RW", "RACE_WW"} & classes(one_way(1, 1), 1)
    assert "RACE_RW" in classes(one_way(1, 1), 2)


def test_a_buffer_that_alternates_meets_itself_in_the_third_call() -> None:
    program = one_way(1, 1, alternating=["CCL"])
    for copies, races in ((1, False), (2, False), (3, True)):
        _, _, told = judged(program, copies)
        assert ((1, "CCL", 0) in told) == races
    assert len(Subject(program, Options()).calls) == 3
    assert len(Subject(program, Options(repeat=1)).calls) == 1
    assert len(Subject(one_way(1, 1), Options()).calls) == 2
    (finding,) = [f for f in verify_program(program).of_class("RACE_RW") if "CCL" in f.message]
    assert "rank 1's CCL[0:1]" in finding.message


def test_the_half_before_says_when_a_half_is_free() -> None:
    """Rank 1's credit for call k lets rank 0 write in call k + 1, into the other half: k + 2 is
    behind it. In one buffer the credit comes too late.
    """
    tasks = {
        "0": {
            "0": [
                ["write", 1, ["IN", 0, 1], ["CCL", 0, 1]],
                ["post", 1, 0],
                ["wait", 1, 1],
            ]
        },
        "1": {"0": [["wait", 0, 0], ["post", 0, 1], ["copy", ["CCL", 0, 1], ["OUT", 0, 1]]]},
    }
    ccl = (1, "CCL", 0)
    assert ccl in judged(counting(tasks), 3)[2]
    assert ccl not in judged(counting(tasks, alternating=["CCL"]), 4)[2]


@pytest.mark.long
def test_compiled_clocks_mean_the_same_where_notifies_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    programs = [random_program(Random(seed), alternating=["CCL"]) for seed in range(200)]
    loop, found = clocks.run_clocks, []
    for form in (loop.plain, loop.compiled):
        monkeypatch.setattr(loop, "sized", lambda steps, form=form: form)
        found.append([judged(program, 3)[1].emitted.tolist() for program in programs])
    assert found[0] == found[1]
    assert any(found[0])


def many_joins(ranks: int, subs: int, rounds: int) -> Program:
    """Main forks its sub streams again and again, and they all join it by one notify."""
    forks: list[Any] = [["local_post", sub, 0] for sub in range(1, subs + 1)]
    streams: dict[str, list[Any]] = {"0": [*forks, *[["local_wait", 0]] * subs] * rounds}
    for sub in range(1, subs + 1):
        take: list[Any] = ["copy", ["IN", 0, 1], ["CCL", sub - 1, 1]]
        streams[str(sub)] = [["local_wait", 0], take, ["local_post", 0, 0]] * rounds
    return counting({str(rank): streams for rank in range(ranks)})


def test_a_thousand_joins_by_one_notify_are_known_in_one_pass() -> None:
    program = many_joins(2, 4, 250)
    run, ordering, told = judged(program, 2)
    assert len(shared_cells(program)) == 2
    assert not len(run.stuck)
    assert not told
    assert not pairs(ordering, emissions.TWO_WAITS, emissions.NOT_JOINED)
