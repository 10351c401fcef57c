"""Different ops one after the other, without waiting between: op B follows op A where each rank's
main stream of B follows that of A, and nothing else does.

An access of A is before one of B if a path leads from it to the end of some rank's main stream in
A, and one from the beginning of that main stream in B to the other access. All access to CCL
buffers that conflicts must be in order. A notify that A and B share must not be posted for B before
the last wait of A for it has taken its post.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
import pytest

from hccl_executors import EXECUTORS
from hccl_platform.lowering.part import Cell, cell_of
from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, Mode, TaskKind
from hccl_py.errors import HcclError
from hccl_py.plugins.executor import Executor
from hccl_py.program.program import Program
from hccl_py.testing.calls import fitting
from hccl_py.topology import topology_of
from hccl_py.topology.topology import Topology
from hccl_py.values import IntArray
from tests.program.paths import Node, steps_from
from tests.program.test_ends import less, pairs_of
from tests.recording import op_of, recorded

CCL = ("CCL_IN", "CCL_OUT")


@dataclass(frozen=True, eq=False)
class Ends:
    """Of a program: its accesses to CCL buffers as rows (rank and buffer, start, stop, is a write,
    after, before) and its notifies with `before` of their first posts and `after` of their last
    waits. `after` has a bit for every rank whose main stream ends later, `before` one for every
    rank whose main stream has begun.
    """

    name: str
    accesses: IntArray
    posted: dict[Cell, int]
    taken: dict[Cell, int]


def ends_of(program: Program) -> Ends:
    tasks, ahead = program.tasks, steps_from(program)
    nodes: list[Node] = []
    for row in program.linked.order.tolist():
        nodes += [("task", row), ("arrival", row)]
    first: dict[int, Node] = {}
    last: dict[int, Node] = {}
    for row in program.linked.order.tolist():
        if tasks.stream[row] == 0:
            first.setdefault(int(tasks.rank[row]), ("task", row))
            last[int(tasks.rank[row])] = "task", row
    after: dict[Node, int] = dict.fromkeys(nodes, 0)
    before: dict[Node, int] = dict.fromkeys(nodes, 0)
    for bits, marks in ((before, first), (after, last)):
        for rank, node in marks.items():
            bits[node] |= 1 << rank
    for node in nodes:
        for other in ahead.get(node, ()):
            before[other] |= before[node]
    for node in reversed(nodes):
        for other in ahead.get(node, ()):
            after[node] |= after[other]
    accesses, posted, taken = [], dict[Cell, int](), dict[Cell, int]()
    for row in program.linked.order.tolist():
        kind, rank = TaskKind(int(tasks.kind[row])), int(tasks.rank[row])
        node = "task", row
        if kind is TaskKind.NOTIFY_POST:
            posted.setdefault(cell_of(program, rank, int(tasks.cell[row])), before[node])
        elif kind is TaskKind.NOTIFY_WAIT:
            taken[cell_of(program, rank, int(tasks.cell[row]))] = after[node]
        elif kind.moves_data and tasks.size[row]:
            pushed: Node = ("arrival", row) if ("arrival", row) in ahead["task", row] else node
            accesses += [(*a, after[pushed], before[node]) for a in touched(program, row, kind)]
    rows = np.array(accesses, np.int64).reshape(-1, 6)
    return Ends(f"{program.executor} {program.op.name}", rows, posted, taken)


def touched(program: Program, row: int, kind: TaskKind) -> list[tuple[int, int, int, int]]:
    tasks, table = program.tasks, program.tasks.table
    at, rank, peer = int(tasks.instruction[row]), int(tasks.rank[row]), int(tasks.peer[row])
    sides = (
        (peer if kind.reads_remote else rank, table.src_buffer[at], tasks.src_offset[row], 0),
        (peer if kind.writes_remote else rank, table.dst_buffer[at], tasks.dst_offset[row], 1),
    )
    size = int(tasks.size[row])
    return [
        (owner * 2 + CCL.index(program.buffers[buffer]), int(start), int(start) + size, writes)
        for owner, buffer, start, writes in sides
        if program.buffers[buffer] in CCL
    ]


def unordered(a: Ends, b: Ends) -> int:
    """How many pairs of accesses of A and B conflict and are in no order."""
    x, y = a.accesses[:, None, :], b.accesses[None, :, :]
    meets = (x[..., 0] == y[..., 0]) & (x[..., 1] < y[..., 2]) & (y[..., 1] < x[..., 2])
    conflicts = meets & ((x[..., 3] | y[..., 3]) == 1)
    return int((conflicts & ((x[..., 4] & y[..., 5]) == 0)).sum())


def early_posts(a: Ends, b: Ends) -> list[Cell]:
    """Return notifies of both that B may post before A has taken its last post."""
    return [cell for cell, bits in b.posted.items() if cell in a.taken and not bits & a.taken[cell]]


def calls_on(topology: Topology) -> list[tuple[type[Executor], OpParam]]:
    """Calls by every executor that suits: each op and mode once, with a sum of fp32 where it takes
    one.
    """
    found: list[tuple[type[Executor], OpParam]] = []
    for executor in EXECUTORS:
        seen = set()
        for op in fitting(executor, topology, 1000):
            if op.dtype is DataType.FP32 and not op.in_place and (op.name, op.mode) not in seen:
                seen.add((op.name, op.mode))
                found.append((executor, op))
    return found


@cache
def programs_on(servers: int, devices: int, preset: str, ccl_bytes: int) -> tuple[Ends, ...]:
    topology = topology_of(servers=servers, devices=devices, preset=preset)
    found = []
    for executor, op in calls_on(topology):
        if servers * devices == 4 and ccl_bytes == 1 << 20 and op.mode is Mode.GRAPH:
            continue  # most graphs use no CCL buffers, and no buffers of other calls
        try:
            found.append(ends_of(recorded(executor, op, topology, ccl_bytes)))
        except HcclError:
            continue  # CCL buffers that are too small for it
    return tuple(found)


def check_pairs(programs: tuple[Ends, ...]) -> None:
    for a, b in product(programs, programs):
        assert not unordered(a, b), f"{b.name} right after {a.name}: CCL buffers"
        assert not early_posts(a, b), f"{b.name} right after {a.name}: notifies"


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("servers", "devices", "preset"),
    [(1, 4, "atlas-800t-a2"), (2, 2, "atlas-800t-a2"), (1, 4, "atlas-900-a3")],
)
def test_every_ordered_pair_is_in_order(servers: int, devices: int, preset: str) -> None:
    programs = programs_on(servers, devices, preset, 1 << 20)
    assert len(programs) >= 20
    assert any(len(p.accesses) for p in programs)
    check_pairs(programs)


@pytest.mark.long
@pytest.mark.parametrize("ccl_bytes", [32 << 10, 1 << 20])
@pytest.mark.parametrize(
    ("servers", "devices", "preset"),
    [
        *((1, 2, preset) for preset in ("atlas-800t-a2", "atlas-900-a3", "atlas-800-9000")),
        *((s, 8 // s, preset) for s in (1, 2, 4) for preset in ("atlas-800t-a2", "atlas-900-a3")),
        *((2, 8, preset) for preset in ("atlas-800t-a2", "atlas-800-9000")),
        (4, 1, "atlas-800t-a2"),
        (1, 4, "300i-duo"),
    ],
)
def test_every_ordered_pair_is_in_order_elsewhere(
    servers: int, devices: int, preset: str, ccl_bytes: int
) -> None:
    programs = programs_on(servers, devices, preset, ccl_bytes)
    assert programs
    check_pairs(programs)


def test_a_program_with_an_open_end_is_in_no_order_with_the_next() -> None:
    program = recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather"), 4)
    tasks = program.tasks
    late = next(
        (post, wait) for post, wait in pairs_of(program) if tasks.rank[post] != tasks.rank[wait]
    )
    whole, open_ended = ends_of(program), ends_of(less(program, *late))
    assert unordered(whole, whole) == 0
    assert unordered(open_ended, whole) > 0
