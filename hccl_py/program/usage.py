"""Use of a program's resources, compared with the requests of its ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_py.enums import READS, WRITES, Buffer
from hccl_py.program.program import Program
from hccl_py.values import IntArray


@dataclass(frozen=True, eq=False)
class ResourceUsage:
    """Per rank: sub streams, local notifies, transports used; the scratch bytes reached."""

    sub_streams: IntArray
    notifies: IntArray
    transports: IntArray
    scratch_bytes: IntArray


def usage_of(program: Program) -> ResourceUsage:
    """Count the resources that tasks of each rank use."""
    tasks, transports = program.tasks, program.transports
    rank = tasks.rank.astype(np.int64)
    sub = tasks.stream > 0
    local = tasks.cell >= transports.cells
    remote = tasks.end >= 0
    return ResourceUsage(
        sub_streams=_distinct(rank[sub], tasks.stream[sub], program.ranks),
        notifies=_distinct(rank[local], tasks.cell[local], program.ranks),
        transports=transports.counts(program.ranks, np.unique(tasks.end[remote])),
        scratch_bytes=_reached_scratch(program),
    )


def overwrites_inputs(program: Program) -> bool:
    """Return True if running the program may change some rank's input: in place, or by a write."""
    name = Buffer.USER_IN.spelling
    at = program.buffers.index(name) if name in program.buffers else -1
    return bool(program.op.in_place) or any(
        step.kind.moves_data and step.dst_buffer == at
        for batch in program.batches
        for step in batch.instructions
    )


def differences(program: Program) -> list[str]:
    """Return one sentence for every rank and resource where use differs from the declaration.

    Scratch counts as used where any of it is: sizes are rounded up.
    """
    used, declared = usage_of(program), program.declared
    pairs = {
        "sub streams": (declared.sub_streams, used.sub_streams),
        "notifies": (declared.notifies, used.notifies),
        "transports": (program.transports.counts(program.ranks), used.transports),
        "scratch bytes": (
            declared.scratch_bytes,
            np.where(used.scratch_bytes > 0, declared.scratch_bytes, 0),
        ),
    }
    return [
        f"rank {rank}: {want[rank]} {what} declared, {have[rank]} used"
        for what, (want, have) in pairs.items()
        for rank in np.flatnonzero(want != have).tolist()
    ]


def _distinct(rank: IntArray, what: npt.NDArray[Any], ranks: int) -> IntArray:
    """Return the number of different things that each rank names; they are numbered from 0."""
    things = int(what.max(initial=0)) + 1
    return np.bincount(np.unique(rank * things + what) // things, minlength=ranks)


def _reached_scratch(program: Program) -> IntArray:
    """Return the largest end of any range of scratch, per rank that owns the memory."""
    tasks, reached = program.tasks, np.zeros(program.ranks, np.int64)
    if "SCRATCH" not in program.buffers:
        return reached
    number = program.buffers.index("SCRATCH")
    reads, writes = np.isin(tasks.kind, READS), np.isin(tasks.kind, WRITES)
    for side, size, away in (("src", tasks.size, reads), ("dst", tasks.dst_size, writes)):
        here = getattr(tasks.table, f"{side}_buffer")[tasks.instruction] == number
        owner = np.where(away, tasks.peer, tasks.rank)[here]
        np.maximum.at(reached, owner, (getattr(tasks, f"{side}_offset") + size)[here])
    return reached
