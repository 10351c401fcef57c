"""The emulated platform: all ranks in this process, their memory in numpy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from hccl_platform.emulated.fast import FastPath, Thresholds
from hccl_platform.emulated.memory import Memory, fill_user_slots
from hccl_platform.emulated.prepared import Prepared
from hccl_platform.emulated.scheduler import Scheduler, WaitLimit
from hccl_platform.emulated.turns import Turns, check_slow
from hccl_platform.lowering.halves import Halves
from hccl_platform.lowering.moves import Bytes, moves_of
from hccl_platform.lowering.responses import Responses
from hccl_py.call.config import Config
from hccl_py.errors import ParameterError
from hccl_py.plugins.platforms import DONE, Check, Group, Schedule, Work
from hccl_py.plugins.resources import ResourceResponse
from hccl_py.program.program import Program
from hccl_py.topology.topology import Topology


class EmulatedPlatform:
    """Runs programs on the CPU: as fast as possible, or in the interleaving of a schedule.

    A wait that can never end is an error at once. HCCL_EXEC_TIMEOUT bounds, on the clock of this
    machine, the waits of a scheduled run; without a schedule tasks run in an order in which nobody
    waits.
    """

    name = "emulated"
    clock = "wall"

    def checks(self) -> Sequence[Check]:
        return ()  # what hccl-py itself stands on is enough

    def open(
        self, topology: Topology, config: Config, schedule: Schedule | None, group: Group
    ) -> EmulatedSession:
        if schedule is not None:
            check_slow(topology, schedule.slow)
        waits = WaitLimit(config.wait_seconds(topology.product))
        return EmulatedSession(
            topology.size, config.ccl_bytes, schedule, topology=topology, waits=waits
        )


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
        self._memory = Memory(ccl_bytes)
        self._fast = FastPath(threads, thresholds)
        self._responses = Responses()
        self._halves = Halves()
        self._prepared: WeakKeyDictionary[Program, Prepared] = WeakKeyDictionary()
        self._is_closed = False

    @property
    def local_ranks(self) -> range:
        return range(self._ranks)

    def allocate(self, tag: str, program: Program) -> ResourceResponse:
        self._check_open()
        return self._responses.of(tag, program)

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
        self._check_open()
        prepared = self._prepare(program)
        slots = self._slots(tag, program, prepared).copy()
        fill_user_slots(slots, program, inputs, outputs)
        for slot in prepared.written_user_slots:
            if not slots[slot].flags.writeable:
                rank, buffer = divmod(slot, len(program.buffers))
                raise ParameterError(
                    f"{program.executor} writes rank {rank}'s {program.buffers[buffer]}, "
                    "and that array is read-only.",
                    "Give an array that can be written.",
                )
        if self._schedule is None:
            self._fast.run(prepared, slots)
        else:
            steps = dict(zip(prepared.moves.row.tolist(), prepared.steps, strict=True))
            adversary, chooser = self._schedule.adversary, self._schedule.chooser()
            turns = Turns.of(program, self._topology, self._schedule.slow)
            Scheduler(program, steps, slots, adversary, chooser, turns, self._waits).run()
        return DONE

    def gather(self, data: bytes) -> list[bytes]:
        return [data]

    def close(self) -> None:
        self._is_closed = True
        self._fast.close()
        self._prepared.clear()
        self._responses.clear()
        self._memory.clear()

    def _check_open(self) -> None:
        if self._is_closed:
            raise ParameterError("The session is closed.", "Open a new one.")

    def _slots(self, tag: str, program: Program, prepared: Prepared) -> list[Bytes]:
        """Return the memory of the next run."""
        half = self._halves.next(tag, program)
        if (tag, half) not in prepared.slots:
            slots = self._memory.slots(tag, program, prepared.used, half)
            prepared.slots[tag, half] = slots
        return prepared.slots[tag, half]

    def _prepare(self, program: Program) -> Prepared:
        """Return what is known of a program; the fast path refuses one that cannot end well."""
        prepared = self._prepared.get(program)
        if prepared is None:
            rows = np.arange(len(program.tasks), dtype=np.int64)
            if self._schedule is None:
                program.linked.check(program)
                rows = program.linked.order.astype(np.int64)
            prepared = Prepared(program, moves_of(program, rows))
            self._prepared[program] = prepared
        return prepared
