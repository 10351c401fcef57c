"""Streams: labels end with their block, kernels may take no time at all."""

from typing import Any

import pytest

from hccl_py.enums import TaskKind
from hccl_py.errors import OrchestrationError
from hccl_py.plugins.executor import ResourceRequest
from hccl_py.program.program import Program
from tests.orchestration.authors import Author
from tests.recording import op_of, recorded

ALONE = ResourceRequest()


def program_of(body: Any) -> Program:
    return recorded(Author(body, ALONE), op_of("all_gather"), 2)


def labels(program: Program) -> list[str]:
    """Return the label of every task of rank 0."""
    tasks = program.tasks
    numbers = tasks.table.label[tasks.instruction][tasks.rank == 0].tolist()
    return [program.labels[number] if number >= 0 else "" for number in numbers]


def test_a_label_ends_with_its_block() -> None:
    def body(rank: Any) -> None:
        rank.main.compute(1)
        with rank.main.phase("outer"):
            rank.main.compute(1)
            with rank.main.phase("inner"):
                rank.main.compute(1)
            rank.main.compute(1)
        rank.main.compute(1)

    assert labels(program_of(body)) == ["", "outer", "inner", "outer", ""]


def test_a_label_ends_with_its_block_where_that_raises() -> None:
    def body(rank: Any) -> None:
        try:
            with rank.main.phase("tried"):
                rank.main.compute(1)
                raise KeyError
        except KeyError:
            rank.main.compute(1)

    assert labels(program_of(body)) == ["tried", ""]


def test_steps_are_counted_from_one_and_end() -> None:
    def body(rank: Any) -> None:
        for step in rank.main.steps("go", 2):
            rank.main.compute(step)
        rank.main.compute(5)

    assert labels(program_of(body)) == ["go 1/2", "go 2/2", ""]


def test_a_kernel_may_take_no_time() -> None:
    program = program_of(lambda rank: rank.main.compute(0))
    tasks = program.tasks
    assert tasks.kind.tolist() == [TaskKind.COMPUTE] * 2
    assert tasks.table.duration_us[tasks.instruction].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("duration", [-1, -1e-9, float("inf"), float("nan")])
def test_no_kernel_takes_less_or_forever(duration: float) -> None:
    with pytest.raises(OrchestrationError, match=r"A kernel cannot take .* microseconds"):
        program_of(lambda rank: rank.main.compute(duration))
