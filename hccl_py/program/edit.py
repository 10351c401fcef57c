"""Programs with tasks taken out or moved: for finding out what a program needs, by breaking it.

Everything else stays as it was requested and allocated, so that cells and ends keep their numbers.
A batch stays whole where all its ranks lose or move the same instructions; else it falls into parts
whose ranks do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from hccl_py.program.instruction import Batch, Instruction
from hccl_py.program.narrowing import Narrower
from hccl_py.program.program import Program
from hccl_py.values import IntArray


def part_of(program: Program, ranks: IntArray, most: int) -> Program:
    """Return the program of some ranks, with the first `most` tasks of each of their streams; the
    rest is not expanded.
    """
    narrowed, batches = Narrower(), []
    for batch in program.batches:
        places = np.flatnonzero(np.isin(batch.ranks, ranks))
        if len(places):
            kept = narrowed(_first_of_each_stream(batch, most), places)
            batches.append(Batch(batch.ranks[places], kept))
    return replace(program, batches=tuple(batches))


def _first_of_each_stream(batch: Batch, most: int) -> Iterator[Instruction]:
    found: dict[int, int] = {}
    for instruction in batch.instructions:
        count = found[instruction.stream] = found.get(instruction.stream, 0) + 1
        if count <= most:
            yield instruction


def without(program: Program, keep: npt.NDArray[np.bool_]) -> Program:
    """Return the program less the task rows that are not kept; `keep` has one value per row."""
    if np.shape(keep) != (len(program.tasks),):
        raise ValueError(f"{len(program.tasks)} rows need a mask of as many, not {np.shape(keep)}")
    return rearranged(program, np.flatnonzero(keep))


def swapped(program: Program, row_a: int, row_b: int) -> Program:
    """Return the program with two task rows of one stream in each other's place."""
    tasks = program.tasks
    a, b = (
        (int(tasks.rank[row]), int(tasks.table.stream[tasks.instruction[row]]))
        for row in (row_a, row_b)
    )
    if a != b:
        raise ValueError(f"rows {row_a} and {row_b} are not of one stream: {a} and {b}")
    rows = np.arange(len(tasks))
    rows[[row_a, row_b]] = row_b, row_a
    return rearranged(program, rows)


def rearranged(program: Program, rows: IntArray) -> Program:
    """Return the program of these task rows, in this order, in which those of one rank stay
    together; a row may be left out or come twice.
    """
    first, rank = program.tasks.first, program.tasks.rank[rows]
    if (np.diff(rank) < 0).any():
        raise ValueError("rows are ordered by rank, and stay with their rank")
    bounds = np.searchsorted(rank, np.arange(program.ranks + 1))
    batches, narrower = [], Narrower()
    for batch in program.batches:
        ranks = batch.ranks.tolist()
        batches += _parts(
            narrower, batch, [rows[bounds[r] : bounds[r + 1]] - first[r] for r in ranks]
        )
    batches.sort(key=lambda batch: int(batch.ranks[0]))
    return replace(program, batches=tuple(batches))


def _parts(narrower: Narrower, batch: Batch, picks: list[IntArray]) -> list[Batch]:
    """Return the ranks of a batch by the instructions that they pick, in the order in which they
    do.
    """
    groups: dict[bytes, list[int]] = {}
    for lane, pick in enumerate(picks):
        groups.setdefault(pick.tobytes(), []).append(lane)
    return [_part(narrower, batch, np.array(lanes), picks[lanes[0]]) for lanes in groups.values()]


def _part(narrower: Narrower, batch: Batch, lanes: IntArray, pick: IntArray) -> Batch:
    """Return some ranks of a batch with some of its instructions."""
    chosen = tuple(batch.instructions[k] for k in pick.tolist())
    if len(lanes) == len(batch.ranks):
        return Batch(batch.ranks, chosen)
    return Batch(batch.ranks[lanes], narrower(chosen, lanes))
