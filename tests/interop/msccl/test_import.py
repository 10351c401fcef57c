"""Imported programs: what they compute, in every protocol and placement, at every size; FIFOs that
overflow at some sizes only; whose meaning is not said.
"""

import json
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest

import hccl_py as hccl
from hccl_interop.msccl import algorithms_from, import_algorithm, meaning_of
from hccl_interop.msccl.protocols import PROTOCOLS, ChunkLoop
from hccl_py.clocks.cost import CostModel
from hccl_py.enums import DataType, InPlace, ReduceOp, TaskKind
from hccl_py.errors import HcclError, ParameterError
from hccl_py.importers import Imported
from hccl_py.simulator import simulate
from hccl_py.verifier.numeric import run_numeric
from tests.interop.msccl.xmls import (
    Step,
    Xml,
    all_pairs,
    exchange,
    ring_all_reduce,
    sums_in_scratch,
)


def imported(
    xml: Xml, size: int = 1 << 10, op: str | None = None, dtype: DataType = DataType.FP32
) -> Imported:
    (algorithm,) = algorithms_from(xml.text().encode(), "own.xml")
    return import_algorithm(algorithm, meaning_of(algorithm, op), size, dtype)


ALGORITHMS = {
    "ring": ring_all_reduce(3, channels=2),
    "ring out of place": ring_all_reduce(4, inplace=0),
    "all-gather": all_pairs("allgather", 3, inplace=1),
    "all-to-all": all_pairs("alltoall", 3),
    "scratch": sums_in_scratch(3),
    "exchange": exchange(),
}
PAIRS = [(name, proto) for name in ALGORITHMS for proto in PROTOCOLS]


@pytest.mark.parametrize(
    ("name", "proto"),
    [PAIRS[0], *(pytest.param(*pair, marks=pytest.mark.sweep) for pair in PAIRS[1:])],
)
def test_programs_compute_their_op(name: str, proto: str) -> None:
    xml = deepcopy(ALGORITHMS[name])
    xml.attributes["proto"] = proto
    program = imported(xml, 1 << 9).require()
    assert run_numeric(program, seeds=2).ok


def test_large_chunks_take_several_passes() -> None:
    xml = sums_in_scratch(2)  # LL: 32 KiB of a chunk at a time
    program = imported(xml, 70_000).require()
    assert program.rounds == 3
    sizes = program.tasks.size[np.equal(program.tasks.kind, TaskKind.WRITE)]
    assert sorted(sizes.tolist()) == [4464, 4464, 32768, 32768, 32768, 32768]
    assert run_numeric(program, seeds=1).ok


@pytest.mark.parametrize(
    ("proto", "chunk", "passes", "at_once"),
    [
        ("Simple", 1 << 20, 1, 2),
        ("Simple", 2 << 20, 1, 1),
        ("Simple", (2 << 20) + 4, 2, 1),
        ("LL", 512, 1, 64),
        ("LL", 4, 1, 71),
        ("LL", 1 << 20, 32, 1),
        ("LL128", 576_000, 1, 1),
        ("LL128", 576_004, 2, 1),
    ],
)
def test_loop_of_the_runtime(proto: str, chunk: int, passes: int, at_once: int) -> None:
    loop = ChunkLoop.of(PROTOCOLS[proto], chunk, 4)
    assert (loop.passes, loop.at_once) == (passes, at_once)
    assert sum(loop.part(number)[1] for number in range(passes)) == chunk


