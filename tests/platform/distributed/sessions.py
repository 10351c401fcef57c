"""Programs in real processes: recorded before the fork, run in all of them, held against numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

import numpy.typing as npt

from hccl_platform.distributed.session import SharedSession
from hccl_platform.processes.world import World
from hccl_py.communicator.arrays import flat_arrays
from hccl_py.communicator.data import Array, expected_outputs, first_wrong, inputs_of, poison
from hccl_py.operators import make_operator
from hccl_py.orchestration.record import record
from hccl_py.plugins.executor import Executor
from hccl_py.program.program import Program
from hccl_py.program.usage import overwrites_inputs
from hccl_py.verifier.sweeps.cases import Case, Cases
from hccl_py.verifier.sweeps.space import random_cases
from tests.platform.distributed.processes import in_processes

T = TypeVar("T")
Arrays = list[npt.NDArray[Any]]

CCL_BYTES = 1 << 20
MOST_TASKS = 20_000

ALONE, HALVES, ODD = "every rank alone", "halves", "odd and even"


def places(kind: str, ranks: int) -> list[int]:
    """Return the number of every rank's host."""
    return {
        ALONE: list(range(ranks)),
        HALVES: [rank * 2 // ranks for rank in range(ranks)],
        ODD: [rank % 2 for rank in range(ranks)],
    }[kind]


@dataclass(frozen=True, eq=False)
class Run:
    """A program with its data, and what every rank should have at the end."""

    text: str
    program: Program
    inputs: Arrays
    outputs: Arrays
    wanted: Sequence[Array | None]

    @classmethod
    def of(cls, program: Program, text: str = "") -> Run:
        op, ranks = program.op, program.ranks
        operator, inputs = make_operator(op.name), inputs_of(op, ranks)
        wanted = expected_outputs(operator, op, inputs)
        arrays = flat_arrays(operator, op, inputs, ranks, range(ranks))
        return cls(text or repr(program), program, arrays.inputs, arrays.outputs, wanted)

    def wrong(self, session: SharedSession, rank: int, tag: str = "tag") -> str:
        """Run as one rank, and say what is wrong with its output; nothing where it is right."""
        into, out, wanted = self.inputs[rank], self.outputs[rank], self.wanted[rank]
        kept = into.copy()
        if not self.program.op.in_place:
            if self.program.op.displs:
                out[:] = 0
            else:
                poison([out], [wanted])
        session.run(tag, self.program, [into], [out])
        got = [out if wanted is None else out[: wanted.size]]
        found = first_wrong(got, [wanted], [rank])
        if overwrites_inputs(self.program):
            into[:] = kept
        return f"{self.text}: {found}" if found else ""


def runs_of(
    executor: type[Executor], sizes: Iterable[int], tries: int, most: int, seed: int = 0
) -> list[Run]:
    """Return runs of some calls of an executor, drawn from its sweep."""
    made = executor()
    found: list[Run] = []
    seen: set[str] = set()
    for case in random_cases(made, Cases(), Random(seed), tries):
        if len(found) == most:
            break
        if case.topology.size in sizes and case.op.extent and case.text not in seen:
            seen.add(case.text)
            found += _recorded(made, case)
    return found


def _recorded(executor: Executor, case: Case) -> list[Run]:
    operator = make_operator(case.op.name)
    program = record(executor, case.op, case.topology, operator, case.ccl_bytes)
    if program.task_count > MOST_TASKS:
        return []
    return [Run.of(program, f"{type(executor).__name__} {case.text}")]


def open_session(world: World, limit_s: float | None = 60.0) -> SharedSession:
    """Open the session of the whole world."""
    key = world.key_of("world")
    return SharedSession(world.rank, world.size, world.store, key, CCL_BYTES, limit_s)


def in_sessions(
    ranks: int, body: Callable[[World, SharedSession], T], limit_s: float | None = 60.0
) -> list[T]:
    """Call a function in every process, with the session of all of them."""

    def work(world: World) -> T:
        session = open_session(world, limit_s)
        try:
            return body(world, session)
        finally:
            session.close()

    return in_processes(ranks, work)


def wrong_results(ranks: int, runs: Sequence[Run], repeats: int = 1) -> list[str]:
    """Run programs back to back in the same processes; return what is wrong."""

    def body(world: World, session: SharedSession) -> list[str]:
        return [
            f"rank {world.rank}: {wrong}"
            for _ in range(repeats)
            for run in runs
            if (wrong := run.wrong(session, world.rank))
        ]

    return [text for texts in in_sessions(ranks, body) for text in texts]
