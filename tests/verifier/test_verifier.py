"""The whole verifier: whatever is broken, there is a report, and what matters is found."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hccl_py.call.op_param import OpParam
from hccl_py.enums import TaskKind
from hccl_py.errors import NotSupportedError
from hccl_py.formats import from_json, to_json
from hccl_py.program.edit import rearranged, swapped, without
from hccl_py.program.program import Program
from hccl_py.topology import Topology
from hccl_py.verifier import CLASSES, Options, Report, verify_program
from hccl_py.verifier.numeric import run_numeric
from tests.recording import BY_NAME, SAMPLES, op_of, recorded
from tests.verifier.broken_files import FILES
from tests.verifier.programs import PRODUCT, written
from tests.verifier.scripts import programs
from tests.verifier.sketches import all_gather, sketch

LAYOUTS = {"3 over SDMA": (3,), "3 over RDMA": (1, 1, 1), "2 + 1 over both": (2, 1)}
BUILT_IN = [
    (name, layout)
    for name in SAMPLES
    for layout in LAYOUTS
    if layout == "3 over SDMA" or "Mesh" not in name
]


@cache
def built_in(name: str, layout: str) -> Program:
    """Return a built-in executor's program for a little data in fp32, 3 ranks."""
    topology = Topology(PRODUCT, LAYOUTS[layout])
    return recorded(name, op_of(str(BY_NAME[name].op), 100), topology)


def test_all_built_in_executors_are_here() -> None:
    assert {name for name, _ in BUILT_IN} == set(SAMPLES)


@st.composite
def edited(draw: Any) -> Program:
    """A built-in's program with neighbours in each other's place, or tasks left out, or both."""
    program = built_in(*draw(st.sampled_from(BUILT_IN)))
    for _ in range(draw(st.integers(1, 3))):
        program = draw(edits(program))
    return program


@st.composite
def edits(draw: Any, program: Program) -> Program:
    """The program with two neighbours in each other's place, or a task left out."""
    row = draw(st.integers(0, len(program.tasks) - 1))
    if draw(st.booleans()):
        return without(program, np.arange(len(program.tasks)) != row)
    return swapped(program, row, _next(program, row))


def _next(program: Program, row: int) -> int:
    """Return the row after this one on its stream, the row itself at the end."""
    tasks = program.tasks
    rows = np.flatnonzero((tasks.rank == tasks.rank[row]) & (tasks.stream == tasks.stream[row]))
    after = rows[rows > row]
    return int(after[0]) if len(after) else row


@given(edited(), st.booleans(), st.sampled_from((1, 2, 3)))
def test_a_broken_built_in_gets_a_report(program: Program, in_place: bool, repeat: int) -> None:
    report = verify_program(program, Options(repeat, in_place, product=PRODUCT))
    check_form(report, program)


@st.composite
def edited_and_passing(draw: Any) -> Program:
    """A built-in's program with edits of which each still passes; those that do not are undone."""
    intact = program = built_in(*draw(st.sampled_from(BUILT_IN)))
    for _ in range(draw(st.integers(4, 8))):
        changed = draw(edits(program))
        if verify_program(changed).ok:
            program = changed
    assume(program is not intact)
    return program


@given(edited_and_passing())
def test_what_passes_computes_the_right_result(program: Program) -> None:
    """Run with data, in interleavings that look for trouble. Enough of the edits pass: hypothesis
    fails a test that nearly always gives up.
    """
    assert run_numeric(program, seeds=1).ok


@pytest.mark.long
@pytest.mark.parametrize(("name", "layout"), BUILT_IN)
def test_which_neighbours_may_change_places(name: str, layout: str) -> None:
    """What passes runs right; what does not goes wrong, mostly: seeds do not hit every race."""
    program = built_in(name, layout)
    wrong, shown = 0, 0
    for row in range(len(program.tasks)):
        changed = swapped(program, row, _next(program, row))
        report = verify_program(changed)
        if report.ok:
            assert run_numeric(changed, seeds=2).ok
        elif not report.notes:
            wrong += 1
            shown += not run_numeric(changed, seeds=6).ok
    assert shown >= 0.8 * wrong


@given(programs(), st.data())
def test_any_program_gets_a_report(program: Program, data: st.DataObject) -> None:
    """Tasks of random programs come in any order on their rank, or twice, or not at all."""
    tasks = program.tasks
    picks = [
        data.draw(st.lists(st.sampled_from(range(*bounds)), max_size=8))
        for bounds in zip(tasks.first[:-1].tolist(), tasks.first[1:].tolist(), strict=True)
        if bounds[0] < bounds[1]
    ]
    broken = rearranged(program, np.array([row for rows in picks for row in rows], np.int64))
    check_form(verify_program(broken, Options(data.draw(st.integers(1, 3)))), broken)


def check_form(report: Report, program: Program) -> None:
    """A report is sorted, and what it names is there."""
    keys = [finding.key for finding in report]
    assert keys == sorted(keys)
    sizes = dict(zip(program.buffers, program.buffer_sizes.T.tolist(), strict=True))
    for finding in report:
        assert finding.name in CLASSES
        assert finding.message.strip()
        assert finding.hint.strip()
        assert set(finding.ranks) <= set(range(program.ranks))
        assert finding.ranks
        for task in finding.tasks:
            of_rank = program.tasks.first[task.rank + 1] - program.tasks.first[task.rank]
            assert task.index < of_rank * finding.repeat
        for memory in finding.memory:
            assert memory.start <= memory.stop
            assert memory.stop <= sizes[memory.buffer][memory.rank] or finding.name.startswith(
                ("OUT_OF", "REMOTE", "SLICE", "SELF")
            )


