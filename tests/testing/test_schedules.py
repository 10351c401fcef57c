"""Failing interleavings become short lists of choices."""

import pytest
from hypothesis import find, settings

from hccl_py.errors import HcclError
from hccl_py.plugins.platforms import Adversary, Schedule
from hccl_py.program.program import Program
from hccl_py.testing import choices_of, shortest, sync_mutants
from hccl_py.testing.strategies import schedules
from hccl_py.topology import topology_of
from tests.platform.exchanging import ExchangingRing
from tests.platform.running import Way, expected, run, same_bits, whole_numbers
from tests.recording import op_of, recorded


def careless(words: str) -> Program:
    """A ring of three servers without some of its synchronisation."""
    topology = topology_of(servers=3, devices=1)
    program = recorded(ExchangingRing, op_of("all_reduce", 100, "int32"), topology)
    return next(m for m in sync_mutants(program) if m.words.startswith(words)).of(program)


def is_wrong(program: Program, schedule: Schedule) -> bool:
    inputs = whole_numbers(program.op, program.ranks)
    try:
        outputs = run(program, inputs, Way(schedule))
    except HcclError:
        return True  # an overrun, or a deadlock
    return not same_bits(outputs, expected(program.op, inputs))


@pytest.mark.parametrize(("words", "most"), [("Ack", 12), ("DataSignal", 40)])
def test_a_failing_seed_becomes_a_short_list(words: str, most: int) -> None:
    program = careless(words)
    assert not is_wrong(program, Schedule(choices=())), "luck is on its side"
    seed = next(seed for seed in range(100) if is_wrong(program, Schedule(seed)))
    made = choices_of(lambda schedule: is_wrong(program, schedule), Schedule(seed))
    found = shortest(lambda schedule: is_wrong(program, schedule), Schedule(seed))
    assert found.choices is not None
    assert 0 < len(found.choices) <= most < len(made)
    assert is_wrong(program, Schedule(choices=found.choices)), "replayed by what is printed"
    for place in range(len(found.choices)):
        fewer = found.choices[:place] + found.choices[place + 1 :]
        assert not is_wrong(program, Schedule(choices=fewer)), "every choice matters"


def test_hypothesis_finds_and_shrinks_a_failing_interleaving() -> None:
    program = careless("Ack")
    found = find(
        schedules(adversaries=[Adversary.RANDOM]),
        lambda schedule: is_wrong(program, schedule),
        settings=settings(database=None, derandomize=True),
    )
    assert found.choices is not None
    assert 0 < len(found.choices) <= 12
    assert is_wrong(program, Schedule(choices=found.choices))


@pytest.mark.parametrize("adversary", Adversary)
def test_the_adversary_stays(adversary: Adversary) -> None:
    program = careless("all synchronisation")
    seed = next(seed for seed in range(100) if is_wrong(program, Schedule(seed, adversary)))
    found = shortest(lambda s: is_wrong(program, s), Schedule(seed, adversary))
    assert found.adversary is adversary
    assert is_wrong(program, found)


def test_the_shortest_of_a_known_set() -> None:
    def fails(schedule: Schedule) -> bool:
        """Three calls of `choose`; fails where the last is at least 2 after something odd."""
        chooser = schedule.chooser()
        _, second, third = (chooser.choose(10) for _ in range(3))
        return second % 2 == 1 and third >= 2

    seed = next(seed for seed in range(100) if fails(Schedule(seed)))
    assert shortest(fails, Schedule(seed)).choices == (0, 1, 2)
    assert shortest(fails, Schedule(choices=(9, 9, 9, 9, 9))).choices == (0, 1, 2)


def test_what_does_not_fail_again_stays_as_it_is() -> None:
    program = recorded("AllReduceComm", op_of("all_reduce", 100, "int32"), 3)
    assert shortest(lambda s: is_wrong(program, s), Schedule(3)) == Schedule(3)
    assert shortest(lambda s: s.choices is None, Schedule(3)) == Schedule(3), "nobody chooses here"


def test_runs_are_counted() -> None:
    program, runs = careless("DataSignal"), 0

    def fails(schedule: Schedule) -> bool:
        nonlocal runs
        runs += 1
        return is_wrong(program, schedule)

    seed = next(seed for seed in range(100) if is_wrong(program, Schedule(seed)))
    shortest(fails, Schedule(seed), runs=20)
    assert runs <= 20 + 2
