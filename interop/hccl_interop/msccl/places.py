"""Places in an algorithm from which tasks come, and dependencies between threadblocks."""

from __future__ import annotations

from collections import defaultdict
from enum import Enum, auto
from typing import NamedTuple

from hccl_interop.msccl.algorithm import Connection, Gpu, ThreadBlock


class Role(Enum):
    """The purpose of a task: a message's data has come, its slot is free, data moves, a step waits
    for another one, main starts or joins a threadblock.
    """

    DATA = auto()
    CREDIT = auto()
    MOVE = auto()
    DEPENDENCY = auto()
    FORK = auto()


class Place(NamedTuple):
    """The origin of a task: a threadblock's step, and message `number` of a connection."""

    role: Role
    block: ThreadBlock | None = None
    position: int = -1
    connection: Connection | None = None
    number: int = -1


def describe_place(place: Place, rank: int) -> str:
    """Return a place in MSCCL's words; "" for what main does to start and join threadblocks."""
    if place.block is None or place.role == Role.FORK:
        return ""
    where = f"threadblock {place.block.id} of GPU {rank}"
    if place.position < 0:
        return f"{_describe_role(place)}the start of {where}"
    step = place.block.steps[place.position]
    return (
        f"{_describe_role(place)}step {place.position} ({step.type}) of {where}, line {step.line}"
    )


def _describe_role(place: Place) -> str:
    if place.connection is None:
        return "a dependency of " if place.role == Role.DEPENDENCY else ""
    message = f"message {place.number} of {place.connection}"
    role = {Role.DATA: message, Role.MOVE: message, Role.CREDIT: f"the free slot for {message}"}
    return f"{role[place.role]}, "


def signaller(block: ThreadBlock, deps: int) -> int | None:
    """Return the first step from `deps` on that says that it is over; None where none does."""
    for position in range(deps, len(block.steps)):
        step = block.steps[position]
        if step.hasdep and step.type != "nop":
            return position
    return None


class Edges:
    """The dependencies between the threadblocks of a rank.

    `waits[block][position]` is the number of a wait among those of its threadblock;
    `posts[block][position]` lists (stream, number) of the waits that a step lets go.
    """

    def __init__(self, gpu: Gpu) -> None:
        by_id = {block.id: block for block in gpu.blocks}
        self.waits: dict[int, dict[int, int]] = defaultdict(dict)
        self.posts: dict[int, dict[int, list[tuple[int, int]]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for number, block in enumerate(gpu.blocks):
            for position, step in enumerate(block.steps):
                if step.depid < 0 or step.deps < 0:
                    continue
                wait = len(self.waits[block.id])
                self.waits[block.id][position] = wait
                target = by_id.get(step.depid)
                at = None if target is None else signaller(target, step.deps)
                if at is not None:
                    self.posts[step.depid][at].append((number + 1, wait))
