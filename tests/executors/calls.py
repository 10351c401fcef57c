"""Some calls of an executor's sweep, drawn at random: other ones for every executor and test."""

import random
from collections.abc import Callable
from itertools import islice

from hccl_py.plugins.executor import Executor
from hccl_py.verifier.sweeps.cases import Case, Cases
from hccl_py.verifier.sweeps.space import random_cases

__all__ = ["some_calls"]

TRIES = 20_000
"""Choices to draw: those executors that suit least take one in forty."""


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
