"""What a product's hardware takes; nothing is judged without a product."""

from dataclasses import replace
from typing import Any

import pytest

from hccl_py.enums import DataType, Mode, ReduceOp
from hccl_py.orchestration import exchange
from hccl_py.plugins.executor import PlaneRequest, ResourceRequest
from hccl_py.topology import topology_of
from hccl_py.verifier.checks.hardware import find_hardware
from hccl_py.verifier.classes import Severity
from hccl_py.verifier.finding import TaskAt
from hccl_py.verifier.sweeps.cases import Cases
from hccl_py.verifier.sweeps.sweep import verify_executor
from tests.recording import BY_NAME, SAMPLES, op_of, recorded
from tests.verifier.programs import MESH, PRODUCT, authored, found, names, written

GIB = 1 << 30
LARGE = dict.fromkeys(("IN", "OUT", "CCL_IN", "CCL_OUT"), 9 * GIB)


def large(task: list[Any], link: str = "sdma") -> Any:
    """Return a program of one task, in buffers of 9 GiB."""
    return written({"0": {"0": [task]}}, link=link, buffers={"0": LARGE, "1": LARGE})


def moved(kind: list[Any], size: int) -> list[Any]:
    """Return a task that moves bytes from CCL_OUT to CCL_OUT or CCL_IN."""
    local = kind[0] in ("copy", "reduce")
    return [*kind, ["CCL_OUT", 0, size], ["CCL_IN" if local else "CCL_OUT", 0, size]]


def test_a_task_beyond_sdma_names_both_numbers() -> None:
    (finding,) = found(find_hardware, large(moved(["copy"], 4 * GIB + 4)), product=PRODUCT)
    assert finding.name == "TRANSFER_TOO_LARGE"
    assert finding.message == (
        "rank 0 main task 0 copies rank 0's CCL_Out[0:4294967300] to rank 0's "
        "CCL_In[0:4294967300]: 4294967300 bytes, but one SDMA task of Atlas 800T A2 moves at most "
        "4294967296."
    )
    assert finding.tasks == (TaskAt(0, 0, 0),)


@pytest.mark.parametrize(
    ("kind", "link", "most"),
    [
        (["copy"], "sdma", 4 * GIB),
        (["reduce", "sum"], "sdma", 4 * GIB),
        (["read", 1], "sdma", 4 * GIB),
        (["write", 1], "sdma", 4 * GIB),
        (["write_reduce", 1, "sum"], "sdma", 4 * GIB),
        (["write", 1], "rdma", 2 * GIB),
        (["write_reduce", 1, "sum"], "rdma", 2 * GIB),
        (["copy"], "rdma", 4 * GIB),
    ],
)
def test_the_largest_task_of_each_kind_is_fine(kind: list[Any], link: str, most: int) -> None:
    assert not found(find_hardware, large(moved(kind, most), link), product=PRODUCT)
    beyond = large(moved(kind, most + 4), link)
    assert names(find_hardware, beyond, product=PRODUCT) == ["TRANSFER_TOO_LARGE"]
    assert not found(find_hardware, beyond)


def test_a_local_reduction_by_a_kernel_has_no_limit() -> None:
    program = large([*moved(["reduce", "prod"], 8 * GIB), {"dtype": "fp64"}])
    assert not found(find_hardware, program, product=PRODUCT)


def test_an_author_can_move_too_much_at_once() -> None:
    def body(rank: Any) -> None:
        rank.main.copy(rank.user_out, rank.user_in)

    program = authored(body, op=op_of("all_reduce", GIB + 1), topology=1)
    assert names(find_hardware, program, product=PRODUCT) == ["TRANSFER_TOO_LARGE"]
    program = authored(body, op=op_of("all_reduce", GIB), topology=1)
    assert not found(find_hardware, program, product=PRODUCT)


@pytest.mark.parametrize(
    ("kind", "link"),
    [
        (["read_reduce", 1, "prod"], "sdma"),
        (["write_reduce", 1, "prod"], "sdma"),
        (["write_reduce", 1, "prod"], "rdma"),
    ],
)
def test_an_inline_reduction_that_the_hardware_lacks_is_found(kind: list[Any], link: str) -> None:
    program = written({"0": {"0": [moved(kind, 64)]}}, link=link)
    (finding,) = found(find_hardware, program, product=PRODUCT)
    assert finding.name == "UNSUPPORTED_INLINE_REDUCE"
    how = "over RDMA" if link == "rdma" else "while it copies"
    assert f"Atlas 800T A2 cannot reduce fp32 with prod {how}" in finding.message
    assert finding.message.endswith("only bf16, fp16, fp32, int16, int32, int8 with sum, max, min.")
    assert not found(find_hardware, program)
    summed = [{"prod": "sum"}.get(str(member), member) for member in kind]
    assert not found(
        find_hardware, written({"0": {"0": [moved(summed, 64)]}}, link=link), product=PRODUCT
    )
    empty = written({"0": {"0": [moved(kind, 0)]}}, link=link)
    assert not found(find_hardware, empty, product=PRODUCT)


