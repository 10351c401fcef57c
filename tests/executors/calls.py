"""Some calls of an executor's sweep, drawn at random: other ones for every executor and test."""

import random
from collections.abc import Callable
from itertools import islice
from types import ModuleType

from hccl_executors import EXECUTORS
from hccl_py.plugins.executor import Executor
from hccl_py.verifier.sweeps.cases import Case, Cases
from hccl_py.verifier.sweeps.space import random_cases

TRIES = 20_000
"""Choices to draw: those executors that suit least take one in forty."""


def executors_of(*modules: ModuleType) -> tuple[type[Executor], ...]:
    """Return the executors that are written in these modules."""
    names = [module.__name__ for module in modules]
    return tuple(executor for executor in EXECUTORS if executor.__module__ in names)


def some_calls(
    executor: type[Executor],
    number: int,
    salt: str = "",
    *,
    accept: Callable[[Case], bool] = lambda case: True,
) -> list[Case]:
    """Return so many calls that an executor suits, smallest first; the same ones in every run."""
    chance = random.Random(executor.__name__ + salt)
    drawn = filter(accept, random_cases(executor(), Cases(), chance, TRIES))
    found = list(islice(drawn, number))
    assert len(found) == number, f"{executor.__name__} suits {len(found)} of {TRIES} calls"
    return sorted(found, key=lambda case: case.key)
