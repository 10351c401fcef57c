"""What cannot be recorded: errors that name the author's line, the stream or the field."""

from typing import Any

import numpy as np
import pytest

from hccl_py.enums import Buffer, Mode
from hccl_py.errors import NotSupportedError, OrchestrationError, TooManyTasksError
from hccl_py.orchestration import Region, recorder
from hccl_py.plugins.executor import PlaneRequest, ResourceRequest
from hccl_py.topology import topology_of
from hccl_py.verifier.sweeps.sweep import verify_executor
from tests.orchestration.authors import MeshAuthor
from tests.recording import op_of, recorded

SLICE, BOUNDS, CHANNEL = "SLICE_LEN_MISMATCH", "OUT_OF_BOUNDS", "UNDECLARED_CHANNEL"
STREAM, EXPORT, NOTIFY = "UNDECLARED_STREAM", "REMOTE_NOT_EXPORTED", "NOTIFY_INDEX_OUT_OF_RANGE"
region: Any = Region
plane: Any = PlaneRequest


def failing(body: Any, **attributes: Any) -> OrchestrationError:
    """Record an executor with this body and return the error."""
    orchestrate = lambda self, op, rank: body(rank)  # noqa: E731
    executor = type("Failing", (MeshAuthor,), {**attributes, "orchestrate": orchestrate})
    with pytest.raises(OrchestrationError) as caught:
        recorded(executor, op_of("all_gather", 100), 4)
    error = caught.value
    assert "Failing.orchestrate" in error.message
    assert error.line.startswith("orchestration/test_record_refusals.py:")
    assert error.line in error.message
    assert error.ranks in ((0, 1, 2, 3), (0,), (1,), (2,), (3,))
    assert f"rank{'s 0 to 3' if len(error.ranks) > 1 else f' {error.ranks[0]}'}" in error.message
    return error