def test_a_local_reduction_needs_no_inline_reduce() -> None:
    program = written({"0": {"0": [moved(["reduce", "prod"], 64)]}})
    assert not found(find_hardware, program, product=PRODUCT)


def test_an_author_can_forget_to_ask_for_inline_reduce() -> None:
    def forgetful(rank: Any) -> None:
        link = rank.flat.right
        rank.main.reduce(rank.ccl_in[0:64], link.remote(rank.ccl_out[0:64]))

    def careful(rank: Any) -> None:
        link, place = rank.flat.right, rank.ccl_in[0:64]
        exchange(rank.main, link, link, place, place, reduce=True)

    for op in (op_of("all_reduce", 32, "int64"), op_of("all_reduce", 32, reduce=ReduceOp.PROD)):
        findings = found(find_hardware, authored(forgetful, MESH, op), product=PRODUCT)
        assert [f.name for f in findings] == ["UNSUPPORTED_INLINE_REDUCE"] * 2
        assert findings[0].source is not None
        assert findings[0].source.startswith("verifier/test_hardware.py:")
        assert not found(find_hardware, authored(careful, MESH, op), product=PRODUCT)
    assert not found(find_hardware, authored(forgetful, MESH), product=PRODUCT)


@pytest.mark.parametrize(
    ("src", "dst", "words"),
    [
        (["CCL_OUT", 0, 128], ["OUT", 128, 128], ""),
        (["IN", 0, 1], ["OUT", 128, 1], ""),
        (["IN", 4, 0], ["OUT", 4, 0], ""),
        (["CCL_OUT", 0, 128], ["OUT", 64, 128], "the destination begins at byte 64, no multiple"),
        (["CCL_OUT", 1, 1], ["OUT", 0, 1], "the source begins at byte 1, no multiple"),
        (
            ["IN", 64, 127],
            ["OUT", 192, 127],
            "the source begins at byte 64 and the destination begins at byte 192, no multiples",
        ),
    ],
)
def test_slices_should_begin_at_multiples(src: list[Any], dst: list[Any], words: str) -> None:
    buffers = {rank: dict.fromkeys(("IN", "OUT", "CCL_OUT"), 512) for rank in ("0", "1")}
    for kind in (["copy"], ["reduce", "sum"], ["read", 1], ["write_reduce", 1, "max"]):
        program = written({"0": {"0": [[*kind, src, dst]]}}, buffers=buffers)
        findings = found(find_hardware, program, product=PRODUCT)
        assert [f.name for f in findings] == ["UNALIGNED"] * bool(words)
        for finding in findings:
            assert finding.severity is Severity.HINT
            assert finding.message.endswith(f": {words} of 128.")
            assert "multiples of 128 bytes" in finding.hint
        assert not found(find_hardware, program)
        wider = replace(PRODUCT, slice_align=1)
        assert not found(find_hardware, program, product=wider)


def test_one_line_that_is_not_aligned_is_one_hint() -> None:
    program = recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather", 1000), 4)
    findings = found(find_hardware, program, product=PRODUCT)
    assert [finding.name for finding in findings] == ["UNALIGNED"] * 3
    assert len({finding.source for finding in findings}) == 3
    assert all(str(finding.source).startswith("all_gather/") for finding in findings)
    # Parts of 4 000 bytes, of which those of ranks 1 to 3 begin off the alignment, in CCL_Out as in
    # the output: each is staged and copied once, and read three times.
    assert sorted(finding.more for finding in findings) == [3 - 1, 3 - 1, 9 - 1]


@pytest.mark.parametrize("name", sorted(set(SAMPLES) - {"AllReduceComm"}))
def test_counts_that_no_executor_can_align_are_no_advice(name: str) -> None:
    cases = Cases(ranks=(3, 4), dtypes=(DataType.INT8,), modes=(Mode.OP_BASE,))
    report = verify_executor(BY_NAME[name](), cases)
    assert not report.of_class("UNALIGNED")
    left_out = any("in some calls only left out" in note for note in report.notes)
    is_aligned = name == "AllReduceMeshOpbaseLoopExecutor"  # its chunks are multiples of 16 KiB
    assert left_out != is_aligned


