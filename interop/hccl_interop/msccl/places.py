"""Where the tasks of an imported program come from, and what waits for what inside a rank."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Generic, NamedTuple, TypeVar

from hccl_interop.msccl.algorithm import Connection, Gpu, ThreadBlock

P = TypeVar("P")


class Role(Enum):
    """What a task is for: a message's data has come, its slot is free, data moves, a step waits for
    another one, main starts or joins a threadblock.
    """

    DATA = auto()
    CREDIT = auto()
    MOVE = auto()
    DEPENDENCY = auto()
    FORK = auto()


class Place(NamedTuple):
    """What a task comes from: a threadblock's step, and message `number` of a connection."""

    role: Role
    block: ThreadBlock | None = None
    position: int = -1
    connection: Connection | None = None
    number: int = -1


def signaller(block: ThreadBlock, deps: int) -> int | None:
    """Return the first step from `deps` on that says that it is over; None where none does."""
    for position in range(deps, len(block.steps)):
        step = block.steps[position]
        if step.hasdep and step.type != "nop":
            return position
    return None


@dataclass
class TaskQueue(Generic[P]):
    """The tasks of a stream, and what each of them comes from."""

    tasks: list[list[Any]] = field(default_factory=list)
    places: list[P] = field(default_factory=list)

    def add(self, place: P, note: dict[str, object] | None, *task: object) -> None:
        """Append a task."""
        self.tasks.append([*task, note] if note else [*task])
        self.places.append(place)


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
