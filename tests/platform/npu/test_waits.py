"""Every wait of a program is needed on NPUs too: without it something goes wrong, and is seen.

At one rank one wait is left out of what is enqueued. The program runs twice without a pause: either
an output is wrong at some rank, or a post finds its notify posted already, which hardware would
lose. Waits that the verifier lists as implied by others are not tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hccl_platform.npu.agreement import Agreement
from hccl_platform.npu.issue import IssueList
from hccl_platform.processes.world import World
from hccl_py.communicator.data import first_wrong
from hccl_py.errors import HcclError
from hccl_py.program.program import Program
from hccl_py.verifier.verifier import verify_program
from tests.platform.npu.runtime import Machine
from tests.platform.npu.sessions import Device, lost_posts, open_device
from tests.platform.npu.test_executors import CCL_BYTES, Item, Memory, items
from tests.platform.processes.children import children

pytestmark = pytest.mark.npu

RANKS, PROGRAMS, MOST = 4, 20, 1
"""Of each program so many waits are left out; in the long run all."""

LIMIT_S, LATEST_S = 1, 60.0

Missing = tuple[int, int, int]
"""Rank, stream and place of a wait."""


def chosen() -> list[Item]:
    """Programs of different executors, the smallest first."""
    by_size = sorted(items(RANKS, inline=True), key=lambda item: item.program.task_count)
    full = [item for item in by_size if all(array.size for array in item.inputs)]
    assert len(full) >= PROGRAMS
    return full[:PROGRAMS]


def implied(program: Program) -> set[Missing]:
    """Return the waits that others imply."""
    found = [f for f in verify_program(program).findings if f.name == "REDUNDANT_SYNC"]
    every = [each for finding in found for each in (finding, *finding.others())]
    return {(at.rank, at.stream, at.index) for each in every for at in each.tasks}


def waits(program: Program) -> Iterator[Missing]:
    tasks = program.tasks
    for row in np.flatnonzero(tasks.kind == 9).tolist():
        yield int(tasks.rank[row]), int(tasks.stream[row]), int(tasks.index[row])


def to_try(item: Item, most: int | None) -> list[Missing]:
    known = implied(item.program)
    needed = [wait for wait in waits(item.program) if wait not in known]
    return needed if most is None else needed[:: max(1, len(needed) // most)][:most]


def without(issued: IssueList, stream: int, place: int) -> tuple[IssueList, int]:
    """Return what is enqueued but for one wait, and the notify that it would have taken."""
    entry = next(e for e in issued.entries if (e.stream, e.place) == (stream, place))
    rest = tuple(e for e in issued.entries if e is not entry)
    return replace(issued, entries=rest), entry.notify


def unnoticed(world: World, machine: Machine, todo: list[tuple[Item, list[Missing]]]) -> list[str]:
    """Leave every wait out once; return those whose absence nobody notices."""
    judges = Agreement(world.store, "judges", world.rank, world.size, LATEST_S)
    sessions = opened(world, machine)
    device, missed = next(sessions), []
    memory = Memory(device)
    for item, missing in todo:
        for missed_wait in missing:
            is_whole = True
            try:
                verdict = is_noticed(device, memory, item, *missed_wait)
            except HcclError:  # a post was lost, and who waited for it waits for ever
                verdict, is_whole = True, False
            if not any(judges.gather("to judge", verdict)):
                missed.append("{}: rank {}, stream {}, task {}".format(item.text, *missed_wait))
            if not judges.all("to go on", is_whole):
                device.session.close()
                device = next(sessions)
                memory = Memory(device)
    device.session.close()
    return missed


def opened(world: World, machine: Machine) -> Iterator[Device]:
    """Open a session after the other."""
    for number in count():
        knobs = {"SEED": 1, "DELAY_US": 150}
        yield open_device(world, machine, knobs, CCL_BYTES, LIMIT_S, f"session {number}")


def is_noticed(
    device: Device, memory: Memory, item: Item, rank: int, stream: int, place: int
) -> bool:
    session, mine = device.session, device.world.rank
    memory.run(item, 0)
    session.synchronize()
    of_tags: dict[str, IssueList] = session._issued[item.program]
    tag, before, lost = f"tag {item.text}", lost_posts(), 0
    whole = of_tags[tag]
    if mine == rank:
        of_tags[tag], lost = without(whole, stream, place)
    outs: list[Any] = [memory.run(item, k) for k in range(2)]
    session.synchronize()
    of_tags[tag] = whole
    session._agreement.all("to end this run", True)
    if lost:  # the post that nobody took
        device.driver.wait(lost, device.streams.current, 5)
        session.synchronize()
    right = item.wanted[mine]
    gots = [out if right is None else out[: right.size] for out in outs]
    return lost_posts() > before or any(first_wrong([got], [right], [mine]) for got in gots)


def check(todo: list[tuple[Item, list[Missing]]], folder: Path) -> None:
    with (
        Machine(RANKS) as machine,
        children(RANKS, lambda w: unnoticed(w, machine, todo), folder) as started,
    ):
        for ended in started.wait().values():
            assert not ended.error, ended.message
            assert not ended.value


def test_no_wait_can_be_left_out(tmp_path: Path) -> None:
    todo = [(item, to_try(item, MOST)) for item in chosen()]
    assert sum(len(missing) for _, missing in todo) >= PROGRAMS
    check(todo, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("number", range(PROGRAMS))
def test_no_wait_of_a_program_can_be_left_out(number: int, tmp_path: Path) -> None:
    item = chosen()[number]
    check([(item, to_try(item, None))], tmp_path)
