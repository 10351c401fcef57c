"""Every built-in executor that suits one server, on the fake runtime, in real processes.

Two ops back to back, nobody waits between them, and the second one's input is written over the
first one's on the caller's stream: what one leaves unfinished, the other finds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hccl_executors import EXECUTORS
from hccl_platform.npu.driver import HARDWARE_REDUCTIONS
from hccl_platform.processes.world import World
from hccl_py.communicator.data import expected_outputs, first_wrong, inputs_of, poison
from hccl_py.enums import Mode, TaskKind
from hccl_py.operators import make_operator
from hccl_py.orchestration.record import record
from hccl_py.plugins.executor import Executor, declarations_of
from hccl_py.program.program import Program
from hccl_py.verifier.sweeps.cases import Case, Cases
from hccl_py.verifier.sweeps.space import random_cases
from tests.platform.npu.runtime import Machine
from tests.platform.npu.sessions import Device, open_device
from tests.platform.processes.children import children

pytestmark = pytest.mark.npu

CCL_BYTES = 1 << 20
MOST_TASKS = 300  # of a rank, on average
MOST_BYTES = 1 << 20
TRIES = 100

INLINE = {"READ_REDUCE", "WRITE_REDUCE"}


@dataclass(frozen=True, eq=False)
class Item:
    """A program, its data, and what every rank should have at the end."""

    text: str
    program: Program
    inputs: list[npt.NDArray[Any]]
    wanted: list[npt.NDArray[Any] | None]


@cache
def items(ranks: int, inline: bool) -> tuple[Item, ...]:
    """One call of every executor that suits so many ranks of one server."""
    found = [item for executor in EXECUTORS for item in of_executor(executor, ranks, inline)]
    return tuple(found)


def of_executor(executor: type[Executor], ranks: int, inline: bool) -> Iterator[Item]:
    made = executor()
    declared = declarations_of(made)
    if declared.zero_copy:  # processes share CCL buffers only
        return
    cases = Cases() if declared.cluster else Cases(servers=1, devices=ranks)
    for case in random_cases(made, cases, Random(ranks), TRIES):
        if not is_for_npus(case, ranks):
            continue
        topology = case.topology if inline else case.topology.reducing(())
        if not made.suits(case.op, topology):
            continue
        operator = make_operator(case.op.name)
        program = record(made, case.op, topology, operator, min(case.ccl_bytes, CCL_BYTES))
        is_small = program.task_count <= MOST_TASKS * ranks
        if not is_small or int(program.buffer_sizes.max()) > MOST_BYTES:
            continue
        inputs = inputs_of(program.op, ranks)
        wanted = expected_outputs(operator, program.op, inputs)
        yield Item(f"{executor.__name__} {case.text}", program, inputs, wanted)
        return


def is_for_npus(case: Case, ranks: int) -> bool:
    topology, op = case.topology, case.op
    return (
        topology.size == ranks
        and len(topology.servers) == 1
        and not topology.has_rdma
        and op.mode is Mode.OP_BASE
        and op.extent > 0
        and (op.reduce is None or (op.dtype, op.reduce) in HARDWARE_REDUCTIONS)
    )


class Memory:
    """Device memory that two runs in a row share: one input, and an output for each."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.input = device.memory(MOST_BYTES, np.uint8)
        self.outputs = [device.memory(MOST_BYTES, np.uint8) for _ in range(2)]

    def run(self, item: Item, which: int) -> npt.NDArray[Any]:
        """Enqueue an item's data and its program; return where its output will be."""
        device, rank = self.device, self.device.world.rank
        op = item.program.op
        given, wanted = item.inputs[rank], item.wanted[rank]
        size = int(make_operator(op.name).user_bytes(op, item.program.ranks)[1][rank])
        out = self.outputs[which][:size].view(op.dtype.numpy)
        wrong = np.zeros(out.size, op.dtype.numpy)
        if wanted is not None and not op.displs:
            poison([wrong[: wanted.size]], [wanted])
        device.put(out, wrong)
        memory = self.outputs[which] if op.in_place else self.input
        into = memory[: given.nbytes].view(given.dtype)
        device.put(into, given)
        device.session.run(f"tag {item.text}", item.program, [into], [out])
        return out


def wrong_results(world: World, machine: Machine, todo: tuple[Item, ...], knobs: Any) -> list[str]:
    """Run all items, two at a time; return what is wrong at this rank."""
    device = open_device(world, machine, knobs, CCL_BYTES)
    memory, found = Memory(device), []
    order = list(range(len(todo)))
    Random(knobs["SEED"]).shuffle(order)
    for first, second in zip(order, order[1:] + order[:1], strict=True):
        outs = [(todo[at], memory.run(todo[at], k)) for k, at in enumerate((first, second))]
        device.session.synchronize()
        for item, out in outs:
            right = item.wanted[world.rank]
            got = out if right is None else out[: right.size]
            wrong = first_wrong([got], [right], [world.rank])
            if wrong:
                found.append(f"{item.text}: {wrong}")
    device.session.close()
    return found


def check(ranks: int, seed: int, folder: Path) -> None:
    ipc, reduce = ("free", "list")[seed % 2], ("anywhere", "local")[seed // 2 % 2]
    todo = items(ranks, inline=reduce == "anywhere")
    knobs = {"IPC": ipc, "REDUCE": reduce, "SEED": seed, "DELAY_US": 40}
    with (
        Machine(ranks) as machine,
        children(ranks, lambda w: wrong_results(w, machine, todo, knobs), folder) as started,
    ):
        for rank, ended in started.wait().items():
            assert not ended.error, f"rank {rank}: {ended.message}"
            assert not ended.value


def test_most_executors_suit_a_server_of_npus() -> None:
    names = {item.program.executor for item in items(4, inline=True)}
    assert len(names) >= 140
    assert any(kinds(item) & INLINE for item in items(4, inline=True))
    assert not any(kinds(item) & INLINE for item in items(4, inline=False))


def kinds(item: Item) -> set[str]:
    return {TaskKind(kind).name for kind in np.unique(item.program.tasks.kind)}


@pytest.mark.parametrize("seed", range(4))  # of each kind of runtime that `check` has
@pytest.mark.parametrize("ranks", [2, 4])
def test_executors_equal_numpy(ranks: int, seed: int, tmp_path: Path) -> None:
    check(ranks, seed, tmp_path)


def test_executors_equal_numpy_on_eight_ranks(tmp_path: Path) -> None:
    check(8, 0, tmp_path)


@pytest.mark.long
@pytest.mark.seeds(8)
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_executors_equal_numpy_for_many_seeds(ranks: int, seed: int, tmp_path: Path) -> None:
    check(ranks, seed, tmp_path)
