"""The summation tree of every element of a call, from its program and for all inputs at once.

The verifier follows memory through the program byte by byte: every reduction makes a content of
two. Here those contents become trees. That walk is one order of the tasks. Another order gives
other trees only where two reductions into one place are in no order: the verifier's vector clocks
find all such pairs, and the tree then says that parts are added as they arrive. Programs whose
tasks race in any other way have no trees.

A reduction can only meet an earlier one at its place if hardware adds atomically; where no sum is
made onto an atomic sum, the clocks need not run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, ReduceOp, TaskKind
from hccl_py.errors import NotSupportedError
from hccl_py.numerics.sum_trees import Forest, SumTree
from hccl_py.program.program import Program
from hccl_py.values import IntArray
from hccl_py.verifier.analysis.clocks import emissions
from hccl_py.verifier.analysis.contents import Contents, contents_of
from hccl_py.verifier.analysis.meaning import EVERYONE, expected_ranges
from hccl_py.verifier.analysis.memory import MemoryIntervals, memory_of
from hccl_py.verifier.analysis.ordering import MOST_EMITTED, ordering_of
from hccl_py.verifier.analysis.outputs import Outputs, outputs_of
from hccl_py.verifier.analysis.unrolled import Unrolled, unrolled
from hccl_py.verifier.subject import Options, Subject

_RACES = (emissions.BESIDE_READ, emissions.BESIDE_WRITE, emissions.REUSE)
_ATOMIC = [kind for kind in TaskKind if kind.is_atomic]


@dataclass(frozen=True, eq=False)
class ElementTrees:
    """Elements start[k] .. stop[k] - 1 of the output of rank[k] have tree `trees[tree[k]]`.

    Ranges are in the order of ranks and elements, as long as they can be; only outputs that hold a
    reduction have any. `trees` are in the order in which elements have them. `round_count` is the
    number of elements of each round but the last, 0 where there is one round.
    """

    op: OpParam
    ranks: int
    executor: str
    rounds: int
    round_count: int
    trees: tuple[SumTree, ...]
    rank: IntArray
    start: IntArray
    stop: IntArray
    tree: IntArray

    @property
    def is_fixed(self) -> bool:
        """True if no sum is made in the order of arrival, or if any order gives the same bits."""
        return not order_matters(self.op) or all(tree.is_fixed for tree in self.trees)

    @cached_property
    def agrees(self) -> bool:
        """True if every rank that holds an element has the same tree for it (all_reduce)."""
        ends = np.flatnonzero(np.diff(self.rank, append=-1))
        rows = np.split(np.stack([self.start, self.stop, self.tree], axis=1), ends[:-1] + 1)
        return all(np.array_equal(row, rows[0]) for row in rows[1:])

    def of(self, rank: int, element: int) -> SumTree:
        """Return the tree of one element of a rank's output."""
        mine = (self.rank == rank) & (self.start <= element) & (element < self.stop)
        if not mine.any():
            raise NotSupportedError(
                f"Element {element} of rank {rank}'s output is no reduction.",
                "Name an element of an output that the op reduces into.",
            )
        return self.trees[int(self.tree[np.argmax(mine)])]

    @cached_property
    def digest(self) -> str:
        """A hash of all elements' trees."""
        import hashlib

        found = hashlib.sha256(repr((self.op.name, self.op.dtype, self.op.reduce)).encode())
        for tree in self.trees:
            found.update(tree.digest)
        for column in (self.rank, self.start, self.stop, self.tree):
            found.update(np.ascontiguousarray(column, np.int64).tobytes())
        return found.hexdigest()


def order_matters(op: OpParam) -> bool:
    """Return True if the order of a reduction can change its bits: sums and products of floats."""
    return op.reduce in (ReduceOp.SUM, ReduceOp.PROD) and op.dtype.is_float


def trees_of(program: Program, *, is_trusted: bool = False) -> ElementTrees:
    """Return the trees of a program's elements.

    A program that is trusted is known to have no races but for unordered sums. Raises
    NotSupportedError for a program of an op that reduces nothing, and for one that does not end,
    computes something else than its op, or races.
    """
    op = program.op
    if not program.has_op or op.reduce is None:
        raise NotSupportedError(
            f"{program.op_name} reduces nothing: it moves bytes as they are.",
            "Ask for an op that reduces: all_reduce, reduce_scatter, reduce.",
        )
    subject = Subject(program, Options())
    layouts = subject.in_place
    memory = memory_of(subject, layouts[0][1] if layouts else None)
    run = unrolled(program, 1)
    if len(run.stuck):
        raise _refused(program, "it never ends")
    contents = contents_of(memory, run.order[run.order < run.rows])
    outputs = outputs_of(contents, expected_ranges(op, program.ranks))
    outputs = _reductions(program, outputs)
    unordered = _unordered(program, contents, run, memory, is_trusted)
    return _ranges(program, outputs, _trees(program, contents, outputs.content, unordered))


def _refused(program: Program, why: str) -> NotSupportedError:
    name = program.executor or program.op.name
    return NotSupportedError(
        f"{name} has no bits to speak of: {why}.", "`hccl-py check` says where and why."
    )


