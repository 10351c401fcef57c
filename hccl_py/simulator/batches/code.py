"""A program in the form that the loops over batches read: numbers for every instruction."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import pairwise, repeat
from typing import TypeAlias

import numpy as np

from hccl_py.clocks.durations import (
    BatchColumns,
    CostColumns,
    Durations,
    Lanes,
    identity,
    step_begins,
)
from hccl_py.enums import POST, RDMA_WRITES, WAIT
from hccl_py.program.instruction import Instruction
from hccl_py.program.program import Program
from hccl_py.simulator.batches.columns import ColumnPool
from hccl_py.simulator.batches.state import Instructions
from hccl_py.values import IntArray, PerRank, values_of


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
        flows: dict[int, list[Lanes]] = {}
        for instruction in batch.instructions:
            by_stream.setdefault(instruction.stream, []).append(instruction)
        for instruction, several in zip(batch.instructions, durations.flows(batch), strict=False):
            flows.setdefault(instruction.stream, []).append(several)
        for stream, instructions in by_stream.items():
            queues.append((batch.ranks, stream))
            kinds += [instruction.kind for instruction in instructions]
            uses = zip(instructions, flows.get(stream, repeat(1)), strict=False)
            if durations.joins:
                for step in _steps(list(uses)):
                    columns += compiler.of_step(step)
            else:
                columns += [compiler.numbers(i, several) for i, several in uses]
            first.append(len(kinds))
            lanes.append(lanes[-1] + len(batch.ranks))
    return queues, Instructions(
        np.array(first),
        np.array(lanes),
        np.array(kinds, np.int8),
        np.array(columns, np.int64).reshape(-1, 6),
        compiler.pool.pooled(),
    )


_Use: TypeAlias = tuple[Instruction, Lanes]
"""An instruction, and how many flows share the rate of its device."""


class _Compiler:
    """Turns instructions into six numbers: cell, connection (-1: none), and for the time on the
    stream and the time after it the index column and the place among the pooled durations.
    """

    def __init__(self, program: Program, durations: Durations) -> None:
        self.pool = ColumnPool()
        self._is_rdma = program.transports.is_rdma
        self._durations = durations
        self._known: dict[object, tuple[int, ...]] = {}
        self._connections: dict[object, int] = {}
        self._steps: dict[object, tuple[int, int]] = {}
        self.enter(np.zeros(0, np.int64))

    def enter(self, ranks: IntArray) -> None:
        """Go on with the batch of these ranks."""
        self._lanes = len(ranks)
        self._columns = BatchColumns(self._durations, ranks)
        self._known.clear()
        self._connections.clear()
        self._steps.clear()

    def of_step(self, step: list[_Use]) -> Iterator[tuple[int, ...]]:
        """Yield the numbers of joined instructions: the last one takes as long as the longest."""
        if len(step) == 1:
            yield self.numbers(*step[0])
            return
        nothing = self.pool.duration(np.zeros(()))
        for number, use in enumerate(step, 1):
            cell, connection, _, _, *after = self.numbers(*use)
            on_stream = self._longest(step) if number == len(step) else nothing
            yield (cell, connection, *on_stream, *after)

    def numbers(self, i: Instruction, flows: Lanes) -> tuple[int, ...]:
        """Return the numbers of one instruction; most are like one before."""
        key = i.kind, *map(identity, (i.cell, i.end, i.size, i.duration_us, flows))
        if key not in self._known:
            columns = self._columns.of(i, flows)
            times = self.pool.durations(columns, self._lanes, self._durations.times)
            cell = self.pool.integer(i.cell) if i.kind in (POST, WAIT) else 0
            self._known[key] = (cell, self._connection(i), *times)
        return self._known[key]

    def _longest(self, step: list[_Use]) -> tuple[int, int]:
        """Return the time on the stream of the longest instruction, rank by rank."""
        columns = [self._columns.of(*use) for use in step]
        key = tuple(tuple(map(identity, some)) for some in columns)
        if key not in self._steps:
            plain = (CostColumns(*map(values_of, some)) for some in columns)
            us = reduce(np.maximum, [self._durations.times(some).stream_us for some in plain])
            self._steps[key] = self.pool.duration(us)
        return self._steps[key]

    def _connection(self, i: Instruction) -> int:
        """Return the column of RDMA connections of a post or an RDMA write; -1 for none."""
        if (i.kind != POST and i.kind not in RDMA_WRITES) or (isinstance(i.end, int) and i.end < 0):
            return -1
        key = identity(i.end)
        if key not in self._connections:
            ends = np.atleast_1d(values_of(i.end))
            is_rdma = self._is_rdma[ends]
            column = PerRank.of(np.where(is_rdma, ends, -1))
            self._connections[key] = self.pool.integer(column) if is_rdma.any() else -1
        return self._connections[key]


def _steps(instructions: list[_Use]) -> list[list[_Use]]:
    """Return the instructions of a stream by steps: alone, or together where they are joined."""
    joined = np.array([instruction.joined for instruction, _ in instructions])
    moves = np.array([instruction.kind.moves_data for instruction, _ in instructions])
    begins = step_begins(joined, moves, np.zeros(1, np.int64)).tolist()
    return [instructions[a:b] for a, b in pairwise([*begins, len(instructions)])]
