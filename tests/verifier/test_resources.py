"""What is used without a request, and requests that disagree: only files can say it."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hccl_py.formats import from_json
from hccl_py.plugins.executor import ResourceRequest
from hccl_py.verifier import verify_program
from hccl_py.verifier.checks.resources import find_resources
from hccl_py.verifier.finding import TaskAt
from tests.verifier.programs import FILE, MESH, authored, found, names, written

COPY = ["copy", ["IN", 0, 64], ["OUT", 0, 64]]
READ = ["read", 1, ["CCL_OUT", 0, 64], ["OUT", 0, 64]]


def requested(tasks: dict[str, Any], **resources: Any) -> Any:
    """Return a program whose rank 0 states what it requests."""
    return written(tasks, resources={"0": resources})


def test_a_stream_that_was_never_requested_is_found_once() -> None:
    tasks = {"0": {"0": [COPY], "1": [COPY], "3": [COPY, COPY]}}
    (finding,) = found(find_resources, requested(tasks, streams=3))
    assert finding.name == "UNDECLARED_STREAM"
    assert finding.message == (
        "2 tasks run on rank 0 sub 2, but rank 0 requested 2 sub streams: sub 0 to sub 1."
    )
    assert finding.hint.startswith("Request 3: ResourceRequest(sub_streams=3)")
    assert '"streams": 4' in finding.hint
    assert finding.tasks == (TaskAt(0, 3, 0),)
    assert not found(find_resources, requested(tasks, streams=4))
    assert not found(find_resources, written(tasks))


@pytest.mark.parametrize(("streams", "words"), [(1, "main is all it has"), (2, "sub 0")])
def test_the_streams_that_exist_are_named(streams: int, words: str) -> None:
    program = requested({"0": {"2": [COPY]}}, streams=streams)
    (finding,) = found(find_resources, program)
    assert finding.message.startswith("a task runs on rank 0 sub 1, but rank 0 requested ")
    assert finding.message.endswith(f": {words}.")


def test_a_notify_of_a_stream_that_does_not_exist_is_about_the_stream() -> None:
    tasks = {"0": {"0": [["local_post", 2, 0]]}}
    (finding,) = found(find_resources, requested(tasks, streams=2, local_notifies={"0": 1}))
    assert finding.name == "UNDECLARED_STREAM"
    assert finding.message == (
        "rank 0 main task 0 posts notify 0 of sub 1, but rank 0 requested 1 sub stream: sub 0."
    )
    assert not found(find_resources, written(tasks))


def test_a_local_notify_beyond_the_request_is_found_at_post_and_wait() -> None:
    tasks = {"0": {"0": [["local_post", 1, 2]], "1": [["local_wait", 2]]}}
    post, wait = found(find_resources, requested(tasks, streams=2, local_notifies={"1": 2}))
    assert post.name == wait.name == "NOTIFY_INDEX_OUT_OF_RANGE"
    assert post.message == (
        "rank 0 main task 0 posts notify 2 of sub 0, "
        "but rank 0 requested 2 notifies for that stream."
    )
    assert wait.tasks == (TaskAt(0, 1, 0),)
    assert post.hint.startswith("Request 3 (ResourceRequest(notifies=...)")
    assert not found(find_resources, requested(tasks, streams=2, local_notifies={"1": 3}))
    assert not found(find_resources, requested(tasks, streams=2))


def test_a_stream_without_notifies_has_none() -> None:
    tasks = {"0": {"0": [["local_wait", 0]]}}
    (finding,) = found(find_resources, requested(tasks, local_notifies={}))
    assert "but rank 0 requested 0 notifies for that stream." in finding.message


def test_a_notify_of_a_transport_beyond_the_request_is_found() -> None:
    tasks = {"0": {"0": [["post", 1, 0], ["post", 1, 2]]}, "1": {"0": [["wait", 0, 0]]}}
    both = {"0": {"channel_notifies": {"1": 2}}, "1": {"channel_notifies": {"0": 2}}}
    (finding,) = found(find_resources, written(tasks, resources=both))
    assert finding.name == "NOTIFY_INDEX_OUT_OF_RANGE"
    assert finding.message == (
        "rank 0 main task 1 posts DataAck of rank 1: that is notify 2 of the transport "
        "between ranks 0 and 1, but 2 notifies were requested there."
    )
    assert finding.ranks == (0, 1)
    (finding,) = found(find_resources, requested(tasks, channel_notifies={"1": 1}))
    assert finding.message.endswith("but 1 notify was requested there.")
    # One request is enough: what the other rank leaves out agrees with it.
    for rank, resources in both.items():
        program = written(tasks, resources={rank: resources})
        assert names(find_resources, program) == ["NOTIFY_INDEX_OUT_OF_RANGE"]
    assert not found(find_resources, requested(tasks, channel_notifies={"1": 3}))
    assert not found(find_resources, written(tasks))


def test_a_transport_that_was_never_requested_is_found_once_for_each_end() -> None:
    tasks = {"0": {"0": [READ, READ, ["post", 1, 0]]}, "1": {"0": [["wait", 0, 0]]}}
    (finding,) = found(find_resources, requested(tasks, channel_notifies={}))
    assert finding.name == "UNDECLARED_CHANNEL"
    assert finding.message == (
        "rank 0 main task 0 reads rank 1's CCL_Out[0:64] to rank 0's user_out[0:64], but "
        "rank 0 never requested the transport to rank 1 on plane flat."
    )
    assert finding.ranks == (0, 1)
    neither: dict[str, Any] = {"0": {"channel_notifies": {}}, "1": {"channel_notifies": {}}}
    mine, theirs = found(find_resources, written(tasks, resources=neither))
    assert mine == finding
    assert theirs.message.startswith("rank 1 main task 0 waits for Ack from rank 0, but rank 1")
    assert not found(find_resources, requested(tasks, channel_notifies={"1": 3}))


def test_a_peer_without_a_link_is_a_transport_that_was_never_requested() -> None:
    form = {key: value for key, value in FILE.items() if key not in ("link", "exported")}
    tasks = {"0": {"0": [READ, ["post", 1, 0]]}}
    program = from_json(json.dumps({**form, "links": [], "tasks": tasks}))
    (finding,) = verify_program(program).of_class("UNDECLARED_CHANNEL")
    assert finding.message == (
        "rank 0 main task 0 reads rank 1's CCL_Out[0:64] to rank 0's user_out[0:64], but "
        "rank 0 never requested the transport to rank 1 on plane flat."
    )
    assert finding.hint.endswith("links or channel_notifies in a program file.")
    assert not verify_program(program).of_class("REMOTE_NOT_EXPORTED")


def test_a_transport_that_only_one_end_requested_is_a_mismatch() -> None:
    tasks = {"0": {"0": [READ]}}
    (finding,) = found(
        find_resources,
        written(
            tasks,
            resources={"0": {"channel_notifies": {"1": 2}}, "1": {"channel_notifies": {}}},
        ),
    )
    assert finding.name == "RESOURCE_MISMATCH"
    assert finding.message == (
        "rank 0 counts on the transport on plane flat to rank 1, which never requested it."
    )
    assert finding.tasks == (TaskAt(0, 0, 0),)
    assert finding.ranks == (0, 1)
    silent = written(tasks, resources={"1": {"channel_notifies": {}}})
    assert names(find_resources, silent) == ["RESOURCE_MISMATCH"]


def test_ends_that_were_requested_with_different_numbers_are_a_mismatch() -> None:
    tasks = {"0": {"0": [["post", 1, 0]]}, "1": {"0": [["wait", 0, 0]]}}
    theirs = {"1": {"channel_notifies": {"0": 3}}}
    program = written(tasks, resources={"0": {"channel_notifies": {"1": 2}}, **theirs})
    (finding,) = found(find_resources, program)
    assert finding.name == "RESOURCE_MISMATCH"
    assert finding.message == (
        "rank 0 requested the transport on plane flat to rank 1 with 2 notifies, rank 1 with 3."
    )
    assert finding.tasks == (TaskAt(1, 0, 0), TaskAt(0, 0, 0))
    alike = written(tasks, resources={"0": {"channel_notifies": {"1": 3}}, **theirs})
    assert not found(find_resources, alike)


def test_ends_of_different_kinds_are_a_mismatch() -> None:
    program = written({"0": {"0": [READ]}})
    kind = np.array([0, 1], np.int8)
    program = replace(program, transports=replace(program.transports, kind=kind))
    (finding,) = found(find_resources, program)
    assert finding.message == (
        "rank 0 has the transport on plane flat to rank 1 as SDMA, rank 1 as RDMA."
    )


def test_a_hundred_mismatches_are_eight_and_a_number() -> None:
    peers = {str(rank): 2 for rank in range(1, 101)}
    theirs = {rank: {"channel_notifies": {"0": 1}} for rank in peers}
    program = written(
        {},
        ranks=101,
        buffers={str(rank): FILE["buffers"]["0"] for rank in range(101)},
        resources={"0": {"channel_notifies": peers}, **theirs},
    )
    findings = found(find_resources, program)
    assert [finding.more for finding in findings] == [0] * 7 + [92]


def test_what_an_author_records_is_requested() -> None:
    def body(rank: Any) -> None:
        with rank.flat.fork() as subs:
            for sub, _, link in subs:
                link.tx_ack(sub)
                link.rx_ack(sub)

    request = ResourceRequest(MESH.planes, sub_streams=2, notifies=9)
    assert not found(find_resources, authored(body, request, topology=3))


def test_a_notify_of_a_stream_with_tasks_is_found_with_its_tasks_only() -> None:
    tasks = {"0": {"0": [["local_post", 2, 0], ["local_post", 3, 0]], "2": [["local_wait", 0]]}}
    ran, posted = found(find_resources, requested(tasks, streams=1, local_notifies={}))
    assert ran.message.startswith("a task runs on rank 0 sub 1,")
    assert posted.message.startswith("rank 0 main task 1 posts notify 0 of sub 2,")


def test_resources_must_agree_with_links() -> None:
    form = {key: value for key, value in FILE.items() if key not in ("link", "exported")}
    link = {"id": 0, "ranks": [0, 1], "kind": "sdma", "exports": {}}
    for channels, expected in (({}, 1), ({"1": 2}, 1), ({"1": 3}, 0)):
        document = {**form, "links": [link], "resources": {"0": {"channel_notifies": channels}}}
        program = from_json(json.dumps(document))
        assert names(find_resources, program) == ["RESOURCE_MISMATCH"] * expected