@pytest.mark.parametrize(
    ("size", "messages", "hangs"),
    [
        (1 << 10, 1, False),
        (4 << 20, 2, False),  # chunks of 683 KiB: two and then one
        (6 << 20, 2, False),
        ((6 << 20) + 24, 3, True),  # a third message, and the FIFO holds two
        (12 << 20, 3, True),
        (64 << 20, 18, True),  # six passes of three messages
    ],
)
def test_fifo_that_overflows_from_some_size_on(size: int, messages: int, hangs: bool) -> None:
    found = imported(exchange(), size)
    program = found.require()
    writes = np.equal(program.tasks.kind, TaskKind.WRITE)
    assert int((writes & (program.tasks.rank == 0)).sum()) == messages
    names = {finding.name for finding in found.report().errors}
    assert names == ({"DEADLOCK_CYCLE"} if hangs else set())
    if hangs:
        with pytest.raises(HcclError, match="Deadlock"):
            simulate(program, hccl.topology_of(ranks=2))
    else:
        assert simulate(program, hccl.topology_of(ranks=2)).total_us > 0


def test_fifo_of_eight_holds_them() -> None:
    assert imported(exchange("LL"), 600_000).report().ok  # the same messages, and 8 slots


def test_every_message_pays_alpha_once() -> None:
    program = imported(ring_all_reduce(4), 16).require()
    topology = hccl.topology_of(ranks=4)
    total = simulate(program, topology, CostModel.of("study")).total_us
    assert 60 < total < 61  # 2·(4 - 1) messages one after the other, α of 10 µs each


def test_sizes_are_whole_chunks() -> None:
    op = imported(ring_all_reduce(3), 1000).require().op
    assert (op.count * 4) % (3 * 4) == 0
    assert 1000 <= op.count * 4 < 1012
    assert imported(all_pairs("allgather", 3), 1).require().op.count == 1
    assert imported(ring_all_reduce(2), 64, dtype=DataType.FP16).require().op.count == 32


def test_placements() -> None:
    assert imported(ring_all_reduce(2)).require().op.in_place is InPlace.START
    assert imported(all_pairs("allgather", 2, inplace=1)).require().op.in_place is InPlace.SLOT
    both = imported(all_pairs("allgather", 2, inplace=1, outofplace=1))
    assert both.require().op.in_place is False
    assert both.report().ok


def test_both_placements_are_verified() -> None:
    xml = all_pairs("allgather", 2, inplace=1, outofplace=1)
    del xml.tbs[0].steps[0]  # GPU 0 never copies its own chunk: in place it is there already
    report = imported(xml).report()
    assert {finding.name for finding in report.errors} == {"OUTPUT_MISSING"}
    assert {finding.case for finding in report.errors} == {""}
    xml = ring_all_reduce(2, inplace=0)
    xml.attributes |= {"inplace": 1, "outofplace": 1}
    xml.tbs[0].steps.insert(0, Step("cpy", ("i", 0), ("o", 1)))  # over input that is used later
    assert {finding.case for finding in imported(xml).report().errors} == {"in place"}


def test_copies_before_the_first_step() -> None:
    """TE-CCL's dialect: the runtime passes over <copy>, as in place they change nothing."""
    xml = Xml("allgather", 2, 2, inplace=0)
    xml.usual = (1, 2, 0)
    for gpu in range(2):
        xml.copies[gpu] = [(0, gpu)]
        tb = xml.tb(gpu, send=1 - gpu, recv=1 - gpu)
        tb.step("s", ("o", gpu)).step("r", dst=("o", 1 - gpu))
    found = imported(xml)
    report = found.report()
    assert report.ok
    assert report.notes == ("MSCCL's runtime passes over <copy>: the copies are done first here.",)
    assert run_numeric(found.require(), seeds=1).ok
    xml.attributes["inplace"] = 1
    assert imported(xml).report().ok


def test_sizes_that_the_runtime_gives_to_others() -> None:
    xml = ring_all_reduce(2)
    xml.attributes |= {"minBytes": 4096, "maxBytes": 8192}
    assert imported(xml, 4096).report().notes == ()
    (note,) = imported(xml, 16384).report().notes
    assert note.startswith("16384 bytes are not between minBytes and maxBytes, 4096 and 8192")


