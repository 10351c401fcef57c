"""Steps of MSCCL's threadblocks in time: receive, reduce and send as one, and messages that stream
in slices. Every time is computed by hand.
"""

from itertools import pairwise

import numpy as np
import pytest

from hccl_interop.msccl import algorithms_from, import_algorithm, meaning_of
from hccl_py.clocks.cost import PROTOCOLS, CostModel
from hccl_py.enums import TaskKind
from hccl_py.errors import FileError
from hccl_py.formats.json_read import from_json
from hccl_py.formats.json_write import to_json
from hccl_py.formats.npz import to_npz
from hccl_py.formats.npz_read import from_npz
from hccl_py.importers import Imported
from hccl_py.program.edit import without
from hccl_py.program.program import Program
from hccl_py.simulator import simulate_batches, simulate_contended
from hccl_py.simulator.tasks import simulate_tasks
from hccl_py.topology import topology_of
from hccl_py.verifier.numeric import run_numeric
from tests.interop.msccl.xmls import Xml, all_pairs, exchange, ring_all_reduce, sums_in_scratch
from tests.simulator.costs import only_hccs

ALPHA = 3.0
LINK, REDUCED, COPIED = 10_000.0, 4_000.0, 8_000.0
"""Bytes a µs."""

SUMS = only_hccs(ALPHA, LINK, reduce_gbps=REDUCED * 1e-3, copy_gbps=COPIED * 1e-3)
LONGEST = SUMS.model_copy(update={"joined_tasks": "longest"})
LINKS = only_hccs(ALPHA, LINK)
THREE = topology_of(3)


def imported(xml: Xml, size: int, slices: int | None = None, op: str | None = None) -> Imported:
    (algorithm,) = algorithms_from(xml.text().encode(), "own.xml")
    return import_algorithm(algorithm, meaning_of(algorithm, op), size, slice_bytes=slices)


def relay(middle: str, last: str, proto: str = "Simple") -> Xml:
    """GPU 0 sends a chunk to GPU 1, which hands it on to GPU 2."""
    xml = Xml("custom", 3, 1, proto=proto)
    xml.tb(0, send=1).step("s", ("i", 0))
    xml.tb(1, send=2, recv=0).step(middle, ("i", 0), ("o", 0))
    xml.tb(2, recv=1).step(last, ("i", 0), ("o", 0))
    return xml


def totals(program: Program, cost: CostModel) -> list[float]:
    """Return the time by every simulator."""
    return [
        simulate_tasks(program, THREE, cost).total_us,
        simulate_batches(program, THREE, cost).total_us,
        simulate_batches(program, THREE, cost, lockstep=False).total_us,
        simulate_contended(program, THREE, cost).total_us,
    ]


SIZE = 8000
SEND, REDUCE, COPY = SIZE / LINK, SIZE / REDUCED, SIZE / COPIED
MIDDLES = {"rcs": [COPY, SEND], "rrs": [REDUCE, SEND], "rrcs": [REDUCE, COPY, SEND]}
LASTS = {"r": [COPY], "rrc": [REDUCE, COPY]}


@pytest.mark.parametrize("middle", MIDDLES)
@pytest.mark.parametrize("last", LASTS)
@pytest.mark.parametrize("task_us", [0.0, 0.5])
def test_a_step_takes_as_long_as_its_longest_part(middle: str, last: str, task_us: float) -> None:
    program = imported(relay(middle, last), SIZE, op="reduce").require()
    steps = [[us + task_us for us in step] for step in ([SEND], MIDDLES[middle], LASTS[last])]
    wanted = 2 * ALPHA + sum(map(sum, steps))
    started = {"task_us": task_us}
    assert totals(program, SUMS.model_copy(update=started)) == pytest.approx([wanted] * 4)
    wanted = 2 * ALPHA + sum(map(max, steps))
    cost = LONGEST.model_copy(update=started)
    assert totals(program, cost) == pytest.approx([wanted] * 4)
    timeline = simulate_tasks(program, THREE, cost)
    assert sum(timeline.critical_path().parts()) == pytest.approx(wanted)


def test_steps_of_their_own_are_not_joined() -> None:
    xml = Xml("custom", 2, 1)
    xml.usual = (1, 1, 1)
    tb = xml.tb(0).step("cpy", ("i", 0), ("s", 0)).step("cpy", ("s", 0), ("o", 0))
    tb.step("re", ("s", 0), ("o", 0))
    xml.tb(1)
    program = imported(xml, SIZE, op="reduce").require()
    two = topology_of(2)
    for simulated in (simulate_tasks, simulate_contended):
        assert simulated(program, two, LONGEST).total_us == pytest.approx(2 * COPY + REDUCE)


def test_what_is_left_of_a_step_takes_its_own_time() -> None:
    """A program that lost the first task of a step: the second one begins it."""
    program = imported(relay("rrs", "r"), SIZE, op="reduce").require()
    kept = without(program, ~np.equal(program.tasks.kind, TaskKind.REDUCE))
    wanted = 2 * ALPHA + SEND + SEND + COPY
    assert totals(kept, LONGEST) == pytest.approx([wanted] * 4)


