"""The conformance suite: what each property finds in executors that are wrong on purpose."""

import re
from functools import cache
from typing import Any

import pytest

from hccl_py.enums import DataType, Mode
from hccl_py.errors import ParameterError, PluginError
from hccl_py.plugins.platforms import Adversary, Schedule
from hccl_py.testing import PROPERTIES, ConformanceError, Suite, check_executor, sync_mutants
from hccl_py.testing.calls import recorded
from hccl_py.testing.conformance import GROUPS, InapplicableError, format_schedule
from hccl_py.testing.deletion import Intact, small_cases
from hccl_py.verifier.classes import CLASSES
from hccl_py.verifier.numeric import run_numeric
from hccl_py.verifier.sweeps.cases import Cases
from tests.testing import authors

FEW = Cases(ranks=(3,), topology="mesh", dtypes=(DataType.FP32,), counts=(0, 1, 33, 9001))
"""Nothing, little, and more than one round takes."""

BY_NAME = {chosen.name: chosen for chosen in PROPERTIES}


@cache
def failing(executor: Any) -> dict[str, str]:
    """Return the text of every property that an executor does not hold."""
    suite, texts = Suite(executor, cases=FEW), {}
    for chosen in PROPERTIES:
        try:
            chosen.check(suite)
        except ConformanceError as error:
            texts[chosen.name] = str(error)
    return texts


def test_a_right_executor_passes() -> None:
    other = Cases(ranks=(2, 4), dtypes=(DataType.INT8,), counts=(40_001,))
    check_executor(authors.Turns, cases=other, properties=["semantics", "races", "resources"])
    check_executor(authors.Turns(), cases=FEW)


@pytest.mark.parametrize(
    ("executor", "properties"),
    [
        (authors.NoAcks, {"races", "numeric"}),
        (authors.LeavesEarly, {"races", "ends", "numeric"}),
        (authors.NeverAnswers, {"deadlock", "numeric"}),
        (authors.OwnInput, {"semantics", "numeric"}),
        (authors.Overflows, {"resources", "rounds"}),
        (authors.OneRound, {"semantics", "rounds", "numeric"}),
        (authors.ClobbersItsInput, {"races", "in_place", "numeric"}),
        (authors.KeepsState, {"batches"}),
        (authors.OneTooMany, {"sync_deletion"}),
    ],
)
def test_every_defect_has_its_property(executor: Any, properties: set[str]) -> None:
    found = failing(executor)
    others = found.keys() - properties
    assert others <= {"semantics", "sync_deletion"}, "a race may show in the results, too"
    assert found.keys() >= properties
    for name, text in found.items():
        assert text.startswith(f"{executor.__name__}[{name}]: not so: {BY_NAME[name].meaning}.\n")


def test_texts_are_the_reports() -> None:
    found = failing(authors.NoAcks)
    assert "RACE_RW" in found["races"]
    assert "NoAcks: " in found["races"]
    assert re.search(r"> task \d+ +read rank \d CCL_In", found["races"])
    assert "in common: every case with data and several ranks" in found["races"]
    assert "Fix the other errors first" in found["sync_deletion"]


def test_an_open_end_is_said_in_one_sentence() -> None:
    text = failing(authors.LeavesEarly)["ends"]
    assert re.search(
        r"Open end: rank \d main task \d+ reads rank \d's CCL_In\[0:\d+\] to .* "
        r"\(testing/authors\.py:\d+\), and nothing says that this is over when rank (\d)'s main "
        r"ends\..*\nLet rank \d post a notify after that task, and rank \1 wait for it",
        text,
    )


def test_a_wrong_run_is_repeated_by_its_short_schedule() -> None:
    text = failing(authors.NoAcks)["numeric"]
    found = re.search(r"\n(.+):\n(rank \d element \d+ of op \d: .*)\nunder (Schedule\(.*\))$", text)
    assert found is not None
    names = {"Schedule": Schedule, "Adversary": Adversary}
    schedule = eval(found[3], names)
    assert len(schedule.choices) <= 8
    cases = {case.text: case for case in Suite(authors.NoAcks, cases=FEW).space.cases}
    program = recorded(authors.NoAcks, cases[found[1]])
    wrong = run_numeric(program, [schedule]).wrong
    assert wrong is not None
    assert wrong.message == found[2]


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule(3, Adversary.LATE_WIRE),
        Schedule(choices=(0, 3)),
        Schedule(choices=(1,), adversary=Adversary.SLOW_RANK),
    ],
)
def test_schedules_are_spelled_as_python(schedule: Schedule) -> None:
    names = {"Schedule": Schedule, "Adversary": Adversary}
    assert eval(format_schedule(schedule), names) == schedule


