"""The backend with unusual tensors, and with many groups and messages, in four processes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.torch import corners
from tests.torch.conftest import Ranks

MOST_FUNCTIONS = 75
"""Functions of a call that has been made before; laying its arrays out takes as many again."""


@pytest.mark.parametrize(
    "program",
    [
        corners.unusual_types,
        corners.lazy_tensors,
        corners.outputs_that_do_not_fit,
        corners.in_its_own_slot,
        corners.shapes,
        corners.nothing,
        corners.averages_and_inference,
        corners.folded_parts,
        corners.large_objects,
        corners.waited_for_elsewhere,
        corners.many_messages,
        corners.any_source_among_others,
        corners.buffers_of_messages,
        corners.groups_come_and_go,
        corners.a_group_that_is_let_go,
        corners.calls_made_again,
        corners.an_exit_in_the_worker,
    ],
    ids=lambda program: program.__name__,
)
def test_corner(ranks: Ranks, program: Callable[[int, int], None]) -> None:
    ranks.run(program)


def test_a_call_that_is_made_again_is_not_laid_out_again(ranks: Ranks) -> None:
    """What a call costs beside its data is Python's functions: dataclasses' replace among them, of
    which one that is laid out makes several.
    """
    for entered in ranks.run(corners.functions_of_a_repeated_call):
        assert all(0 < number <= MOST_FUNCTIONS for number in entered.values()), entered
