"""Templates on the flat plane: an executor from a template, and a run that proves it.

executor = flat_executor("all_gather", ring_all_gather, "ring")
program = run_flat(executor, 5, count=100)      one call
check_template("all_gather", ring_all_gather, "ring")      many
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count as counting
from typing import Any, NamedTuple

import numpy as np

from hccl_py.enums import Buffer, DataType, Mode, ReduceOp
from hccl_py.operators import make_operator
from hccl_py.orchestration import Chunks, Region
from hccl_py.orchestration.record import record
from hccl_py.plugins.executor import (
    OpParam,
    PlaneRequest,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
)
from hccl_py.plugins.platforms import Adversary, Schedule
from hccl_py.program.program import Program
from hccl_py.simulator import CostModel, simulate_tasks
from hccl_py.topology import topology_of
from hccl_py.verifier import verify
from hccl_py.verifier.finding import Report
from hccl_py.verifier.numeric import run_numeric
from tests.recording import same_tasks

REDUCTIONS = ("all_reduce", "reduce_scatter", "reduce_scatter_v", "reduce")
ROOTED = ("broadcast", "reduce", "scatter", "gather")
SLOTS_IN = ("reduce_scatter", "reduce_scatter_v", "scatter")
SLOTS_OUT = ("all_gather", "all_gather_v", "gather")
IN_PLACE_IN_GRAPH_MODE = ("all_gather", "all_reduce", "broadcast")
"""Ops whose work lies in the user's output in graph mode."""

Pattern = str | Callable[[int, int], Iterable[int]]
Memory = Any

SIZES = (*range(1, 10), 12, 13, 17)
MANY_SIZES = (*range(1, 18), 31, 32, 33)
MANY = 10
"""Ranks that are not recorded one by one."""
ALL_ROOTS = 9
"""Ranks up to which a check with a seed tries every root."""
PARTS = 5
"""Parts of all calls, of which a check with a seed takes one for every size and root."""

REDUCES = (
    ("fp32", ReduceOp.SUM),
    ("int64", ReduceOp.SUM),
    ("int8", ReduceOp.MAX),
    ("fp16", ReduceOp.PROD),
    ("bf16", ReduceOp.MIN),
)
"""Data types and reduce ops; the hardware cannot do the second and the fourth inline."""

FORMULA = CostModel.of("mesh").formula()

SCHEDULES = tuple(Schedule(seed, adversary) for seed, adversary in enumerate(Adversary))
"""One of every kind."""