def _reductions(program: Program, outputs: Outputs) -> Outputs:
    if outputs.is_wrong.any() or (outputs.content < 0).any():
        raise _refused(program, "its result is not that of the op")
    chosen = outputs.source == EVERYONE
    names = ("row", "place", "rank", "source", "offset", "start", "stop", "content", "shift")
    columns = {name: getattr(outputs, name)[chosen] for name in (*names, "writer", "is_wrong")}
    return Outputs(**columns)


def _unordered(
    program: Program, contents: Contents, run: Unrolled, memory: MemoryIntervals, is_trusted: bool
) -> set[tuple[int, int]]:
    """Return pairs of moves that add to one place in no order."""
    sums, ranks = contents.sums, program.ranks
    kinds = program.tasks.kind[memory.transfers.row]
    is_atomic = np.isin(kinds, _ATOMIC)
    onto = np.flatnonzero(is_atomic[sums.move] & (sums.left >= ranks))
    if is_trusted and not is_atomic[sums.move[sums.left[onto] - ranks]].any():
        return set()
    emitted = ordering_of(run, memory, meets=False).emitted
    if len(emitted) >= MOST_EMITTED:
        raise _refused(program, "too many of its tasks are in no order")
    emitted = emitted[(emitted[:, 1:3] < run.rows).all(axis=1)]
    if np.isin(emitted[:, 0], _RACES).any():
        raise _refused(program, "tasks race, so that the data that they read depends on timing")
    pairs = emitted[emitted[:, 0] == emissions.UNORDERED_SUM, 1:3]
    move_of_row = np.full(max(run.rows, 1), -1, np.int64)
    move_of_row[memory.transfers.row] = np.arange(len(memory.transfers))
    return {(a, b) for pair in move_of_row[pairs].tolist() for a, b in (pair, pair[::-1])}


def _trees(
    program: Program, contents: Contents, roots: IntArray, unordered: set[tuple[int, int]]
) -> dict[int, SumTree]:
    """Return the trees of contents that outputs hold."""
    forest, ranks = Forest(program.ranks), program.ranks
    tasks, table = program.tasks, program.tasks.table
    move: list[int] = contents.sums.move.tolist()
    row = contents.memory.transfers.row[contents.sums.move]
    adds = np.append(tasks.adds_to_sum, False)
    columns = table.dtype[tasks.instruction[row]], table.reduce[tasks.instruction[row]]
    how = list(zip(*(c.tolist() for c in (*columns, adds[row], adds[row + 1])), strict=True))
    types = {key: (DataType.from_number(key[0]), ReduceOp(key[1])) for key in set(how)}
    left: list[int] = contents.sums.left.tolist()
    right: list[int] = contents.sums.right.tolist()
    found = list(forest.inputs)
    for k, (into, added) in enumerate(zip(left, right, strict=True)):
        base, parts, moves = into, [found[added]], [move[k]]
        # `base` is where the order begins to be known: all sums on the way down to it are made by
        # moves in no order with one that is made later, `parts` are what they add.
        at, pending = into, [found[added]]
        below = [move[k]]
        while unordered and at >= ranks:
            pending.append(found[right[at - ranks]])
            below.append(move[at - ranks])
            if any((below[-1], one) in unordered for one in moves):
                base, parts, moves = left[at - ranks], list(pending), list(below)
            at = left[at - ranks]
        (dtype, reduce), (*_, adds_to_sum, goes_on) = types[how[k]], how[k]
        kept = DataType.FP32 if adds_to_sum or goes_on else dtype
        tree = forest.sum((found[base], *parts[::-1]), kept, reduce)
        found.append(forest.rounded(tree, dtype) if adds_to_sum and not goes_on else tree)
    return {root: found[root] for root in np.unique(roots).tolist()}


def _ranges(program: Program, outputs: Outputs, trees: dict[int, SumTree]) -> ElementTrees:
    op, unit = program.op, program.op.unit
    base = np.zeros(program.ranks, np.int64)
    expected = expected_ranges(op, program.ranks)
    # An output's bytes by their place in it: `offset` counts from the input's beginning.
    base[expected.rank] = expected.offset - expected.start
    start = (outputs.offset - base[outputs.rank]) // unit
    stop = start + (outputs.stop - outputs.start) // unit
    order = np.lexsort((start, outputs.rank))
    numbers: dict[SumTree, int] = {}
    tree = np.array(
        [numbers.setdefault(trees[c], len(numbers)) for c in outputs.content[order].tolist()],
        np.int64,
    )
    rank, start, stop = outputs.rank[order], start[order], stop[order]
    is_new = np.ones(len(order), bool)
    is_new[1:] = (rank[1:] != rank[:-1]) | (tree[1:] != tree[:-1]) | (start[1:] != stop[:-1])
    first = np.flatnonzero(is_new)
    last = np.append(first[1:], len(order)) - 1
    return ElementTrees(
        op,
        program.ranks,
        program.executor,
        program.rounds,
        _round_count(program),
        tuple(numbers),
        rank[first],
        start[first],
        stop[last],
        tree[first],
    )


def _round_count(program: Program) -> int:
    """Return the elements of a full round: the second one begins so far into the user's input."""
    tasks, table = program.tasks, program.tasks.table
    if program.rounds < 2 or "IN" not in program.buffers:
        return 0
    is_second = (table.round == 1) & (table.src_buffer == program.buffers.index("IN"))
    offsets = tasks.src_offset[is_second[tasks.instruction] & (tasks.size > 0)]
    return int(offsets.min(initial=program.op.size)) // program.op.unit