@pytest.mark.parametrize(
    ("coll", "name", "op"),
    [
        ("allreduce", "x", "all_reduce"),
        ("reduce_scatter", "x", "reduce_scatter"),
        ("reducescatter", "x", "reduce_scatter"),
        ("alltoall", "x", "all_to_all"),
        ("custom", "my_AllGather_ring", "all_gather"),
        ("custom", "hierarchical reduce-scatter v2", "reduce_scatter"),
        ("custom", "alltonext", "send_recv"),
    ],
)
def test_meaning_by_name(coll: str, name: str, op: str) -> None:
    xml = ring_all_reduce(2)
    xml.attributes |= {"coll": coll, "name": name}
    (algorithm,) = algorithms_from(xml.text().encode(), "own.xml")
    assert meaning_of(algorithm).op == op


def test_without_a_meaning_all_but_results_is_judged() -> None:
    xml = sums_in_scratch(2)
    xml.attributes |= {"coll": "custom", "name": "mine"}
    found = imported(xml, 1 << 10)
    assert not found.require().has_op
    report = found.report()
    assert report.ok
    assert report.notes == (
        "The op is open: the collective is 'custom'; --op OP states it, or --op FILE.json with the "
        "op's object, amounts in chunks.",
        "Results were not judged: what the program is to compute is not known.",
    )
    xml.tbs[1].steps[1].dep = (-1, -1)  # the sum no longer waits for what it adds
    errors = imported(xml, 1 << 10).report().errors
    assert {finding.name for finding in errors} == {"RACE_RW"}
    with pytest.raises(ParameterError, match="the op is not known: the collective is 'custom'"):
        found.require_op()


def test_calls_without_a_meaning() -> None:
    xml = ring_all_reduce(2)  # in place
    xml.attributes |= {"coll": "custom", "name": "mine"}
    (algorithm,) = algorithms_from(xml.text().encode(), "own.xml")
    meaning = meaning_of(algorithm)
    assert "IN and OUT are taken for memories of their own" in imported(xml).report().notes[0]
    program = imported(xml, 4096).require()
    assert program.buffer_sizes[:, 0].tolist() == [4096, 4096]
    for more, option in (((ReduceOp.MAX, None), "-o"), ((None, 1), "-r")):
        with pytest.raises(ParameterError, match=f"{option}.* is about an op, and the op is open"):
            meaning.call(64, DataType.FP32, *more)
    assert meaning_of(algorithm, "all_reduce").op == "all_reduce"
    with pytest.raises(ParameterError, match="--op 'allreduce' is no op"):
        meaning_of(algorithm, "allreduce")


@pytest.mark.parametrize(
    ("name", "root"), [("bcast", 0), ("Broadcast_Root1_v2", 1), ("broadcast root=2", 2)]
)
def test_the_root_is_in_the_name(name: str, root: int) -> None:
    xml = Xml("broadcast", 3, 1, name=name)
    (algorithm,) = algorithms_from(xml.text().encode(), "own.xml")
    assert meaning_of(algorithm).call(64, DataType.FP32).op.root == root
    assert meaning_of(algorithm).call(64, DataType.FP32, root=0).op.root == 0


def test_a_root_in_the_name_is_a_rank() -> None:
    (algorithm,) = algorithms_from(Xml("reduce", 3, 1, name="root 7").text().encode(), "own.xml")
    with pytest.raises(ParameterError, match=r"own\.xml:1: the name says root 7, .* ranks 0 to 2"):
        meaning_of(algorithm).call(64, DataType.FP32)


def test_sums_in_a_row_are_one_step_of_the_runtime() -> None:
    """Three sums of a threadblock: two are joined to the first; not behind a step that others wait
    for, nor one that waits itself.
    """

    def joined(xml: Xml) -> int:
        tasks = imported(xml, 64).require().tasks
        sums = np.equal(tasks.kind, TaskKind.REDUCE)
        return int((sums & (tasks.table.joined[tasks.instruction] > 0)).sum())

    assert joined(sums_in_scratch(4)) == 4 * 2
    apart = sums_in_scratch(4)
    apart.tbs[3].steps[-2].hasdep = 1
    assert joined(apart) == 4 * 2 - 1
    apart.tbs[3].steps[-2].dep = (1, 1)
    assert joined(apart) == 4 * 2 - 2
    assert run_numeric(imported(sums_in_scratch(4), 1 << 9).require(), seeds=1).ok


