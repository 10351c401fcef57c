"""Posts and waits of every notify are as many."""

import pytest

from hccl_py.enums import POST, WAIT
from hccl_py.errors import DeadlockError, OrchestrationError
from hccl_py.program.balance import check_balance
from tests.recording import BY_NAME, SAMPLES, op_of, recorded, without


@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_recorded_right_is_balanced(name: str) -> None:
    program = recorded(name, op_of(str(BY_NAME[name].op)), 4)
    check_balance(program)
    assert "tasks" not in vars(program), "nothing is expanded"


@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [(POST, DeadlockError, "can never go on"), (WAIT, OrchestrationError, "Unmatched post")],
)
def test_one_post_or_wait_less_is_found(kind: int, error: type[Exception], words: str) -> None:
    program = recorded("AllReduceComm", op_of("all_reduce"), 4)
    batch = program.batches[0]
    last = next(i for i in reversed(batch.instructions) if i.kind == kind)
    with pytest.raises(error, match=words):
        check_balance(without(program, lambda i: i is last))