def test_all_walks_give_the_same_times_to_the_last_bit() -> None:
    for xml in (ring_all_reduce(5, channels=2), ring_all_reduce(4, "LL", inplace=0)):
        program = imported(xml, 1 << 20, slices=3000).require()
        timeline = simulate_tasks(program, None, LONGEST)
        queue = program.tasks.rank.astype(np.int64) * program.streams + program.tasks.stream
        ends = np.zeros(program.ranks * program.streams)
        np.maximum.at(ends, queue, timeline.end_us)
        for lockstep in (True, False):
            found = simulate_batches(program, None, LONGEST, lockstep=lockstep).end_us
            assert np.array_equal(found.reshape(-1), ends)


def test_files_keep_what_is_joined() -> None:
    program = imported(relay("rrcs", "rrc", "LL"), SIZE, op="reduce").require()
    wanted = totals(program, LONGEST)
    for again in (from_json(to_json(program)), from_npz(to_npz(program))):
        assert again.protocol == "LL"
        assert again.tasks.table.joined.sum() == 3  # of 1 + 3 + 2 data tasks
        assert totals(again, LONGEST) == wanted
        assert again.digest == program.digest


@pytest.mark.parametrize("note", ['{"joined": false}', '{"joined": 1}'])
def test_tasks_are_joined_or_not(note: str) -> None:
    text = to_json(imported(relay("rcs", "r"), SIZE, op="reduce").require())
    assert '"joined": true}' in text
    with pytest.raises(FileError, match='joined: expected true or "sum" on such a task'):
        from_json(text.replace('"joined": true}', note[1:]))


def test_only_data_tasks_are_joined() -> None:
    text = to_json(imported(relay("rcs", "r"), SIZE, op="reduce").require())
    broken = text.replace('["local_wait", 0]', '["local_wait", 0, {"joined": true}]', 1)
    assert broken != text
    with pytest.raises(FileError, match='joined: expected true or "sum" on such a task'):
        from_json(broken)


@pytest.mark.parametrize("proto", PROTOCOLS)
@pytest.mark.parametrize(
    ("size", "slices", "after_us"),
    [
        (8000, None, 0.8),  # all of it again
        (8000, 1000, 0.1),  # one slice: the others went on while the first GPU still wrote
        (8000, 8000, 0.8),
        (8000, 2500, 0.25 + 0.05 - 0.05),  # 3 of 2500 and one of 500, when the third one is gone
        (8400, 1000, 0.1 + 0.04 - 0.04),
    ],
)
def test_messages_stream_in_slices(
    proto: str, size: int, slices: int | None, after_us: float
) -> None:
    """GPU 1 sends a slice on while GPU 0 writes the next: behind the last write come α, what GPU 1
    still has to send, and α.
    """
    found = imported(relay("rcs", "r", proto), size, slices, op="broadcast")
    wanted = size / LINK + ALPHA + after_us + ALPHA
    assert totals(found.require(), LINKS) == pytest.approx([wanted] * 4)


def test_slices_of_several_passes_stay_in_their_slots() -> None:
    found = imported(relay("rcs", "r", "LL"), 100_000, 4096, op="broadcast")
    program = found.require()
    assert program.rounds == 4  # of 32 KiB: 8, 8, 8 and one slice
    sent = np.equal(program.tasks.kind, TaskKind.WRITE) & (program.tasks.rank == 0)
    offsets, sizes = program.tasks.dst_offset[sent].tolist(), program.tasks.size[sent].tolist()
    assert len(sizes) == 25
    assert sum(sizes) == 100_000
    assert all(b - a == 4096 for a, b in pairwise(offsets))
    assert program.transports.name_of(0) == "data 0.0"


ALGORITHMS = {
    "ring": ring_all_reduce(3, channels=2),
    "ring out of place": ring_all_reduce(4, inplace=0),
    "all-to-all": all_pairs("alltoall", 3),
    "scratch": sums_in_scratch(3),
}


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("proto", PROTOCOLS)
def test_programs_in_slices_compute_their_op(name: str, proto: str) -> None:
    xml = ALGORITHMS[name]
    xml.attributes["proto"] = proto
    found = imported(xml, 1 << 9, slices=50)  # whole elements: 48 bytes
    program = found.require()
    assert program.task_count > imported(xml, 1 << 9).require().task_count
    assert program.tasks.size[np.equal(program.tasks.kind, TaskKind.WRITE)].max() == 48
    assert run_numeric(program, seeds=2).ok
    assert found.report().ok


def test_slices_do_not_make_room() -> None:
    assert imported(exchange(), 6 << 20, 1 << 18).report().ok
    found = imported(exchange(), (6 << 20) + 24, 1 << 18)
    assert {finding.name for finding in found.report().errors} == {"DEADLOCK_CYCLE"}