@pytest.mark.parametrize(
    ("slice_bytes", "slices", "written"),
    [
        (None, None, [4096]),
        (1024, None, [1024] * 4),
        (None, 2, [2048] * 2),
        (None, 3, [1368, 1368, 1360]),  # whole elements
        (3000, 2, [3000, 1096]),  # none smaller, but the last
        (5000, 2, [4096]),
    ],
)
def test_slices_of_a_message(
    slice_bytes: int | None, slices: int | None, written: list[int]
) -> None:
    (algorithm,) = algorithms_from(all_pairs("allgather", 2).text().encode(), "own.xml")
    meaning = meaning_of(algorithm)
    program = import_algorithm(
        algorithm, meaning, 8192, slice_bytes=slice_bytes, slices=slices
    ).require()
    writes = np.equal(program.tasks.kind, TaskKind.WRITE) & (program.tasks.rank == 0)
    assert program.tasks.size[writes].tolist() == written
    assert run_numeric(program, seeds=1).ok


def shift() -> Xml:
    """GPU r sends its two chunks to r + 1, the last one to nobody."""
    xml = Xml("custom", 3, 2, name="shift")
    for gpu in range(3):
        tb = xml.tb(gpu, send=gpu + 1 if gpu < 2 else -1, recv=gpu - 1)
        if gpu < 2:
            tb.step("s", ("i", 0), cnt=2)
        if gpu:
            tb.step("r", dst=("o", 0), cnt=2)
    return xml


def test_meaning_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "shift.json"
    path.write_text(json.dumps({"name": "send_recv", "pairs": [[0, 1], [1, 2]]}))
    found = imported(shift(), 64, str(path))
    assert found.report().ok
    assert found.require().op.pairs == ((0, 1), (1, 2))
    path.write_text(json.dumps({"name": "batch_send_recv", "pairs": [[0, 1, 2], [1, 2, 2]]}))
    found = imported(shift(), 64, str(path))
    assert found.require().op.pairs == ((0, 1, 16), (1, 2, 16))  # 2 chunks of 8 elements
    assert found.report().ok
    for text, message in (
        ("{}", "name: expected an op, found null"),
        ('{"name": "send_recv", "pair": []}', "pair: expected a key of the format"),
        ('{"name": "send_recv", "pairs": [[0, 9]]}', "pairs[0][1]: expected a rank from 0 to 2"),
        ("[1]", "$: expected an object"),
    ):
        path.write_text(text)
        with pytest.raises(HcclError) as caught:
            imported(shift(), 64, str(path))
        assert message in caught.value.message


def test_calls_that_an_op_does_not_have() -> None:
    (algorithm,) = algorithms_from(all_pairs("allgather", 2).text().encode(), "own.xml")
    meaning = meaning_of(algorithm)
    with pytest.raises(ParameterError, match="all_gather has no reduce op"):
        meaning.call(64, DataType.FP32, ReduceOp.MAX)
    with pytest.raises(ParameterError, match="all_gather has no root"):
        meaning.call(64, DataType.FP32, root=1)
    with pytest.raises(ParameterError, match="Root 5 is out of range"):
        meaning_of(algorithm, "broadcast").call(64, DataType.FP32, root=5)


def test_broken_algorithms_have_no_program() -> None:
    xml = all_pairs("allgather", 2)
    xml.tbs[0].step("s", ("i", 0))
    found = imported(xml)
    assert found.program is None
    report = found.report()
    assert not report.ok
    assert report.notes == ("The program was not verified: it is not whole.",)
    with pytest.raises(ParameterError, match=r"own\.xml:5: RUNTIME_LIMIT: The step 1 \(s\)"):
        found.require()