@pytest.mark.parametrize(("name", "layout"), BUILT_IN)
def test_no_data_task_of_a_built_in_may_be_left_out(name: str, layout: str) -> None:
    program = built_in(name, layout)
    assert verify_program(program).ok
    data = program.tasks.table.moves_data[program.tasks.instruction] & (program.tasks.size > 0)
    for row in np.flatnonzero(data).tolist():
        keep = np.arange(len(program.tasks)) != row
        assert not verify_program(without(program, keep)).ok, f"row {row} may be left out"


@pytest.mark.parametrize(("name", "layout"), BUILT_IN)
def test_no_built_in_works_without_synchronisation(name: str, layout: str) -> None:
    program = built_in(name, layout)
    kinds = (TaskKind.NOTIFY_POST, TaskKind.NOTIFY_WAIT)
    between_ranks = np.isin(program.tasks.kind, kinds) & (program.tasks.peer >= 0)
    report = verify_program(without(program, ~between_ranks))
    assert not report.ok
    assert report.of_class("RACE_RW") or report.of_class("RACE_WW")


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "layout"), BUILT_IN)
def test_posts_and_waits_of_a_built_in_stand_where_they_must(name: str, layout: str) -> None:
    """A wait that is left out leaves its post over; a post that is left out starves its wait."""
    program = built_in(name, layout)
    for kind, expected in (
        (TaskKind.NOTIFY_POST, "WAIT_WITHOUT_POST"),
        (TaskKind.NOTIFY_WAIT, "UNMATCHED_POST"),
    ):
        for row in np.flatnonzero(program.tasks.kind == kind).tolist():
            broken = without(program, np.arange(len(program.tasks)) != row)
            found = verify_program(broken).errors
            missing = [f for f in found if f.hint.startswith("A post is missing: ")]
            assert missing or {f.name for f in found} & {expected, "NOTIFY_OVERRUN"}


@pytest.mark.parametrize("name", FILES)
def test_a_program_may_be_written_and_read_before_it_is_verified(name: str) -> None:
    program = FILES[name](True).program()
    again = from_json(to_json(program))
    options = Options(product=PRODUCT)
    assert verify_program(again, options).findings == verify_program(program, options).findings


def test_programs_without_anything_get_a_report() -> None:
    for ranks in (1, 3):
        buffers: dict[str, Any] = {str(rank): {} for rank in range(ranks)}
        op = {"name": "barrier", "dtype": "uint8"}
        report = written({}, ranks=ranks, buffers=buffers, exported=[], op=op)
        found = [finding.name for finding in verify_program(report)]
        assert found == ["SILENT_RANK"] * (ranks > 1)


def test_the_report_is_named_after_executor_op_or_target() -> None:
    program = built_in("AllGatherComm", "3 over SDMA")
    assert verify_program(program).target == "AllGatherComm"
    assert verify_program(program, target="ring.json").target == "ring.json"
    assert all_gather().report().target == "all_gather"


def test_what_cannot_be_judged_is_noted() -> None:
    assert not all_gather().report().notes
    assert len(FILES["WAIT_WITHOUT_POST"](True).report().notes) == 1
    assert len(FILES["UNMATCHED_POST"](True).report().notes) == 1
    assert not FILES["UNMATCHED_POST"](True).report(repeat=1).notes


def test_data_beyond_any_machine_is_refused() -> None:
    size = 1 << 60
    op = {"name": "all_gather", "dtype": "uint8", "count": 64}
    drawn = sketch(op, 4, {"IN": 64, "OUT": 256, "CCL": size})
    with pytest.raises(NotSupportedError, match=r"add up to more than 2\^61 bytes"):
        drawn.report()


def test_large_data_costs_nothing() -> None:
    op = OpParam("all_gather", 1 << 30, op_of("all_gather").dtype)
    program = recorded("AllGatherComm", op, 4, 200 << 20)
    assert program.rounds > 10
    assert verify_program(program).ok


@pytest.mark.parametrize("name", ["all_gather", "all_reduce", "all_to_all", "barrier", "send_recv"])
def test_ranks_that_only_a_number_claims_cost_next_to_nothing(name: str) -> None:
    """A small file with tasks of two ranks says what it says, however many ranks it claims."""
    op = {"name": name, "dtype": "uint8", "count": 1}
    op |= {"reduce": "sum"} if name == "all_reduce" else {}
    sizes = {"IN": 8, "OUT": 8, "CCL": 8}
    found = []
    for ranks in (8, 1 << 16):
        drawn = sketch(op, ranks, {})
        drawn.document["buffers"] = {"0": sizes, "1": sizes}
        drawn.put(0, ["copy", ["IN", 0, 8], ["CCL", 0, 8]], ["post", 1, 0], ["wait", 1, 1])
        drawn.put(1, ["wait", 0, 0], ["read", 0, ["CCL", 0, 8], ["OUT", 0, 8]], ["post", 0, 1])
        report = drawn.report()
        assert report.of_class("SILENT_RANK")[0].ranks == tuple(range(2, ranks))
        found.append({(f.name, f.tasks) for f in report if f.name != "OUTPUT_MISSING"})
    assert found[0] == found[1]
