"""The clocks of the verifier against paths and pairs by definition, on random programs."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.program.kernels import Kernel
from hccl_py.program.program import Program
from hccl_py.topology import topology_of
from hccl_py.verifier.analysis import clocks
from hccl_py.verifier.analysis.clocks import emissions, loop
from hccl_py.verifier.analysis.memory import MemoryIntervals, memory_of
from hccl_py.verifier.analysis.ordering import Ordering, ordering_of
from hccl_py.verifier.analysis.unrolled import Unrolled, unrolled
from hccl_py.verifier.subject import Options, Subject
from tests.recording import op_of, recorded
from tests.verifier.naive import Byte, Naive
from tests.verifier.scripts import programs, seeded

RACES = (emissions.BESIDE_READ, emissions.BESIDE_WRITE, emissions.REUSE)


def judged(program: Program, copies: int) -> tuple[Unrolled, MemoryIntervals, Ordering]:
    run = unrolled(program, copies)
    memory = memory_of(Subject(program, Options()))
    return run, memory, ordering_of(run, memory, meets=False)


def pairs(ordering: Ordering, *what: int) -> set[tuple[int, int]]:
    rows = ordering.emitted[np.isin(ordering.emitted[:, 0], what)]
    return {(min(a, b), max(a, b)) for a, b in rows[:, 1:3].tolist()}


def bytes_of(memory: MemoryIntervals, intervals: range) -> set[Byte]:
    """The bytes of intervals, found by searching every buffer."""
    found = set()
    for interval in intervals:
        begin, end = memory.intervals.start[interval : interval + 2].tolist()
        for (rank, number), base in np.ndenumerate(memory.spaces.base):
            if base <= begin < base + memory.spaces.size[rank, number]:
                name = memory.program.buffers[number]
                found |= {(rank, name, int(k - base)) for k in range(begin, end)}
    return found


PROGRAMS = 500
"""Random programs that every property is held against: what goes wrong over RDMA from several
streams shows in one of some hundred.
"""


@pytest.mark.parametrize("copies", [1, 2, 3])
def test_every_racing_byte_of_many_programs_is_found(copies: int) -> None:
    for seed in range(copies, PROGRAMS, 3):
        check_races(seeded(seed), copies)


@pytest.mark.parametrize("copies", [1, 2])
def test_what_is_ordered_in_many_programs_is_known(copies: int) -> None:
    for seed in range(copies, PROGRAMS, 2):
        check_order(seeded(seed), copies)


@given(programs(), st.sampled_from((1, 2, 3)))
def test_every_racing_byte_is_found_and_no_other(program: Program, copies: int) -> None:
    check_races(program, copies)


def check_races(program: Program, copies: int) -> None:
    run, memory, ordering = judged(program, copies)
    naive = Naive(run)
    races = naive.races()
    all_pairs = {pair for found in races.values() for pair in found}
    assert pairs(ordering, *RACES) <= all_pairs
    covered: set[Byte] = set()
    for what, early, late, first, last in ordering.emitted.tolist():
        if what in RACES:
            found = bytes_of(memory, range(first, last))
            covered |= found
            is_sent = found.isdisjoint(naive.written.get(early, ()))  # and so late overwrites it
            assert (what == emissions.REUSE) == (is_sent and naive.is_issued_before(early, late))
    assert covered == set(races)


@given(programs(), st.sampled_from((1, 2)))
def test_connections_waits_and_streams_by_definition(program: Program, copies: int) -> None:
    check_order(program, copies)


def check_order(program: Program, copies: int) -> None:
    run, _, ordering = judged(program, copies)
    naive = Naive(run)
    assert pairs(ordering, emissions.CONNECTION) == {
        (min(pair), max(pair)) for pair in naive.unordered
    }
    implied = np.zeros((copies, run.rows), bool)
    for node in naive.before_wait:
        implied[divmod(node, run.rows)] = naive.is_implied(node)
    assert (ordering.is_implied == implied.all(axis=0)).all()
    not_started = {node for node in run.order.tolist() if is_early(run, naive, node)}
    told = ordering.emitted[ordering.emitted[:, 0] == emissions.NOT_STARTED][:, 1].tolist()
    assert set(told) <= not_started
    assert {int(run.queue[n]) for n in told} == {int(run.queue[n]) for n in not_started}


def is_early(run: Unrolled, naive: Naive, node: int) -> bool:
    """Whether a sub stream's node runs without knowing of its copy's call."""
    if run.call(node) is not None or run.queue[node] % run.program.streams == 0:
        return False
    row, copy = run.task(node)
    rank = int(run.program.tasks.rank[row])
    call = run.copies * run.rows + copy * run.program.ranks + rank
    return not naive.issued[node] >> (2 * call) & 1


@pytest.mark.long
@given(programs(steps=60))
def test_compiled_clocks_mean_the_same(program: Program) -> None:
    run, memory, ordering = judged(program, 2)
    clocks.run_clocks.compiled  # noqa: B018 - from here on small programs run compiled
    again = ordering_of(run, memory, meets=False)
    assert (ordering.emitted == again.emitted).all()


def test_clocks_with_too_little_room_are_kept_again(monkeypatch: pytest.MonkeyPatch) -> None:
    topology = topology_of(servers=3, devices=4)
    program = recorded("AllReduceMeshExecutor", op_of("all_reduce"), topology)
    found, passes = [], []

    def counted(*columns: Any) -> int:
        passes.append(0)
        return loop.run_clocks.plain(*columns)

    monkeypatch.setattr("hccl_py.verifier.analysis.ordering.run_clocks", Kernel(counted))
    for room in (1 << 17, 0):
        monkeypatch.setattr("hccl_py.verifier.analysis.ordering.AT_FIRST", room)
        _, _, ordering = judged(program, 2)
        found.append((len(passes), ordering.emitted.tolist(), ordering.is_implied.tolist()))
    assert found[0][0] == 1
    assert found[1][0] > 2
    assert found[0][1:] == found[1][1:]