@pytest.mark.parametrize(
    ("body", "finding", "words"),  # one defect a line
    [
        (lambda r: r.main.copy(r.ccl_in.head(8), r.ccl_out.head(9)), SLICE, "9 bytes"),
        (lambda r: r.main.copy(r.user_out, r.ccl_out.split(3)), SLICE, "3 pieces cannot be"),
        (lambda r: r.main.copy(r.ccl_in, 3), "", "a list of Regions, not 3"),
        (lambda r: r.main.copy([0, 1], r.user_out), "", "a list of Regions, not [0, 1]"),
        (lambda r: r.main.copy(Region(9, 0, 8), r.ccl_in.head(8)), BOUNDS, "is no memory of"),
        (lambda r: r.main.copy(region(2, 0.5, 8), r.ccl_in.head(8)), BOUNDS, "is no memory of"),
        (lambda r: r.ccl_in[r.id], "", "cut in bytes"),
        (lambda r: r.user_in[0:8][4:12], BOUNDS, "bytes 4 to 12 of a region of 8 in IN"),
        (lambda r: r.user_out[r.size], BOUNDS, "chunk 4 of 4"),
        (lambda r: r.scratch[:1], BOUNDS, "bytes 0 to 1 of a region of 0 in SCRATCH"),
        (lambda r: r.ccl_in.head(r.ccl_bytes + 1), BOUNDS, "1048577"),
        (lambda r: r.subs[0].copy(r.ccl_in, r.ccl_out), STREAM, "no sub stream 0: 0 were"),
        (lambda r: r.level0.fork().__enter__(), STREAM, "3 sub streams are needed, 0"),
        (lambda r: r.fork(-1).__enter__(), "", "-1 sub streams cannot be woken"),
        (lambda r: r.fork(0.5).__enter__(), "", "cannot be interpreted as an integer"),
        (lambda r: r.flat.right.remote(r.scratch), EXPORT, "exports CCL_IN and CCL_OUT"),
        (lambda r: r.flat.left.remote(r.flat.right.remote(r.ccl_in)), EXPORT, "already"),
        (lambda r: r.flat.right.remote(r.ccl_in.size), "", "a Region or Chunks, not 1048576"),
        (lambda r: r.flat.right.post(r.main, 0), NOTIFY, "requested: 0"),
        (lambda r: r.flat.right.wait(r.main, -1), NOTIFY, "Notify -1 of"),
        (lambda r: r.flat.right.wait(r.main, 0.5), "", "cannot be interpreted as an integer"),
        (lambda r: r.flat.right.tx_ack(0), "", "rank.main or one of rank.subs, not 0"),
        (lambda r: r.flat.right.tx_data_ack(0), "", "rank.main or one of rank.subs, not 0"),
        (lambda r: r.main.wait(0), "", "a notify is one of rank.notifies, not 0"),
        (lambda r: r.main.phase(3).__enter__(), "", "a label is a text, not 3"),
        (lambda r: r.flat.right.tx_data_ack(r.main), "", "no DataAck"),
        (lambda r: r.main.post(r.notifies[2]), NOTIFY, "no notify 2: 0"),
        (lambda r: r.main.reduce(r.ccl_in, r.ccl_out), "", "no reduce op"),
        (lambda r: r.main.reduce(r.ccl_in, r.ccl_out, "sum"), "", "ReduceOp.SUM, not 'sum'"),
        (lambda r: r.flat[r.id / 2], "", "use //"),
        (lambda r: r.flat[4], CHANNEL, "Plane flat has no member 4 of 4"),
        (lambda r: r.flat[r.id + 4], CHANNEL, "Plane flat has no member 7 of 4"),
        (lambda r: r.flat[r.id], CHANNEL, "copies are local"),
        (lambda r: r.flat[3], CHANNEL, "Rank 3 has no transport to rank 3"),
        (lambda r: np.arange(9)[r.id], "", "IndexError"),
        (lambda r: r.user_out[0:2], "", "use series(first, 1, k)"),
        (lambda r: r.ccl_in.split(0), "", "split into 0 chunks"),
        (lambda r: r.ccl_in.head(r.user_in.size / 2), "", "use // to divide"),
        (lambda r: r.ccl_in.split(4).series(0, 1, 5), BOUNDS, "5 chunks of 4"),
        (lambda r: r.main.compute(-1), "", "cannot take -1"),
        (lambda r: r.nonsense, "", "nonsense"),
        (lambda r: r.main.cpoy(r.ccl_in, r.ccl_out), "", "Did you mean copy"),
    ],
)
def test_impossible_recordings_name_the_line(body: Any, finding: str, words: str) -> None:
    error = failing(body)
    assert error.finding == finding
    assert words in str(error)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (lambda r: r.main.copy(r.ccl_in.head(8), r.ccl_out.head(9)), "of 8 (main, "),
        (lambda r: r.subs[1].copy(r.ccl_in.head(8), r.ccl_out.head(9)), "of 8 (sub 1, "),
        (lambda r: r.subs[0].copy(r.user_out, []), "(sub 0, "),
        (lambda r: r.subs[0].reduce(r.ccl_in, r.ccl_in), "(sub 0, "),
        (lambda r: r.subs[0].compute(-1), "(sub 0, "),
        (lambda r: r.subs[0].copy(*[r.flat.left.remote(r.ccl_in)] * 2), "(sub 0, "),
        (lambda r: r.flat.left.post(r.subs[0], 5), "(sub 0, "),
        (lambda r: r.flat.left.rx_data_ack(r.subs[0]), "(sub 0, "),
    ],
)
def test_impossible_recordings_name_the_stream(body: Any, words: str) -> None:
    assert words in failing(body, subs=2).message


@pytest.mark.parametrize(
    "use",
    [
        lambda r, stream, link: link.tx_ack(r.main),
        lambda r, stream, link: r.flat.right.rx_ack(stream),
        lambda r, stream, link: r.main.copy(link.remote(r.ccl_in), r.ccl_out),
    ],
)
def test_links_and_streams_of_another_attempt_are_refused(use: Any) -> None:
    kept: list[Any] = []

    class Keeps(MeshAuthor):
        def orchestrate(self, op: Any, rank: Any) -> None:
            kept.append((rank.main, rank.flat.right))
            use(rank, *kept[0])
            bool(rank.id == 0)  # ends the first attempt

    with pytest.raises(OrchestrationError, match=r"not of the same recording \(main, orch"):
        recorded(Keeps, op_of("all_gather"), 4)


def test_an_output_of_chunks_has_no_place_for_the_input() -> None:
    class Stages(MeshAuthor):
        def orchestrate(self, op: Any, rank: Any) -> None:
            rank.stage_in()

    with pytest.raises(OrchestrationError, match="takes an output of one region"):
        recorded(Stages, op_of("all_gather", mode=Mode.GRAPH), 4)