def test_check_executor_lists_all_that_is_wrong() -> None:
    with pytest.raises(AssertionError) as error:
        check_executor(authors.ClobbersItsInput, cases=FEW)
    assert isinstance(error.value, ConformanceError)
    for name in ("races", "in_place", "numeric"):
        assert f"ClobbersItsInput[{name}]: not so: " in str(error.value)
    assert "INPLACE_CLOBBER" in str(error.value)


def test_properties_can_be_chosen() -> None:
    check_executor(authors.OwnInput, cases=FEW, properties=["deadlock", "races"])
    with pytest.raises(ConformanceError, match="WRONG_SOURCE"):
        check_executor(authors.OwnInput, cases=FEW, properties=["semantics"])
    with pytest.raises(ParameterError, match="Property 'race' is unknown") as error:
        check_executor(authors.OwnInput, properties=["race"])
    assert "races" in error.value.hint


@pytest.mark.sweep
def test_needless_synchronisation_is_named_and_can_stay() -> None:
    text = failing(authors.OneTooMany)["sync_deletion"]
    lines = set(re.findall(r'kept=\{"testing/(authors\.py:\d+)"', text))
    assert len(lines) == 2, "the extra exchange, or the DataSignals that it makes superfluous"
    assert "Nothing that conflicts is ordered by it; remove it or say why it stays" in text
    assert "nothing goes wrong in" in text
    assert "the smallest of them 3 ranks, count" in text
    kept = dict.fromkeys(lines, "hardware that nobody has asks for it")
    check_executor(authors.OneTooMany, cases=FEW, kept=kept)
    with pytest.raises(ConformanceError, match="sync_deletion"):
        check_executor(authors.OneTooMany, cases=FEW, kept={"other.py:1": "not here"})


def test_what_the_verifier_lists_as_redundant_may_stay() -> None:
    suite = Suite(authors.WokenTwice, cases=FEW)
    check_executor(authors.WokenTwice, cases=FEW)
    (case, *_) = small_cases(suite.space.cases)
    intact = Intact(suite.record(case))
    missed = [m for m in sync_mutants(intact.program) if not intact.notices(m)]
    (pair,) = (mutant for mutant in missed if "awaited at" in mutant.words)
    assert intact.lists(pair)
    assert pair.lines == (pair.lines[0], intact.report.of_class("REDUNDANT_SYNC")[0].source)
    needed = next(m for m in sync_mutants(intact.program) if m.words.startswith("Ack"))
    assert intact.notices(needed)
    assert not intact.lists(needed)


def test_an_error_while_recording_is_said_once() -> None:
    with pytest.raises(ConformanceError) as error:
        check_executor(authors.Raises, cases=FEW)
    text = str(error.value)
    assert text.startswith("Raises cannot be examined.\nRaises.orchestrate, ranks 0 to 2: ")
    assert "Did you mean main or join?" in text
    assert text.count("mian") == 1


def test_an_executor_that_suits_nothing_does_not_pass() -> None:
    with pytest.raises(ConformanceError, match="SuitsNothing: nothing was verified") as error:
        check_executor(authors.SuitsNothing)
    assert "it is Sunday" in " ".join(str(error.value).split())


def test_what_is_no_executor_is_refused() -> None:
    class NoMethods:
        op = "all_gather"
        algorithm = "none"

    with pytest.raises(PluginError, match="the method suits is missing"):
        check_executor(NoMethods)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cases", "name", "reason"),
    [
        (Cases(ranks=(3,), counts=(5,)), "rounds", "does everything in one round"),
        (Cases(ranks=(3,), in_place=False), "in_place", "takes no call in place"),
    ],
)
def test_a_property_may_have_nothing_to_look_at(cases: Cases, name: str, reason: str) -> None:
    with pytest.raises(InapplicableError, match=f"Turns {reason}"):
        BY_NAME[name].check(Suite(authors.Turns, cases=cases))


@pytest.mark.sweep
def test_a_narrowed_suite_keeps_to_its_cases() -> None:
    cases = Cases(ranks=(2,), modes=(Mode.OP_BASE,), dtypes=(DataType.FP32,))
    suite = Suite(authors.Turns, cases=cases)
    assert {case.topology.size for case in suite.space.cases} == {2}
    assert suite.report.cases == len(suite.space.cases)
    assert suite.report is suite.report, "one sweep for all properties"


def test_every_class_belongs_to_one_view() -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    assert len(set(grouped)) == len(grouped)
    assert set(grouped) < set(CLASSES)
    assert "WRONG_SOURCE" not in grouped, "what is nowhere else is about semantics"
