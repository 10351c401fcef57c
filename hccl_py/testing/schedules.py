"""A failing interleaving as a short list of choices.

A run makes thousands of choices; few of them matter. `shortest` asks a failing schedule's run for
its choices and shortens the list while the run still fails:

    cut        the choices after the last one that matters, which become 0
    leave out  half of the list, a quarter, ... single choices
    lower      the rest, to 0 or to the lowest number that fails

The result is replayed by `Schedule(choices=...)`, anywhere and at any time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hccl_py.plugins.platforms import Chooser, Schedule

RUNS = 400
"""Runs that shortening may take."""


class _LoggingSchedule(Schedule):
    """A schedule that keeps its choosers."""

    choosers: list[_LoggingChooser]

    def chooser(self) -> Chooser:
        chooser = _LoggingChooser(super().chooser())
        self.choosers.append(chooser)
        return chooser


class _LoggingChooser:
    """Keeps the choices of another chooser."""

    def __init__(self, chooser: Chooser) -> None:
        self.choices: list[int] = []
        self._chooser = chooser

    def choose(self, options: int) -> int:
        self.choices.append(self._chooser.choose(options))
        return self.choices[-1]


def choices_of(run: Callable[[Schedule], object], schedule: Schedule) -> tuple[int, ...]:
    """Return the choices that a schedule makes in a run, the last one where `run` makes several;
    none where the run's platform does not ask the schedule.
    """
    logging = _LoggingSchedule(schedule.seed, schedule.adversary, schedule.choices, schedule.slow)
    object.__setattr__(logging, "choosers", [])
    run(logging)
    return tuple(logging.choosers[-1].choices) if logging.choosers else ()


def shortest(
    fails: Callable[[Schedule], bool], schedule: Schedule, *, runs: int = RUNS
) -> Schedule:
    """Return a schedule that fails too, with as few and as low choices as `runs` runs can find.

    Where the listed choices of `schedule` do not fail, it comes back as it is.
    """
    listed = replace(schedule, seed=0, choices=choices_of(fails, schedule))
    if not fails(listed):
        return schedule
    search = _ShortestSearch(fails, listed, runs)
    before = None
    while before != search.choices and search.runs > 0:
        before = search.choices
        search.cut()
        search.leave_out()
        search.lower()
    return replace(listed, choices=search.choices)


class _ShortestSearch:
    """The shortest failing list so far, and how many runs are left."""

    def __init__(self, fails: Callable[[Schedule], bool], schedule: Schedule, runs: int) -> None:
        self.choices = schedule.choices or ()
        self.runs = runs
        self._fails = fails
        self._schedule = schedule

    def take(self, choices: tuple[int, ...]) -> bool:
        """Run other choices, if they are simpler, and keep them if they fail."""
        while choices and choices[-1] == 0:
            choices = choices[:-1]
        if self.runs <= 0 or (len(choices), choices) >= (len(self.choices), self.choices):
            return False
        self.runs -= 1
        fails = self._fails(replace(self._schedule, choices=choices))
        if fails:
            self.choices = choices
        return fails

    def cut(self) -> None:
        """Try ever longer beginnings."""
        length = 0
        while length < len(self.choices) and not self.take(self.choices[:length]):
            length = 2 * length or 1

    def leave_out(self) -> None:
        """Try without a part of the list, with ever smaller parts."""
        size = len(self.choices)
        while size:
            start = 0
            while start < len(self.choices):
                zeros = (0,) * len(self.choices[start : start + size])
                head, tail = self.choices[:start], self.choices[start + size :]
                if not self.take(head + tail) and not self.take(head + zeros + tail):
                    start += size
            size //= 2

    def lower(self) -> None:
        """Try lower numbers, one place after the other."""
        for place in range(len(self.choices)):
            for value in range(self.choices[place] if place < len(self.choices) else 0):
                if self.take((*self.choices[:place], value, *self.choices[place + 1 :])):
                    break
