"""Small ops in C++, whole: clean ones are clean, broken ones are found at their line, and what they
compute is right.
"""

from pathlib import Path

import pytest

from hccl_interop.cpp import CustomOp, find_project
from hccl_interop.cpp.recording import ENTRIES
from hccl_py import simulate
from hccl_py.enums import TaskKind
from hccl_py.errors import NotSupportedError, ParameterError
from hccl_py.topology import topology_of
from hccl_py.verifier.numeric import run_numeric
from hccl_py.verifier.terminal import Pen, format_report
from tests.interop.cpp.kit import OPS, builder, check, copy_of, custom_op, record

CLEAN = ("all_gather_mesh", "all_reduce_ring", "reduce_scatter_mesh")
BLOCKS, EXCHANGES = ("all_gather_v", "reduce_scatter_v"), ("all_to_all_v", "all_to_all_vc")
KERNEL = "op_kernel_aicpu/kernel.cc"

DEFECTS = {
    1: ("RACE_RW", "defect 1"),
    2: ("UNMATCHED_POST", "defect 2"),
    3: ("WRONG_ADDRESS", "defect 3"),
    4: ("RACE_RW", "defect 4"),
    5: ("STREAM_NOT_JOINED", "defect 5"),
}


def defect_line(folder: Path, mark: str) -> str:
    lines = (folder / KERNEL).read_text().splitlines()
    (number,) = [k for k, line in enumerate(lines, 1) if line.endswith(f"// {mark}")]
    return f"{folder / KERNEL}:{number}"


@pytest.mark.parametrize("name", CLEAN)
@pytest.mark.parametrize("calls", [1, 2])
def test_clean_ops_have_no_finding(name: str, calls: int) -> None:
    recording = record(name, servers=2, devices=8, calls=calls)
    assert not recording.findings
    hints = {finding.name for finding in check(recording, 1 if calls > 1 else 2)}
    assert hints <= ({"RESOURCE_UNUSED"} if name == "all_reduce_ring" else set())


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_named_with_its_line(defect: int, tmp_path: Path) -> None:
    folder = copy_of("reduce_scatter_mesh", tmp_path, defines=[f"DEFECT={defect}"])
    report = check(record(CustomOp(find_project(str(folder)), builder()), servers=2, devices=8))
    name, mark = DEFECTS[defect]
    found = report.of_class(name)
    assert found
    assert defect_line(folder, mark) in {finding.source for finding in found}
    assert not report.ok


def test_what_shows_between_recorded_calls_is_one_sentence(tmp_path: Path) -> None:
    folder = copy_of("reduce_scatter_mesh", tmp_path, defines=["DEFECT=4"])
    shop = CustomOp(find_project(str(folder)), builder())
    assert check(record(shop, ranks=4, calls=1), repeat=1).ok
    report = check(record(shop, ranks=4, calls=2), repeat=1)
    assert report.only_between_calls == report.errors
    *_, sentence = format_report(report, Pen(width=1000)).splitlines()
    assert sentence.startswith("Only between calls that follow each other without synchronisation:")
    assert defect_line(folder, "defect 4") in sentence


def test_a_line_says_where_it_was_called_from(tmp_path: Path) -> None:
    folder = copy_of("reduce_scatter_mesh", tmp_path, defines=["DEFECT=2"])
    report = check(record(CustomOp(find_project(str(folder)), builder()), servers=2, devices=8))
    (finding,) = report.of_class("UNMATCHED_POST")
    assert "Called from ReduceScatterKernel at" in finding.message


@pytest.mark.parametrize("name", CLEAN)
def test_data_is_right_in_every_interleaving(name: str) -> None:
    program = record(name, ranks=4, size=1 << 10).require()
    result = run_numeric(program, seeds=2)
    assert result.ok, result.wrong


def test_layers_are_planes_and_the_time_knows_them() -> None:
    program = record("all_gather_mesh", servers=2, devices=2).require()
    transports = program.transports
    level1 = transports.planes.index("level1")
    topology = topology_of(servers=2, devices=2, preset="ascend950")
    crosses = topology.server[transports.rank] != topology.server[transports.peer]
    assert ((transports.plane == level1) == crosses).all()
    timeline = simulate(program, topology, network="contended")
    assert timeline.total_us > 0


def test_over_roce_writes_are_pushed_and_reads_are_refused() -> None:
    a2 = "atlas-800t-a2"
    program = record("all_reduce_ring", topology=a2, servers=2, devices=2).require()
    kinds = {i.kind for batch in program.batches for i in batch.instructions}
    assert {TaskKind.RDMA_WRITE, TaskKind.RDMA_WRITE_REDUCE, TaskKind.WRITE} <= kinds
    with pytest.raises(NotSupportedError, match="RoCE joins rank 0 with rank 2"):
        record("all_gather_mesh", topology=a2, servers=2, devices=2)


def test_ranks_that_do_the_same_are_one_batch() -> None:
    program = record("all_reduce_ring", ranks=8).require()
    assert len(program.batches) == 1
    assert program.rounds == 1
    assert record("all_reduce_ring", ranks=8, calls=2).require().rounds == 2


def test_the_op_is_what_the_folder_defines() -> None:
    assert CustomOp(find_project(str(OPS / "all_reduce_ring")), builder()).op_name() == "all_reduce"


@pytest.mark.long
def test_a_ring_of_1024_ranks() -> None:
    program = record("all_reduce_ring", ranks=1024, topology="mesh", size=1 << 24).require()
    assert program.task_count == 1024 * (8 + 3 * 2 * 1023)
    assert len(program.batches) == 1


@pytest.mark.parametrize("op", ENTRIES)
def test_every_op_is_called_with_its_parameters(op: str) -> None:
    has_slots = op in ("reduce_scatter", "all_gather", "scatter", "all_to_all")
    root = 1 if op in ("reduce", "broadcast", "scatter") else None
    size = 12 * (2 if has_slots else 3 if op in BLOCKS else 5 if op in EXCHANGES else 1)
    recording = record("entries", op=op, ranks=2, size=size, root=root, dtype="fp16")
    assert not recording.findings


def test_a_function_of_another_op_does_not_stand_for_one(tmp_path: Path) -> None:
    folder = copy_of("all_gather_mesh", tmp_path)
    host = folder / "op_host" / "op.cc"
    own = host.read_text()
    of_v = "void*, uint64_t, void*, const void*, const void*, HcclDataType, HcclComm, aclrtStream"
    host.write_text(
        own.replace("HcclAllGather(", "Gather(")
        + f'\nextern "C" HcclResult HcclAllGatherV({of_v}) {{ return HCCL_SUCCESS; }}\n'
    )
    assert CustomOp(find_project(str(folder)), builder()).op_name() == "all_gather_v"
    host.write_text(own.replace("HcclAllGather(", "HcclAllGatherVia("))
    assert CustomOp(find_project(str(folder)), builder()).op_name() == "all_gather"


def test_a_folder_of_many_ops_asks_for_one() -> None:
    with pytest.raises(ParameterError, match="has functions of 12 ops: all_reduce, reduce_scatter"):
        custom_op("entries").op_name()
