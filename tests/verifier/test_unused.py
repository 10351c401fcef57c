"""Requests that nobody uses."""

from typing import Any

import pytest

from hccl_py.enums import Buffer
from hccl_py.plugins.executor import PlaneRequest, ResourceRequest
from hccl_py.verifier.checks.unused import find_unused
from hccl_py.verifier.classes import Severity
from tests.verifier.programs import FILE, MESH, authored, found, names, written

COPY = ["copy", ["IN", 0, 64], ["OUT", 0, 64]]


def idle(rank: Any) -> None:
    """Record nothing."""


def message(request: ResourceRequest, body: Any = idle, topology: int = 4) -> list[str]:
    """Return what is found when an author requests something."""
    return [f.message for f in found(find_unused, authored(body, request, topology=topology))]


def test_a_request_of_all_ranks_is_one_hint() -> None:
    (finding,) = found(find_unused, authored(idle, ResourceRequest(scratch_bytes=64), topology=4))
    assert finding.name == "RESOURCE_UNUSED"
    assert finding.severity is Severity.HINT
    assert finding.ranks == (0, 1, 2, 3)
    assert finding.message == "ranks 0 to 3 request 64 bytes of scratch each and use none."
    assert finding.hint == "Leave ResourceRequest.scratch_bytes out where nothing lies there."


def test_streams_and_notifies_are_told_apart() -> None:
    assert message(ResourceRequest(sub_streams=2)) == [
        "ranks 0 to 3 request 2 sub streams each and use none: at rank 0, sub 0 has no task.",
        "ranks 0 to 3 request 4 notifies between streams each and use none.",
    ]
    assert message(ResourceRequest(notifies=2)) == [
        "ranks 0 to 3 request 2 notifies between streams each and use none."
    ]


def test_the_stream_without_a_task_is_named() -> None:
    def body(rank: Any) -> None:
        with rank.fork(1) as (sub,):
            sub.copy(rank.user_out.head(0), rank.user_in.head(0))

    found_here = message(ResourceRequest(sub_streams=2), body, topology=1)
    assert found_here == [
        "rank 0 requests 2 sub streams and uses 1: sub 1 has no task.",
        "rank 0 requests 4 notifies between streams and uses 2.",
    ]
    assert not message(ResourceRequest(sub_streams=1), body)


def test_ranks_that_differ_are_told_apart() -> None:
    def body(rank: Any) -> None:
        if rank.id % 2:
            rank.main.copy(rank.scratch, rank.user_in.head(64))

    (finding,) = message(ResourceRequest(scratch_bytes=64), body, topology=5)
    assert finding == "ranks 0, 2 and 4 request 64 bytes of scratch each and use none."


def test_scratch_counts_as_used_by_whoever_touches_it_even_with_nothing() -> None:
    memories = (Buffer.USER_OUT, Buffer.SCRATCH)
    request = ResourceRequest((PlaneRequest("flat", "mesh", *memories),), scratch_bytes=64)

    def remote(rank: Any) -> None:
        rank.main.copy(rank.flat.right.remote(rank.scratch), rank.user_in.head(64))

    def empty(rank: Any) -> None:
        rank.main.copy(rank.scratch.head(0), rank.user_in.head(0))
        remote(rank)

    assert not message(request, remote, topology=2)
    assert not message(request, empty, topology=2)


def test_a_transport_that_neither_end_uses_is_found() -> None:
    def body(rank: Any) -> None:
        rank.main.copy(rank.flat.right.remote(rank.ccl_in), rank.ccl_out)

    assert message(MESH, body) == [
        "ranks 0 to 3 request 3 transports each and use 2: "
        "at rank 0, nothing goes to or from rank 2."
    ]
    assert not message(MESH, body, topology=3)


def test_a_transport_is_used_when_the_other_end_does() -> None:
    read = ["read", 1, ["CCL_OUT", 0, 64], ["OUT", 0, 64]]
    both = {"0": {"channel_notifies": {"1": 3}}, "1": {"channel_notifies": {"0": 3}}}
    assert not found(find_unused, written({"0": {"0": [read]}}, resources=both))
    (finding,) = found(find_unused, written({"0": {"0": [COPY]}}, resources=both))
    assert finding.message.startswith("ranks 0 and 1 request 1 transport each and use none: at")


def test_extra_notifies_of_a_transport_are_counted_own_ones_are_not() -> None:
    request = ResourceRequest((PlaneRequest("flat", "mesh", extra_notifies=2),))

    def body(used: int) -> Any:
        def record(rank: Any) -> None:
            for index in range(used):
                rank.flat.right.post(rank.main, index)
            rank.flat.right.tx_ack(rank.main)

        return record

    assert message(request, body(1), topology=2) == [
        "ranks 0 and 1 request 2 extra notifies of transports each and use 1."
    ]
    assert not message(request, body(2), topology=2)
    assert message(request, topology=2) == [
        "ranks 0 and 1 request 1 transport each and use none: "
        "at rank 0, nothing goes to or from rank 1."
    ]


def test_notifies_beyond_the_request_do_not_use_it_up() -> None:
    tasks = {"0": {"0": [["post", 1, 5], ["local_post", 0, 5]]}}
    resources = {
        "0": {"local_notifies": {"0": 1}, "channel_notifies": {"1": 4}},
        "1": {"channel_notifies": {"0": 4}},
    }
    findings = found(find_unused, written(tasks, resources=resources))
    assert [f.message for f in findings] == [
        "rank 0 requests 1 notify between streams and uses none.",
        "ranks 0 and 1 request 1 extra notify of a transport each and use none.",
    ]


def test_a_file_is_held_to_what_it_states() -> None:
    tasks = {"0": {"0": [COPY, ["local_wait", 0]]}}
    resources = {"0": {"streams": 2, "local_notifies": {"0": 2, "5": 1}}}
    findings = found(find_unused, written(tasks, resources=resources))
    assert [f.message for f in findings] == [
        "rank 0 requests 1 sub stream and uses none: sub 0 has no task.",
        "rank 0 requests 3 notifies between streams and uses 1.",
    ]
    assert not found(find_unused, written(tasks))


@pytest.mark.parametrize("name", ["SCRATCH", "TEMP"])
def test_only_scratch_of_a_file_is_a_request(name: str) -> None:
    buffers = {"0": {**FILE["buffers"]["0"], name: 32}, "1": {}}
    findings = found(find_unused, written({}, buffers=buffers))
    assert [f.message for f in findings] == [
        "rank 0 requests 32 bytes of scratch and uses none."
    ] * (name == "SCRATCH")


def test_many_different_ranks_are_eight_hints_and_a_number() -> None:
    resources = {str(rank): {"streams": rank + 2} for rank in range(20)}
    buffers = {str(rank): FILE["buffers"]["0"] for rank in range(20)}
    findings = found(find_unused, written({}, ranks=20, buffers=buffers, resources=resources))
    assert [finding.more for finding in findings] == [0] * 7 + [12]


def test_what_no_resources_state_is_requested_as_it_is_used() -> None:
    """Stream 2 without stream 1, notify 1 without notify 0: nobody has asked for the others."""
    tasks = {"0": {"0": [["local_post", 2, 1]], "2": [["local_wait", 1]]}}
    assert names(find_unused, written(tasks)) == []
    resources = {"0": {"streams": 3, "local_notifies": {"2": 2}}}
    assert names(find_unused, written(tasks, resources=resources)) == ["RESOURCE_UNUSED"] * 2