def test_more_notifies_than_a_device_has() -> None:
    def body(rank: Any) -> None:
        """Record nothing."""

    few = replace(PRODUCT, notifies=8)
    request = ResourceRequest(MESH.planes, sub_streams=1)
    # Two local ones, and Ack and DataSignal of each of the three peers.
    program = authored(body, request, topology=4)
    assert not found(find_hardware, program, product=few)
    (finding,) = found(
        find_hardware, authored(body, replace(request, notifies=3), topology=4), product=few
    )
    assert finding.name == "RESOURCE_EXCEEDED"
    assert finding.message == (
        "ranks 0 to 3 need up to 9 notifies, those of transports included, "
        "but a device of Atlas 800T A2 has 8."
    )
    assert finding.ranks == (0, 1, 2, 3)
    between = topology_of(servers=4, devices=1)
    program = authored(body, request, topology=between)
    assert names(find_hardware, program, product=few) == ["RESOURCE_EXCEEDED"]
    assert not found(find_hardware, replace(program, engine="ccu"), product=few)  # registers
    extra = ResourceRequest((PlaneRequest("flat", "mesh", extra_notifies=1),))
    assert names(find_hardware, authored(body, extra, topology=4), product=few) == [
        "RESOURCE_EXCEEDED"
    ]


def test_a_file_with_more_notifies_than_a_device_has() -> None:
    for notifies, expected in ((8190, []), (8191, ["RESOURCE_EXCEEDED"])):
        resources = {"0": {"local_notifies": {"0": notifies}, "channel_notifies": {"1": 2}}}
        program = written({}, resources=resources)
        assert names(find_hardware, program, product=PRODUCT) == expected


def test_more_streams_than_a_device_has() -> None:
    for streams, expected in ((1984, []), (1985, ["RESOURCE_EXCEEDED"])):
        program = written({}, resources={"1": {"streams": streams}})
        findings = found(find_hardware, program, product=PRODUCT)
        assert [f.name for f in findings] == expected
        assert [f.message for f in findings] == [
            "rank 1 needs 1985 streams, main included, but a device of Atlas 800T A2 has 1984."
        ] * len(expected)


def test_the_tasks_of_one_round_are_one_graph() -> None:
    copy = ["copy", ["IN", 0, 64], ["OUT", 0, 64]]
    small = replace(PRODUCT, contexts=3)
    rounds = [[*copy, {"round": k}] for k in (0, 0, 0, 1, 1)]
    assert not found(find_hardware, written({"0": {"0": rounds}}), product=small)
    more = {"0": {"0": rounds, "1": [[*copy, {"round": 1}]] * 2}}
    (finding,) = found(find_hardware, written(more), product=small)
    assert finding.message == (
        "rank 0 needs 4 tasks in one round, but one FFTS graph of Atlas 800T A2 holds 3."
    )


def test_more_memory_than_a_device_has_besides_the_users() -> None:
    program = written({"0": {"0": [moved(["copy"], 64)]}})
    assert not found(find_hardware, program, product=replace(PRODUCT, memory_bytes=256))
    (finding,) = found(find_hardware, program, product=replace(PRODUCT, memory_bytes=255))
    assert finding.message == (
        "ranks 0 and 1 need up to 256 bytes of CCL and scratch memory, "
        "but a device of Atlas 800T A2 has 255."
    )


def test_a_file_can_ask_for_more_memory_than_the_product_has() -> None:
    half = 32 * GIB
    for more, expected in ((0, []), (1, ["RESOURCE_EXCEEDED"])):
        buffers = {"IN": 128, "OUT": 128, "CCL": half, "SCRATCH": half + more}
        program = written({}, exported=[], buffers={"1": buffers})
        findings = found(find_hardware, program, product=PRODUCT)
        assert [finding.name for finding in findings] == expected
        assert [finding.ranks for finding in findings] == [(1,)] * len(expected)


def test_an_author_can_ask_for_more_memory_than_the_product_has() -> None:
    def body(rank: Any) -> None:
        """Record nothing."""

    def asking(scratch_bytes: int, preset: str = PRODUCT.name) -> list[str]:
        request = ResourceRequest(scratch_bytes=scratch_bytes)
        topology = topology_of(2, preset=preset)
        program = authored(body, request, topology=topology)
        return [f.message for f in found(find_hardware, program, product=topology.product)]

    assert not asking(60 * GIB)
    assert not asking(65 * GIB, "mesh")  # a network for study states no memory
    (message,) = asking(64 * GIB)
    assert message.startswith("ranks 0 and 1 need up to 6871947")
    assert message.endswith("but a device of Atlas 800T A2 has 68719476736.")
