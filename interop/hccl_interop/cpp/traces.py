"""The files that the recorder writes for every rank: tasks as columns, and a few values.

Stacks are numbered over all ranks; a frame is `h:OFFSET` in the host code, `d:OFFSET` in a kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

TASK = np.dtype(
    {
        "names": [
            *("kind", "dtype", "reduce", "src_part", "dst_part", "thread", "target", "index"),
            *("stack", "call", "src_offset", "dst_offset", "size", "joined"),
        ],
        "formats": [
            *("u1", "i1", "i1", "i1", "i1", "i4", "i4", "i4", "i4", "i4"),
            *("u8",) * 3,
            "u1",
        ],
        "offsets": [0, 1, 2, 3, 4, 8, 12, 16, 20, 24, 32, 40, 48, 5],
        "itemsize": 56,
    }
)
"""One task; recorder/state.hpp has the same layout, in which no task is `joined`."""

BITS = 16
"""Bits of a notify and of an event of the CCU."""

LAUNCH = 10
"""The kind of a task that launches a kernel of the CCU: `target` is the launch's number, `index`
that of its kernel.
"""

_ENGINES = {0: "host", 1: "host", 2: "aicpu_ts", 3: "aicpu_ts", 5: "ccu"}
"""What a program's engine is called, by CommEngine (hcomm_res_defs.h)."""

_PLACE = ("die", "mission", "first_buffer", "events", "buffers")
"""Fields of a Listing, in the order of the recorder's line."""

_MOST_PRINTED = 1 << 14
"""Bytes of a rank's output that are shown."""


@dataclass(frozen=True)
class ChannelTrace:
    """A channel as its rank acquired it; `shown` has a bit for each part of memory that the peer
    may access. `network` is one of the layer's, by its number among all (networks.py).
    """

    peer: int
    layer: int
    network: int
    notifies: int
    shown: int
    stack: int


@dataclass(frozen=True)
class Complaint:
    """A finding of the recorder: its class, stack, call of the op and message."""

    name: str
    stack: int
    call: int
    message: str


class ListedLine(NamedTuple):
    """A line of a kernel's listing: an operation on registers and numbers, and its stack."""

    operation: str
    stack: int
    operands: tuple[int, ...]


@dataclass
class Listing:
    """A kernel of the CCU as it was registered: on which die and mission it runs, how many events
    and buffers it took, and the first of its buffers among those of the die.
    """

    name: str
    stack: int
    lines: list[ListedLine] = field(default_factory=list)
    die: int = 0
    mission: int = 0
    first_buffer: int = 0
    events: int = 0
    buffers: int = 0

    @cached_property
    def jumps(self) -> dict[int, int]:
        """The line that each line of a branch goes with: `if` with `else` or its end, ends of loops
        with their begin.
        """
        found: dict[int, int] = {}
        opened: list[int] = []
        for at, line in enumerate(self.lines):
            what = line.operation
            if what in ("if", "while", "do", "loop"):
                opened.append(at)
            elif what in ("else", "end_if", "end_loop"):
                found[opened.pop()] = at
                if what == "else":
                    opened.append(at)
            elif what in ("end_while", "end_do"):
                found[at] = opened.pop()
                if what == "end_while":
                    found[found[at]] = at
        return found

    @cached_property
    def bodies(self) -> dict[int, tuple[int, int]]:
        """The first line and the end of the body of every Loop, by its number."""
        begins = [at for at, line in enumerate(self.lines) if line.operation == "loop"]
        return {self.lines[at].operands[0]: (at + 1, self.jumps[at]) for at in begins}


@dataclass
class RankTrace:
    """One rank. `result` is the op's return value; None where the op did not return, -1 where a
    complaint has the reason. `engine` is that of its threads, "" where it acquired none. `launches`
    has the arguments of each launch of one of its `kernels`, `memory` the first address and the
    length of the spans of memory that follow one another, `buffer_bytes` the memory of each die's
    CCU that tasks use.
    """

    rank: int
    tasks: npt.NDArray[np.void] = field(default_factory=lambda: np.zeros(0, TASK))
    channels: list[ChannelTrace] = field(default_factory=list)
    threads: list[tuple[int, int]] = field(default_factory=list)
    complaints: list[Complaint] = field(default_factory=list)
    kernels: list[Listing] = field(default_factory=list)
    launches: list[tuple[int, ...]] = field(default_factory=list)
    memory: tuple[int, int] = (0, 1)
    device_bytes: int = 0
    buffer_bytes: tuple[int, int] = (0, 0)
    engine: str = ""
    result: int | None = None
    was_run: bool = False
    printed: str = ""