def in_turn(case: int) -> list[Schedule]:
    """Return how to run a case, of which there are many, with data. The verifier has proved each of
    them; data is the second opinion, on two cases of every four, under one adversary after another.
    """
    return [SCHEDULES[case // 2 % len(SCHEDULES)]] if case % 4 in (0, 3) else []


@dataclass(frozen=True)
class FlatExecutor:
    """Stages as the executors for one plane do: slots or work in a CCL buffer, the template on it,
    the result to the user.

    The template is called with (stream, plane, chunks or work), and the root where the op has one.
    In op-base mode slots lie `gap` bytes apart; graph mode is there for all-gather, all-reduce and
    broadcast. `lands` says that the template needs a place beside its work in any case.
    """

    op: str
    template: Callable[..., None]
    pattern: Pattern
    gap: int = 0
    lands: bool = False
    algorithm: str = "level0:NA;level1:ring"

    def suits(self, op: OpParam, topology: Topology) -> bool:
        return op.mode is Mode.OP_BASE or self.op in IN_PLACE_IN_GRAPH_MODE

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        lands = self.lands or not rank.inline_reduce
        beside = op.mode is Mode.GRAPH and self.op == "all_reduce" and lands
        memories = (Buffer.USER_OUT, Buffer.SCRATCH) if beside else (None, None)
        slot = rank.ccl_bytes // rank.size - self.gap
        each = slot // 128 * 128 if self.op in SLOTS_IN + SLOTS_OUT else rank.ccl_bytes
        return ResourceRequest(
            planes=(PlaneRequest("flat", self.pattern, *memories),) if rank.size > 1 else (),
            scratch_bytes=op.size if beside else 0,
            max_count=None if op.counts else each // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Any, Any]) -> None:
        work = self._staged(op, rank)
        root = (op.root,) if self.op in ROOTED else ()
        self.template(rank.main, rank.flat, work, *root)
        self._deliver(op, rank, work)

    def _staged(self, op: OpParam, rank: Rank[Any, Any]) -> Memory:
        work: Memory
        if self.op in SLOTS_IN:
            work = self._slots(rank.ccl_in, rank.user_in)
            if self.op != "scatter" or rank.id == op.root:
                rank.main.copy(work, rank.user_in)
        elif self.op in SLOTS_OUT:
            is_graph = op.mode is Mode.GRAPH
            work = rank.stage_out() if is_graph else self._slots(rank.ccl_out, rank.user_out)
            rank.main.copy(work[rank.id], rank.user_in)
        elif self.op == "broadcast":
            is_graph = op.mode is Mode.GRAPH
            work = rank.user_out if is_graph else rank.ccl_in.head(rank.user_in.size)
            if rank.id == op.root:
                rank.main.copy(work, rank.user_in)
        else:
            work = rank.stage_in()
        return work

    def _slots(self, memory: Region, like: Chunks) -> Chunks:
        ends = like.sizes.cumsum(axis=1) + self.gap * np.arange(1, 1 + len(like))
        return Chunks(memory.buffer, ends - like.sizes, like.sizes, like.row)

    def _deliver(self, op: OpParam, rank: Rank[Any, Any], work: Memory) -> None:
        if self.op in ("reduce", "gather") and rank.id != op.root:
            return
        rank.deliver(work[rank.id] if self.op in SLOTS_IN else work)


def flat_executor(
    op_name: str,
    template: Callable[..., None],
    pattern: Pattern,
    *,
    gap: int = 0,
    lands: bool = False,
) -> FlatExecutor:
    """Return an executor that runs one template on the flat plane."""
    return FlatExecutor(op_name, template, pattern, gap, lands)


def flat_op(
    executor: FlatExecutor,
    count: int = 1000,
    dtype: str = "fp32",
    reduce: ReduceOp = ReduceOp.SUM,
    root: int = 0,
    mode: Mode = Mode.OP_BASE,
    counts: Sequence[int] = (),
) -> OpParam:
    """Return the parameters of a call; `counts` makes all_gather and reduce_scatter v-ops."""
    name = executor.op
    return OpParam(
        f"{name}_v" if counts else name,
        max(counts, default=count),
        DataType.parse(dtype),
        reduce if name in REDUCTIONS else None,
        root if name in ROOTED else None,
        mode,
        counts=tuple(counts),
    )


def record_flat(
    executor: FlatExecutor,
    topology: Topology | int,
    op: OpParam,
    ccl_bytes: int = 1 << 20,
    *,
    by_rank: bool = False,
) -> Program:
    """Record a call; a number of ranks stands for one server of so many."""
    if isinstance(topology, int):
        topology = topology_of(topology, preset="mesh")
    operator = make_operator(op.name)
    return record(
        executor,
        op,
        topology,
        operator,
        ccl_bytes,
        by_rank=by_rank,
    )


def run_flat(
    executor: FlatExecutor,
    topology: Topology | int,
    *,
    count: int = 1000,
    dtype: str = "fp32",
    reduce: ReduceOp = ReduceOp.SUM,
    root: int = 0,
    mode: Mode = Mode.OP_BASE,
    counts: Sequence[int] = (),
    ccl_bytes: int = 1 << 20,
    schedules: Sequence[Schedule] = SCHEDULES[:1],
    allowed: Sequence[str] = (),
) -> Program:
    """Record a call, alone as well where ranks are few; verify it, run it with data, and return the
    program.

    Findings of any severity fail it, but for the classes in `allowed` and for slices that begin
    anywhere, because amounts here are small and odd. `schedules` are the
    interleavings to run with data; none for a program that is too large to run.
    """
    if isinstance(topology, int):
        topology = topology_of(topology, preset="mesh")
    op = flat_op(executor, count, dtype, reduce, root, mode, counts)
    program = record_flat(executor, topology, op, ccl_bytes)
    if program.ranks < MANY:
        assert same_tasks(program, record_flat(executor, topology, op, ccl_bytes, by_rank=True))
    _assert_clean(verify(program, product=topology.product), allowed)
    if schedules:
        numeric = run_numeric(program, schedules)
        assert numeric.ok, numeric.wrong
    return program


def check_template(
    op_name: str,
    template: Callable[..., None],
    pattern: str | Callable[[int], Pattern],
    *,
    sizes: Sequence[int] = SIZES,
    reduces: Sequence[tuple[str, ReduceOp]] = REDUCES,
    lands: bool = False,
    seed: int | None = None,
) -> None:
    """Run a template on several sizes, roots, kinds of links, data types and amounts: even ones,
    uneven ones with slots that lie apart, and so few elements that most chunks are empty.

    Every size and root gets one of them in turn, and with a seed a fifth of them, another one
    under another seed; then small sizes have every root. The links may be named by a function
    of the root, which is 0 for ops without one.
    """
    number = counting()
    for size in sizes:
        for root in _roots(op_name, size, seed is not None):
            links = pattern if isinstance(pattern, str) else pattern(root)
            calls = list(_calls(op_name, size, reduces))
            at = next(number)
            chosen = [calls[at * 7 % len(calls)]]
            if seed is not None:
                chosen = calls[(seed + at) % min(PARTS, len(calls)) :: PARTS]
            for each in chosen:
                executor = FlatExecutor(op_name, template, links, each.gap, lands)
                run_flat(
                    executor,
                    each.topology,
                    count=each.amount,
                    dtype=each.dtype,
                    reduce=each.reduce,
                    root=root,
                    mode=each.mode,
                    counts=each.counts,
                    schedules=in_turn(at),
                    allowed=("REDUNDANT_SYNC", "RESOURCE_UNUSED"),
                )


class _Call(NamedTuple):
    topology: Topology
    amount: int
    counts: tuple[int, ...]
    gap: int
    dtype: str
    reduce: ReduceOp
    mode: Mode


def layouts(size: int) -> list[Topology]:
    """Return so many ranks with SDMA only, with RDMA only, and with both."""
    one, each = topology_of(size, preset="mesh"), topology_of(servers=size, devices=1)
    if size < 3:
        return [one, each]
    return [one, each, Topology(one.product, (size // 2, size - size // 2))]


def _calls(op_name: str, size: int, reduces: Sequence[tuple[str, ReduceOp]]) -> Iterator[_Call]:
    uneven = tuple(rank * 7 % 5 * 13 for rank in range(size))
    amounts: list[tuple[int, tuple[int, ...], int]] = [(400, (), 0), (3, (), 0)]
    if op_name in ("all_gather", "reduce_scatter") and size > 1:
        amounts += [(0, uneven, 0), (0, uneven[::-1], 64)]
    modes = list(Mode) if op_name in IN_PLACE_IN_GRAPH_MODE else [Mode.OP_BASE]
    for topology in layouts(size):
        for count, counts, gap in amounts:
            for dtype, reduce in reduces if op_name in REDUCTIONS else reduces[:1]:
                for mode in modes:
                    yield _Call(topology, count, counts, gap, dtype, reduce, mode)


def _roots(op_name: str, size: int, thorough: bool) -> Sequence[int]:
    if op_name not in ROOTED:
        return (0,)
    if thorough and size <= ALL_ROOTS:
        return range(size)
    return sorted({0, size // 2, size - 1})


def moves(program: Program) -> tuple[list[int], list[int]]:
    """Return how many data tasks every rank has on its links, and how many bytes they move."""
    tasks = program.tasks
    on_links = tasks.table.moves_data[tasks.instruction] & (tasks.end >= 0)
    counts = np.bincount(tasks.rank[on_links], minlength=program.ranks)
    sizes = np.bincount(tasks.rank[on_links], tasks.size[on_links], minlength=program.ranks)
    return counts.tolist(), sizes.astype(np.int64).tolist()


def formula_us(program: Program) -> float:
    """Return the time that α, β and γ of the links make."""
    return simulate_tasks(program, None, FORMULA).total_us


def _assert_clean(report: Report, allowed: Sequence[str]) -> None:
    wrong = [finding for finding in report if finding.name not in ("UNALIGNED", *allowed)]
    assert not wrong, "\n".join(f"{f.name} {f.message} {f.source}" for f in wrong[:5])
    assert not report.notes, report.notes
