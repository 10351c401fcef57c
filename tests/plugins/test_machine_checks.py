"""Checks in processes of their own: what they find counts, however they end."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hccl_py.plugins.machine_checks import CheckResult, run_checks
from hccl_py.plugins.platforms import Check, Fact

LONG_S = 30.0


def facts_of(*checks: Check, limit_s: float = LONG_S) -> list[tuple[Fact, ...]]:
    return [each.facts for each in run_checks(checks, limit_s)]


def good() -> Iterator[Fact]:
    yield Fact("first", "a", True)
    yield Fact("second", "ü\n", None, "do this")


def raises() -> Iterator[Fact]:
    yield Fact("first", "a")
    raise RuntimeError("two\nlines")


def crashes() -> Iterator[Fact]:
    yield Fact("first", "a")
    os.write(2, b"terminate called\n\n")
    os.kill(os.getpid(), signal.SIGKILL)


def leaves() -> Iterator[Fact]:
    yield Fact("first", "a")
    os._exit(7)


def hangs() -> Iterator[Fact]:
    yield Fact("first", "a")
    if not os.fork():  # what it has started ends with it
        signal.pause()
    signal.pause()


def prints() -> Iterator[Fact]:
    print("to stdout")
    os.system("echo from a child")
    sys.stderr.write("to stderr")
    yield Fact("stdin", repr(sys.stdin.read()))


def test_facts_come_as_they_were_found() -> None:
    assert facts_of(Check("good", good)) == [
        (Fact("first", "a", True), Fact("second", "ü\n", None, "do this"))
    ]
    assert facts_of() == []


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (Check("it", raises), "RuntimeError: two lines"),
        (Check("it", crashes), "ended by SIGKILL, after it wrote: terminate called"),
        (Check("it", leaves), "ended"),
    ],
)
def test_what_was_found_before_the_end_counts(check: Check, words: str) -> None:
    ((first, last),) = facts_of(check)
    assert first == Fact("first", "a")
    assert last == Fact("it", words, False, "Its libraries do not go together, or are broken.")


def test_one_that_hangs_is_ended_and_others_are_not_waited_for() -> None:
    (first, last), rest = facts_of(Check("it", hangs), Check("good", good), limit_s=1.0)
    assert first == Fact("first", "a")
    assert (last.name, last.value, last.is_good) == ("it", "no answer in 1 s", False)
    assert "--limit" in last.hint
    assert len(rest) == 2


def test_nothing_that_is_printed_comes_out(capfd: pytest.CaptureFixture[str]) -> None:
    (found,) = run_checks([Check("loud", prints)], LONG_S)
    assert not found.bad
    assert not found.has_good
    assert capfd.readouterr() == ("", "")


def test_nothing_stays() -> None:
    before = len(os.listdir("/proc/self/fd")), children()
    found = run_checks([Check("good", good), Check("it", crashes)], LONG_S)
    assert [type(each) for each in found] == [CheckResult] * 2
    assert (len(os.listdir("/proc/self/fd")), children()) == before


def children() -> str:
    """The processes that this one has started: those of other tests may be among them."""
    paths = Path("/proc/self/task").glob("*/children")
    return " ".join(sorted(" ".join(path.read_text() for path in paths).split()))