def test_a_link_that_was_not_requested() -> None:
    ring = (PlaneRequest("flat", "ring"),)
    error = failing(lambda r: r.flat[(r.id + 2) % 4], planes=ring)
    assert error.finding == "UNDECLARED_CHANNEL"
    assert "Rank 0 has no transport to rank 2" in error.message


def test_rdma_cannot_be_read() -> None:
    class Reads(MeshAuthor):
        def orchestrate(self, op: Any, rank: Any) -> None:
            rank.main.copy(rank.ccl_in, rank.flat.right.remote(rank.ccl_in))

    with pytest.raises(OrchestrationError, match="only write"):
        recorded(Reads, op_of("all_gather"), topology_of(servers=2, devices=1))


def test_one_end_over_rdma_is_refused() -> None:
    class Half(MeshAuthor):
        def resources(self, op: Any, rank: Any) -> ResourceRequest:
            return ResourceRequest((PlaneRequest("flat", "ring", rdma=bool(rank.id == 0)),))

    with pytest.raises(OrchestrationError, match="does not request the same") as caught:
        recorded(Half, op_of("all_gather"), 2)
    assert caught.value.finding == "RESOURCE_MISMATCH"


def test_ends_must_agree() -> None:
    class OneSided(MeshAuthor):
        def resources(self, op: Any, rank: Any) -> ResourceRequest:
            return ResourceRequest(self.planes if rank.id == 0 else ())

    with pytest.raises(OrchestrationError, match="does not request the same") as caught:
        recorded(OneSided, op_of("all_gather"), 3)
    error = caught.value
    assert (error.finding, error.ranks) == ("RESOURCE_MISMATCH", (0, 1))
    assert error.line.startswith("orchestration/test_record_refusals.py:")
    assert error.message.startswith("OneSided.resources: Rank 0 requests a transport to rank 1 on")
    assert error.message.endswith(f" ({error.line}).")


@pytest.mark.parametrize(
    ("plane", "words"),
    [
        (PlaneRequest("level7", "mesh"), "Did you mean level"),
        (PlaneRequest("flat", "rings"), "Did you mean ring"),
    ],
)
def test_unknown_planes_and_patterns_name_the_nearest(plane: PlaneRequest, words: str) -> None:
    with pytest.raises(OrchestrationError, match=words):
        recorded(type("Odd", (MeshAuthor,), {"planes": (plane,)}), op_of("all_gather"))


def test_more_links_than_memory_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hccl_py.orchestration.fabric.MAX_ENDS", 11)
    with pytest.raises(NotSupportedError, match="of 4 ranks are more than 11 transport ends"):
        recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather"), 4)


