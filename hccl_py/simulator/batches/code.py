"""A program in the form that the loops over batches read: numbers for every instruction."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

import numpy as np

from hccl_py.clocks.durations import Durations, Lanes
from hccl_py.enums import RDMA_WRITES, LinkKind, TaskKind
from hccl_py.program.instruction import Instruction
from hccl_py.program.program import Program
from hccl_py.simulator.batches.columns import ColumnPool
from hccl_py.simulator.batches.state import Instructions
from hccl_py.values import Floats, IntArray, PerRank, RankInt, values_of


def compiled(
    program: Program, durations: Durations
) -> tuple[list[tuple[IntArray, int]], Instructions]:
    """Sort each batch's instructions by stream and pool their columns; return the ranks and the
    stream of every queue, and the instructions of all.
    """
    compiler = _Compiler(program, durations)
    queues, first, lanes, kinds = [], [0], [0], []
    columns: list[tuple[int, ...]] = []
    for batch in program.batches:
        compiler.enter(batch.ranks)
        by_stream: dict[int, list[Instruction]] = {}
        for instruction in batch.instructions:
            by_stream.setdefault(instruction.stream, []).append(instruction)
        for stream, instructions in by_stream.items():
            queues.append((batch.ranks, stream))
            kinds += [instruction.kind for instruction in instructions]
            for step in _steps(instructions, durations.joins):
                columns += compiler.of_step(step)
            first.append(len(kinds))
            lanes.append(lanes[-1] + len(batch.ranks))
    return queues, Instructions(
        np.array(first),
        np.array(lanes),
        np.array(kinds, np.int8),
        np.array(columns, np.int64).reshape(-1, 6),
        compiler.pool.pooled(),
    )


class _Compiler:
    """Turns instructions into six numbers: cell, connection (-1: none), and for the time on the
    stream and the time after it the index column and the place among the pooled durations.
    """

    def __init__(self, program: Program, durations: Durations) -> None:
        self.pool = ColumnPool()
        self._transports = program.transports
        self._durations = durations
        self._links: dict[object, tuple[Lanes, int]] = {}
        self._known: dict[object, tuple[int, ...]] = {}
        self._steps: dict[object, tuple[int, int]] = {}
        self._ranks = np.zeros(0, np.int64)
        self._nothing = self.pool.duration(0, "nothing", lambda size: np.zeros(len(size)))

    def enter(self, ranks: IntArray) -> None:
        """Go on with the batch of these ranks."""
        self._ranks = ranks
        self._links.clear()
        self._known.clear()
        self._steps.clear()

    def of_step(self, step: list[Instruction]) -> Iterator[tuple[int, ...]]:
        """Yield the numbers of joined instructions: the last one takes as long as the longest."""
        if len(step) == 1:
            yield self.columns(step[0])
            return
        for number, instruction in enumerate(step, 1):
            cell, connection, _, _, *after = self.columns(instruction)
            on_stream = self._longest(step) if number == len(step) else self._nothing
            yield (cell, connection, *on_stream, *after)

    def columns(self, i: Instruction) -> tuple[int, ...]:
        """Return the numbers of one instruction; most are like one before."""
        kind = i.kind
        if kind == TaskKind.NOTIFY_WAIT:
            key: object = (kind, _identity(i.cell))
        elif kind == TaskKind.NOTIFY_POST:
            key = (kind, _identity(i.cell), _identity(i.end))
        else:
            key = (kind, _identity(i.size), _identity(i.end), _identity(i.duration_us))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._numbers(i)
        return found

    def _numbers(self, i: Instruction) -> tuple[int, ...]:
        if i.kind == TaskKind.NOTIFY_WAIT:
            return self._wait(i)
        if i.kind == TaskKind.NOTIFY_POST:
            return self._post(i)
        if i.kind == TaskKind.COMPUTE:
            return self._compute(i)
        return self._move(i)

    def _compute(self, i: Instruction) -> tuple[int, ...]:
        of, _ = self._link(-1)
        us = values_of(i.duration_us)
        differ = isinstance(i.duration_us, PerRank)
        on_stream = self.pool.duration(
            PerRank(np.zeros(len(self._ranks), np.int64)) if differ else _spread(of, 0),
            ("compute", _identity(i.duration_us), self._key(of)),
            lambda size: self._durations.of_compute(of, np.broadcast_to(us, len(size))),
        )
        return (0, -1, *on_stream, *self._nothing)

    def _wait(self, i: Instruction) -> tuple[int, ...]:
        on_stream = self._notifying("wait", self._durations.wait_us)
        return (self.pool.integer(i.cell), -1, *on_stream, *self._nothing)

    def _notifying(self, name: str, us: Floats) -> tuple[int, int]:
        """Return the time on the stream of posts or waits, by class of the rank."""
        of, _ = self._link(-1)
        return self.pool.duration(
            _spread(of, 0),
            (name, "on stream", self._key(of)),
            lambda size: np.broadcast_to(us[of], len(size)),
        )

    def _post(self, i: Instruction) -> tuple[int, ...]:
        of, connection = self._link(i.end)
        pays = self._pays_alpha(of, i)
        varies = of if isinstance(pays, int) else pays
        after = self.pool.duration(
            _spread(varies, 0),
            ("post", self._pays_key(pays, i), self._key(varies, i.end)),
            lambda size: np.broadcast_to(self._durations.of_post(of, pays), len(size)),
        )
        on_stream = self._notifying("post", self._durations.post_us)
        return (self.pool.integer(i.cell), connection, *on_stream, *after)

    def _pays_alpha(self, of: Lanes, i: Instruction) -> Lanes:
        """Return whether posts pay α; numbers of notifies are the same for all lanes."""
        by_number = self._durations.alpha_rule.of_messages is None
        return self._durations.pays_alpha(of, _first(i.cell) if by_number else values_of(i.cell))

    def _pays_key(self, pays: Lanes, i: Instruction) -> object:
        return pays if isinstance(pays, int) else (id(self._ranks), _identity(i.cell))

    def _move(self, i: Instruction) -> tuple[int, ...]:
        of, connection = self._link(i.end)
        size, key = _spread(of, i.size), (int(i.kind), self._key(of, i.end))
        kind, durations = int(i.kind), self._durations
        on_stream = self.pool.duration(
            size, ("stream", key), lambda s: durations.on_stream(kind, of, s)
        )
        if i.kind not in RDMA_WRITES:
            return (0, -1, *on_stream, *self._nothing)
        after = self.pool.duration(
            size, ("connection", key), lambda s: durations.on_connection(kind, of, s)
        )
        return (0, connection, *on_stream, *after)

    def _longest(self, step: list[Instruction]) -> tuple[int, int]:
        """Return the time on the stream of the longest instruction, rank by rank."""
        links = [self._link(i.end)[0] for i in step]
        pairs = list(zip(step, links, strict=True))
        key = (
            "step",
            *((int(i.kind), _identity(i.size), self._key(of, i.end)) for i, of in pairs),
        )
        if key not in self._steps:
            us = [self._durations.on_stream(i.kind, of, values_of(i.size)) for i, of in pairs]
            longest = reduce(np.maximum, us)
            size = PerRank(np.zeros(len(self._ranks), np.int64)) if longest.ndim else 0
            self._steps[key] = self.pool.duration(
                size, key, lambda size: np.broadcast_to(longest, len(size))
            )
        return self._steps[key]

    def _link(self, end: RankInt) -> tuple[Lanes, int]:
        """Return the class of links (an array where lanes differ) and the column of RDMA
        connections.
        """
        key = _identity(end)
        if key not in self._links:
            self._links[key] = self._find_link(end)
        return self._links[key]

    def _find_link(self, end: RankInt) -> tuple[Lanes, int]:
        of = self._durations.classes(self._ranks, values_of(end))
        if isinstance(end, int) and end < 0:
            return of, -1
        ends = np.atleast_1d(values_of(end))
        is_rdma = self._transports.kind[ends] == LinkKind.RDMA
        connections = (
            self.pool.integer(PerRank.of(np.where(is_rdma, ends, -1))) if is_rdma.any() else -1
        )
        return of, connections

    def _key(self, of: Lanes, end: RankInt = -1) -> object:
        if isinstance(of, int):
            return of
        return id(self._ranks), _identity(end)


def _steps(instructions: list[Instruction], joins: bool) -> Iterator[list[Instruction]]:
    """Yield instructions of a stream by steps: alone, or together where they are joined."""
    step: list[Instruction] = []
    for i in instructions:
        goes_on = joins and i.joined and i.kind.moves_data and step and step[-1].kind.moves_data
        if step and not goes_on:
            yield step
            step = []
        step.append(i)
    if step:
        yield step


def _spread(of: Lanes, size: RankInt) -> RankInt:
    """Return the size as a plain column of lanes where the lanes' classes differ."""
    if isinstance(of, int):
        return size
    return PerRank(np.broadcast_to(values_of(size), len(of)).astype(np.int64))


def _identity(value: RankInt | float) -> object:
    """Return what tells columns apart; valid as long as their program lives."""
    return value.key() if isinstance(value, PerRank) else value


def _first(value: RankInt) -> int:
    return int(value.values()[0]) if isinstance(value, PerRank) else value
