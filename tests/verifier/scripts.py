"""Random programs that end: tasks and pairs of post and wait, put on streams in turn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

from hccl_py.formats import from_json
from hccl_py.program.program import Program

T = TypeVar("T")

SIZE = 8
BUFFERS = {"IN": SIZE, "OUT": SIZE, "CCL": SIZE}


class Dice(Protocol):
    """Where a program's numbers come from."""

    def integer(self, low: int, high: int) -> int:
        """Return one of low .. high."""

    def one_of(self, values: Sequence[T]) -> T:
        """Return one of the values."""


class Drawn:
    """From hypothesis, which makes small what fails."""

    def __init__(self, draw: Any) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return int(self._draw(st.integers(low, high)))

    def one_of(self, values: Sequence[T]) -> T:
        value: T = self._draw(st.sampled_from(values))
        return value


class Seeded:
    """From a generator of random numbers."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def integer(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def one_of(self, values: Sequence[T]) -> T:
        return self._random.choice(values)


@dataclass
class Script:
    """What has been put on streams so far, and which notifies are taken."""

    ranks: int
    streams: int
    kinds: dict[tuple[int, int], str]
    tasks: dict[tuple[int, int], list[list[Any]]] = field(default_factory=dict)
    used: dict[object, int] = field(default_factory=dict)

    def put(self, rank: int, stream: int, task: list[Any]) -> None:
        self.tasks.setdefault((rank, stream), []).append(task)

    def notify(self, key: object, most: int) -> int:
        """Return the next notify of an owner; they are taken in turn and used again."""
        self.used[key] = self.used.get(key, -1) + 1
        return self.used[key] % most

    def place(self, dice: Dice) -> tuple[int, int]:
        return dice.integer(0, self.ranks - 1), dice.integer(0, self.streams - 1)

    def sync(self, dice: Dice, most: int) -> None:
        """Let one stream wait for another, of the same rank or over a link."""
        rank, stream = self.place(dice)
        peer, other = self.place(dice)
        if rank == peer:
            if stream != other:
                index = self.notify((peer, other, stream), most) + most * stream
                self.put(rank, stream, ["local_post", other, index])
                self.put(peer, other, ["local_wait", index])
            return
        index = self.notify((rank, peer), most)
        self.put(rank, stream, ["post", peer, index])
        self.put(peer, other, ["wait", rank, index])

    def move(self, dice: Dice) -> None:
        """Put a copy or a reduction, here or over a link."""
        rank, stream = self.place(dice)
        name = dice.one_of(("copy", "reduce", "read", "read_reduce", "write", "write_reduce"))
        remote = name not in ("copy", "reduce")
        peer = dice.one_of([r for r in range(self.ranks) if r != rank])
        if (
            remote
            and name.startswith("read")
            and self.kinds[min(rank, peer), max(rank, peer)] == "rdma"
        ):
            name = name.replace("read", "write")
        size = dice.integer(1, SIZE)
        src, dst = (
            [dice.one_of(list(BUFFERS)), dice.integer(0, SIZE - size), size] for _ in range(2)
        )
        op = ["sum"] if "reduce" in name else []
        self.put(rank, stream, [name, *([peer] if remote else []), *op, src, dst])

    def program(self) -> Program:
        tasks: dict[str, dict[str, Any]] = {str(r): {} for r in range(self.ranks)}
        for (rank, stream), listed in self.tasks.items():
            tasks[str(rank)][str(stream)] = listed
        links = [
            {
                "id": k,
                "ranks": list(pair),
                "kind": kind,
                "exports": {str(r): ["IN", "CCL"] for r in pair},
            }
            for k, (pair, kind) in enumerate(self.kinds.items())
        ]
        document = {
            "format": "hccl-py.program/1",
            "op": {"name": "all_reduce", "dtype": "fp32", "count": SIZE // 4, "reduce": "sum"},
            "ranks": self.ranks,
            "buffers": {str(r): BUFFERS for r in range(self.ranks)},
            "links": links,
            "tasks": tasks,
        }
        return from_json(json.dumps(document))


@st.composite
def programs(draw: Any, steps: int = 24) -> Program:
    """A program of 2 to 4 ranks with up to 3 streams, over SDMA and RDMA links."""
    return _program(Drawn(draw), steps)


def seeded(seed: int, steps: int = 24) -> Program:
    """The same from a seed: ten times as fast, for those who look at many."""
    return _program(Seeded(Random(seed)), steps)


def _program(dice: Dice, steps: int) -> Program:
    ranks = dice.integer(2, 4)
    pairs = [(a, b) for a in range(ranks) for b in range(a + 1, ranks)]
    kinds = {pair: dice.one_of(("sdma", "rdma")) for pair in pairs}
    script = Script(ranks, dice.integer(1, 3), kinds)
    most = dice.one_of((1, 2, 40))
    for _ in range(dice.integer(1, steps)):
        script.sync(dice, most) if dice.one_of((False, True)) else script.move(dice)
    return script.program()