@dataclass(frozen=True)
class Traces:
    """All ranks, the trace of loading the op's code, and the frames of every stack; `stream_names`
    are those of the streams of CCU programs.
    """

    ranks: Sequence[RankTrace]
    loading: RankTrace
    stacks: tuple[tuple[str, ...], ...]
    stream_names: tuple[str, ...] = ()


def read_traces(folder: Path, ranks: int) -> Traces:
    """Return the traces in a folder; the trace of a rank that never ran is empty."""
    stacks = {"": 0}
    loading = _read(folder, "load", -1, stacks)
    found = [_read(folder, f"rank{rank}", rank, stacks) for rank in range(ranks)]
    frames = (tuple(text.split(",")) if text else () for text in stacks)
    return Traces(found, loading, tuple(frames))


def _read(folder: Path, name: str, rank: int, stacks: dict[str, int]) -> RankTrace:
    trace = RankTrace(rank)
    path = folder / f"{name}.txt"
    if not path.exists():
        return trace
    trace.was_run = True
    numbers = np.zeros(1, np.int32)
    for words in _lines(path):
        numbers = _take(trace, words, stacks, numbers)
    whole = (folder / f"{name}.tasks").stat().st_size // TASK.itemsize
    tasks = np.fromfile(folder / f"{name}.tasks", TASK, count=whole)
    if len(tasks):
        tasks["stack"] = numbers[np.minimum(tasks["stack"], len(numbers) - 1)]
    trace.tasks = tasks
    printed = folder / f"{name}.out"
    if printed.exists():
        with printed.open("rb") as file:
            trace.printed = file.read(_MOST_PRINTED).decode("utf-8", "backslashreplace")
    return trace


def _lines(path: Path) -> Iterator[list[str]]:
    """Yield the words of every line; the last one is not whole where a process was ended."""
    for line in path.read_bytes().decode("utf-8", "backslashreplace").split("\n")[:-1]:
        yield line.split("\t")


def _take(
    trace: RankTrace, words: list[str], stacks: dict[str, int], numbers: npt.NDArray[np.int32]
) -> npt.NDArray[np.int32]:
    """Add one line to a trace; `numbers` maps this rank's stacks to the numbers of all ranks."""

    def stack(text: str) -> int:
        own = int(text)
        return int(numbers[own]) if 0 <= own < len(numbers) else 0

    kind, *rest = words
    if kind == "I":
        operands = tuple(int(word, 16) for word in rest[2:])
        trace.kernels[-1].lines.append(ListedLine(rest[0], stack(rest[1]), operands))
    elif kind == "S":
        own = int(rest[0])
        if own >= len(numbers):
            numbers = np.concatenate([numbers, np.zeros(own + 1, np.int32)])
        numbers[own] = stacks.setdefault(rest[1], len(stacks))
    elif kind == "C":
        peer, layer, network, notifies, shown = map(int, rest[:5])
        found = ChannelTrace(peer, layer, network, notifies, shown, stack(rest[5]))
        trace.channels.append(found)
    elif kind == "N":
        trace.threads.append((int(rest[0]), stack(rest[1])))
    elif kind == "E":
        trace.complaints.append(Complaint(rest[0], stack(rest[1]), int(rest[2]), rest[3]))
    elif kind == "G":
        trace.engine = _ENGINES.get(int(rest[0]), "")
    elif kind == "D":
        trace.device_bytes = int(rest[0])
    elif kind == "K":
        trace.kernels.append(Listing("\t".join(rest[1:]), stack(rest[0])))
    elif kind == "Z":
        for name, word in zip(_PLACE, rest, strict=True):
            setattr(trace.kernels[-1], name, int(word))
    elif kind == "L":
        trace.launches.append(tuple(int(word, 16) for word in rest[1:]))
    elif kind == "M":
        trace.memory = int(rest[0]), int(rest[1])
    elif kind == "END":
        trace.result = int(rest[0])
    return numbers
