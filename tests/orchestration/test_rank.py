"""What a rank hands out: streams and notifies, as many as were requested."""

from typing import Any

import pytest

from hccl_py.enums import TaskKind
from hccl_py.errors import OrchestrationError
from hccl_py.plugins.executor import ResourceRequest
from hccl_py.program.program import Program
from tests.orchestration.authors import Author
from tests.recording import op_of, recorded


def forked(subs: int, notifies: int | None) -> Program:
    def body(rank: Any) -> None:
        with rank.fork() as streams:
            assert len(streams) == subs

    request = ResourceRequest(sub_streams=subs, notifies=notifies)
    return recorded(Author(body, request), op_of("all_gather"), 2)


@pytest.mark.parametrize(("subs", "notifies"), [(2, 3), (2, 2), (3, 5), (1, 1), (1, 0)])
def test_a_fork_needs_two_notifies_for_every_sub_stream(subs: int, notifies: int) -> None:
    words = f"{subs} sub streams need {2 * subs} notifies, {notifies} were requested"
    with pytest.raises(OrchestrationError, match=words) as error:
        forked(subs, notifies)
    assert error.value.finding == "NOTIFY_INDEX_OUT_OF_RANGE"


@pytest.mark.parametrize("notifies", [None, 4, 5])
def test_two_notifies_for_every_sub_stream_are_enough(notifies: int | None) -> None:
    kinds = forked(2, notifies).tasks.kind.tolist()
    assert kinds.count(TaskKind.NOTIFY_POST) == kinds.count(TaskKind.NOTIFY_WAIT) == 2 * 4


@pytest.mark.parametrize("index", [2, -3])
def test_what_was_not_requested_is_not_handed_out(index: int) -> None:
    request = ResourceRequest(sub_streams=2)
    with pytest.raises(OrchestrationError, match=f"There is no sub stream {index}: 2 were"):
        recorded(Author(lambda rank: rank.subs[index], request), op_of("all_gather"), 2)
