"""Flows that share what a device moves over one sort of link, as far as its own streams say.

Where a cost model states `device_gbps`, one flow may take all of it, and transfers of several
streams of a rank that may run at the same time divide it, those that pull apart from those that
push. They may where no notify inside the rank puts one before the other:

    fork      main posts to every sub stream            what main did before is before all of theirs
    step      each sub stream reads from a peer         the flows of one device: as many as streams
    join      main waits for every sub stream           what main does next is behind all of theirs

Notifies between ranks order nothing here, and what peers take from the device is left to contended
simulation. A program's times do not depend on how its ranks were batched, nor do these counts. They
cost a step for each pair of an instruction and a stream.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_py.enums import POST, WAIT
from hccl_py.program.instruction import Instruction
from hccl_py.values import IntArray, values_of

Lanes = int | npt.NDArray[Any]

NO_SORT = -1
"""The sort of what shares no rate of a device."""


def flows_at_once(
    instructions: Sequence[Instruction], sorts: Sequence[Lanes], first_local: int
) -> list[Lanes]:
    """Return for each instruction of a batch how many streams may move data of its sort while it
    does, its own among them; lanes may differ. Cells from `first_local` on are those inside ranks.
    """
    data = [k for k, sort in enumerate(sorts) if np.any(np.asarray(sort) != NO_SORT)]
    if len({instructions[k].stream for k in data}) < 2:
        return [1] * len(instructions)
    before = _before(instructions, first_local)
    streams = _transfers(instructions, sorts, data, before)
    found: list[Lanes] = [1] * len(instructions)
    for own in streams.values():
        for place, k in enumerate(own.numbers):
            sort = np.asarray(sorts[k])
            flows = np.ones(sort.shape, np.int64)
            for other in streams.values():
                if other is not own:
                    flows = flows + other.has(sort, own, place)
            found[k] = _plain(flows)
    return found


@dataclass(frozen=True, eq=False)
class _Moves:
    """Transfers of one stream: their numbers, their sorts [transfer, lane or 1], their places on
    the stream, and for each how many instructions of every stream come before it.
    """

    stream: int
    numbers: list[int]
    sorts: npt.NDArray[Any]
    at: IntArray
    before: IntArray

    def has(self, sort: npt.NDArray[Any], other: _Moves, place: int) -> npt.NDArray[np.bool_]:
        """True where a transfer of this sort may run beside one of another stream: those of this
        stream between what comes before that one, and what that one comes before.
        """
        first = np.searchsorted(self.at, other.before[place, self.stream])
        last = np.searchsorted(self.before[:, other.stream], other.at[place], side="right")
        beside = self.sorts[first:last] == sort
        return np.asarray(
            beside.any(axis=0) if sort.ndim or len(self.sorts[0]) > 1 else beside.any()
        )


def _transfers(
    instructions: Sequence[Instruction],
    sorts: Sequence[Lanes],
    data: Sequence[int],
    before: IntArray,
) -> dict[int, _Moves]:
    """Return the transfers of every stream that has some; streams are numbered from 0 as in
    `before`.
    """
    number = {stream: n for n, stream in enumerate(sorted({i.stream for i in instructions}))}
    by_stream: dict[int, list[int]] = defaultdict(list)
    for k in data:
        by_stream[number[instructions[k].stream]].append(k)
    found = {}
    for stream, some in by_stream.items():
        rows = np.broadcast_arrays(*[np.atleast_1d(sorts[k]) for k in some])
        own = before[some]
        found[stream] = _Moves(stream, some, np.stack(rows), own[:, stream], own)
    return found


def _before(instructions: Sequence[Instruction], first_local: int) -> IntArray:
    """Return the number of instructions of each stream before every instruction, [instruction,
    stream]; of its own stream its place there.
    """
    number = {stream: n for n, stream in enumerate(sorted({i.stream for i in instructions}))}
    queues: list[deque[int]] = [deque() for _ in number]
    for k, i in enumerate(instructions):
        queues[number[i.stream]].append(k)
    found = np.zeros((len(instructions), len(number)), np.int64)
    clocks = np.zeros((len(number), len(number)), np.int64)
    posted: dict[int, deque[IntArray]] = defaultdict(deque)
    moved = True
    # Invariant: clocks[s] counts what comes before the next instruction of stream s.
    while moved:
        moved = False
        for s, queue in enumerate(queues):
            while queue:
                i = instructions[queue[0]]
                cell = int(np.atleast_1d(values_of(i.cell))[0])
                is_local = cell >= first_local
                if i.kind == WAIT and is_local:
                    if not posted[cell]:
                        break
                    clocks[s] = np.maximum(clocks[s], posted[cell].popleft())
                found[queue.popleft()] = clocks[s]
                clocks[s, s] += 1
                if i.kind == POST and is_local:
                    posted[cell].append(clocks[s].copy())
                moved = True
    for s, queue in enumerate(queues):  # those that can never go on
        for place, k in enumerate(queue):
            found[k] = clocks[s]
            found[k, s] += place
    return found


def _plain(flows: npt.NDArray[Any]) -> Lanes:
    """Return one number where all lanes agree."""
    return int(flows.flat[0]) if (flows == flows.flat[0]).all() else flows