@pytest.mark.parametrize(
    ("returned", "words"),
    [(3, "returned a int"), (iter(""), "returned a str_"), (type, "returned a type")],
)
def test_orchestrate_returns_nothing(returned: Any, words: str) -> None:
    class Returns(MeshAuthor):
        def orchestrate(self, op: Any, rank: Any) -> Any:
            return returned

    with pytest.raises(OrchestrationError, match=words) as caught:
        recorded(Returns, op_of("all_gather"))
    assert "Returns.orchestrate, ranks 0 to 3: returned a " in caught.value.message
    assert caught.value.message.endswith(f"({caught.value.line}).")


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"planes": plane("flat", "mesh")}, "planes is a PlaneRequest"),
        ({"planes": ("flat",)}, "planes holds a str"),
        ({"planes": (plane("flat", None),)}, "names no plane or no pattern"),
        ({"planes": (plane("flat", "mesh", "CCL_In"),)}, "memory 'CCL_In' is none"),
        ({"planes": (plane("flat", "mesh", extra_notifies=-5),)}, "extra_notifies is -5"),
        ({"planes": (plane("flat", lambda i, n: 1 // 0),)}, "raised ZeroDivisionError"),
        ({"planes": (plane("flat", lambda i, n: 1),)}, "raised TypeError"),
        ({"planes": (plane("flat", lambda i, n: [i]),)}, "to itself"),
        ({"subs": 100_000}, "sub_streams is 100000"),
        ({"subs": 1.5}, "sub_streams is 1.5"),
        ({"scratch": 1 << 50}, "scratch_bytes is"),
        (
            {
                "planes": (
                    plane("flat", "ring"),
                    plane("flat", "mesh", Buffer.SCRATCH),
                )
            },
            "Two requests of rank 0 for plane flat both reach rank 1",
        ),
        (
            {"planes": (plane("flat", "ring"), plane("flat", "mesh"))},
            "Two requests of rank 0 for plane flat both reach rank 1",
        ),
    ],
)
def test_wrong_requests_name_the_field(attributes: dict[str, Any], words: str) -> None:
    with pytest.raises(OrchestrationError, match=words) as caught:
        recorded(type("Odd", (MeshAuthor,), attributes), op_of("all_gather"))
    assert caught.value.line.startswith("orchestration/authors.py:")
    assert "Odd.resources" in caught.value.message
    assert caught.value.message.endswith(f"({caught.value.line}).")


def test_planes_with_the_same_members_are_the_way_out() -> None:
    twice = {"planes": (plane("flat", "ring"), plane("flat", lambda i, n: [i - 1, i + 1]))}
    with pytest.raises(OrchestrationError, match="share one transport") as caught:
        recorded(type("Odd", (MeshAuthor,), twice), op_of("all_gather"))
    assert "another plane with the same members (" in caught.value.hint
    assert "back" in caught.value.hint
    apart = {"planes": (plane("flat", "mesh"), plane("back", "ring"))}
    transports = recorded(type("Fine", (MeshAuthor,), apart), op_of("all_gather")).transports
    assert len(transports.rank) == 4 * (3 + 2)


def test_extra_notifies_may_differ_only_where_both_ends_agree() -> None:
    class Uneven(MeshAuthor):
        def resources(self, op: Any, rank: Any) -> ResourceRequest:
            return ResourceRequest((PlaneRequest("flat", "mesh", extra_notifies=rank.id + 1),))

    with pytest.raises(OrchestrationError, match="does not request the same"):
        recorded(Uneven, op_of("all_gather"), 3)


def test_a_buffer_too_small_for_one_element() -> None:
    with pytest.raises(OrchestrationError, match="not move even one element") as caught:
        recorded("AllGatherComm", op_of("all_gather"), 4, ccl_bytes=256)
    assert caught.value.line.startswith("hccl_executors/flat.py:")
    assert caught.value.ranks == (0, 1, 2, 3)


def test_an_author_who_exits_ends_the_recording_only() -> None:
    class Leaves(MeshAuthor):
        def orchestrate(self, op: Any, rank: Any) -> None:
            raise SystemExit(0)

    with pytest.raises(OrchestrationError, match="SystemExit: 0"):
        recorded(Leaves, op_of("all_gather"), 2)


def test_a_loop_without_an_end_is_found_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(MeshAuthor):
        def orchestrate(self, op: Any, rank: Any) -> None:
            while True:
                rank.main.compute(1)

    monkeypatch.setattr(recorder, "MOST_TASKS", 1000)
    with pytest.raises(TooManyTasksError) as caught:
        recorded(Endless, op_of("all_gather"))
    assert "A rank has more than 1000 tasks, in round 1 of 1" in caught.value.message
    assert caught.value.line.startswith("orchestration/test_record_refusals.py:")
    began = []

    class Sees(Endless):
        def orchestrate(self, op: Any, rank: Any) -> None:
            began.append(op)
            super().orchestrate(op, rank)

    with pytest.raises(TooManyTasksError):
        verify_executor(Sees())
    assert len(began) == 1  # of all cases of a sweep


def test_very_many_rounds_are_refused_after_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    class Rounds(MeshAuthor):
        def resources(self, op: Any, rank: Any) -> ResourceRequest:
            return ResourceRequest(max_count=1)

        def orchestrate(self, op: Any, rank: Any) -> None:
            rank.main.compute(1)
            rank.main.compute(1)

    monkeypatch.setattr(recorder, "MOST_TASKS", 1000)
    assert recorded(Rounds, op_of("all_gather", 500)).rounds == 500
    with pytest.raises(TooManyTasksError) as caught:
        recorded(Rounds, op_of("all_gather", 1_800_000))
    message = caught.value.message
    assert "1800000 rounds of 2 tasks a rank are more than 1000 tasks" in message
    assert "about 0.01 hours" in message
