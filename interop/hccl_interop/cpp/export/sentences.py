"""A sentence for every phase of a kernel: which ranks send to which, and what receivers do then."""

from __future__ import annotations

import re

import numpy as np

from hccl_py.enums import READS, REDUCES, WRITES, TaskKind
from hccl_py.program.program import Program
from hccl_py.trace.pictures.pairings import ServerPlaces, clauses_of, ending_of, sentence
from hccl_py.values import IntArray

_COUNTED = re.compile(r"[\s\d\[\](),/]+$")
"""What distinguishes the turns of a phase in its labels: the 2/3, 4 or [0, 1] at their ends."""

_WAITS = "Ranks wait for one another; nothing is sent."


def phase_of(label: str) -> str:
    """Return a label without the number of the turn."""
    return _COUNTED.sub("", label)


def sentences_of(program: Program, places: ServerPlaces) -> dict[str, str]:
    """Return a sentence for every phase by its name; "" where it has no task between ranks."""
    names = np.array([phase_of(label) for label in program.labels] + [""])
    tasks = program.tasks
    phase = names[tasks.table.label[tasks.instruction]]  # without a label: the last name
    return {name: _said(program, phase == name, places) for name in np.unique(phase).tolist()}


def _said(program: Program, own: IntArray, places: ServerPlaces) -> str:
    """Return the sentence of the tasks of a mask."""
    tasks = program.tasks
    kind, rank, peer = tasks.kind[own], tasks.rank[own], tasks.peer[own]
    reads, writes = np.isin(kind, READS), np.isin(kind, WRITES)
    sends = reads | writes
    if not sends.any():
        is_remote = (kind == TaskKind.NOTIFY_POST) & (tasks.end[own] >= 0)
        return _WAITS if is_remote.any() else ""
    sender, receiver = np.where(reads, peer, rank)[sends], np.where(reads, rank, peer)[sends]
    pairs = np.unique(sender * program.ranks + receiver)
    ending = ending_of(
        reads=bool(reads[sends].all()),
        reduces=bool(np.isin(kind[sends], REDUCES).all()),
        adds=bool((kind == TaskKind.REDUCE).any()),
    )
    return sentence(clauses_of(*np.divmod(pairs, program.ranks), places), ending)
