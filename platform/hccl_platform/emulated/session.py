"""The session of the emulated platform: the memory of all ranks, and what runs their programs."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from hccl_platform.emulated.fast import FastPath, Thresholds
from hccl_platform.emulated.prepared import Prepared
from hccl_platform.emulated.scheduler import Scheduler, WaitLimit
from hccl_platform.emulated.turns import Turns
from hccl_platform.lowering.memory import Memory, user_arrays
from hccl_platform.lowering.moves import Bytes, moves_of
from hccl_platform.lowering.session_state import SessionState
from hccl_py.plugins.platforms import DONE, Schedule, Work
from hccl_py.plugins.resources import ResourceResponse
from hccl_py.program.program import Program
from hccl_py.topology.topology import Topology


class EmulatedSession:
    """Memory and resources of all ranks of a communicator."""

    def __init__(
        self,
        ranks: int,
        ccl_bytes: int,
        schedule: Schedule | None = None,
        *,
        topology: Topology | None = None,
        threads: int | None = None,
        thresholds: Thresholds | None = None,
        waits: WaitLimit | None = None,
    ) -> None:
        self._waits = waits or WaitLimit()
        self._ranks = ranks
        self._schedule = schedule
        self._topology = topology
        self._memory = Memory(ccl_bytes, _zeros)
        self._fast = FastPath(threads, thresholds)
        self._state = SessionState()
        self._prepared: WeakKeyDictionary[Program, Prepared] = WeakKeyDictionary()

    @property
    def local_ranks(self) -> range:
        return range(self._ranks)

    def allocate(self, tag: str, program: Program) -> ResourceResponse:
        return self._state.response(tag, program)

    def expect(self, tag: str, program: Program, runs: int) -> None:
        if self._schedule is None:
            self._fast.expect(self._prepare(program), runs)

    def run(
        self,
        tag: str,
        program: Program,
        inputs: Sequence[npt.NDArray[Any]],
        outputs: Sequence[npt.NDArray[Any]],
        stream: object = None,
    ) -> Work:
        self._state.check()
        prepared = self._prepare(program)
        arrays = user_arrays(
            program, self.local_ranks, inputs, outputs, prepared.written_user_slots
        )
        slots = self._slots(tag, program, prepared).copy()
        for slot, array in arrays.items():
            slots[slot] = array.view(np.uint8)
        if self._schedule is None:
            self._fast.run(prepared, slots)
        else:
            steps = dict(zip(prepared.moves.row.tolist(), prepared.moves.steps, strict=True))
            adversary, chooser = self._schedule.adversary, self._schedule.chooser()
            turns = Turns.of(program, self._topology, self._schedule.slow)
            Scheduler(program, steps, slots, adversary, chooser, turns, self._waits).run()
        return DONE

    def gather(self, data: bytes) -> list[bytes]:
        return [data]

    def close(self) -> None:
        self._state.close()
        self._fast.close()
        self._prepared.clear()
        self._memory.clear()

    def _slots(self, tag: str, program: Program, prepared: Prepared) -> list[Bytes]:
        """Return the memory of the next run by slot; user memory is still empty."""
        half = self._state.next_half(tag, program)
        if (tag, half) not in prepared.slots:
            held = self._memory.slots(tag, program, prepared.moves.slots, half)
            slots = [held.get(slot, _NOTHING) for slot in range(program.buffer_sizes.size)]
            prepared.slots[tag, half] = slots
        return prepared.slots[tag, half]

    def _prepare(self, program: Program) -> Prepared:
        """Return a program prepared for runs; the fast path refuses one that cannot end well."""
        prepared = self._prepared.get(program)
        if prepared is None:
            rows = np.arange(len(program.tasks), dtype=np.int64)
            if self._schedule is None:
                program.linked.check(program)
                rows = program.linked.order.astype(np.int64)
            prepared = Prepared(program, moves_of(program, rows, keeps_sums=True))
            self._prepared[program] = prepared
        return prepared


_NOTHING = np.zeros(0, np.uint8)


def _zeros(rank: int, size: int) -> Bytes:
    """Return zeroed bytes on small pages of their own: untouched pages take no memory, so CCL
    buffers of any size cost only as much as programs touch.
    """
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):  # Linux
        pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(pages, np.uint8)
