"""The files that the recorder writes for every rank: tasks as columns, and a few values.

Stacks are numbered over all ranks; a frame is `h:OFFSET` in the host code, `d:OFFSET` in a kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

TASK = np.dtype(
    {
        "names": [
            *("kind", "dtype", "reduce", "src_part", "dst_part", "thread", "target", "index"),
            *("stack", "call", "src_offset", "dst_offset", "size"),
        ],
        "formats": ["u1", "i1", "i1", "i1", "i1", "i4", "i4", "i4", "i4", "i4", "u8", "u8", "u8"],
        "offsets": [0, 1, 2, 3, 4, 8, 12, 16, 20, 24, 32, 40, 48],
        "itemsize": 56,
    }
)
"""One task; recorder/state.hpp has the same layout."""

_ENGINES = {0: "host", 1: "host", 2: "aicpu_ts", 3: "aicpu_ts"}
"""What a program's engine is called, by CommEngine (hcomm_res_defs.h)."""

_MOST_PRINTED = 1 << 14
"""Bytes of a rank's output that are shown."""


@dataclass(frozen=True)
class ChannelTrace:
    """A channel as its rank acquired it; `shown` has a bit for each part of memory that the peer
    may access.
    """

    peer: int
    layer: int
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


@dataclass
class RankTrace:
    """One rank. `result` is the op's return value; None where the op did not return, -1 where a
    complaint has the reason. `engine` is that of its threads, "" where it acquired none.
    """

    rank: int
    tasks: npt.NDArray[np.void] = field(default_factory=lambda: np.zeros(0, TASK))
    channels: list[ChannelTrace] = field(default_factory=list)
    threads: list[tuple[int, int]] = field(default_factory=list)
    complaints: list[Complaint] = field(default_factory=list)
    device_bytes: int = 0
    engine: str = ""
    result: int | None = None
    was_run: bool = False
    printed: str = ""


@dataclass(frozen=True)
class Traces:
    """All ranks, the trace of loading the op's code, and the frames of every stack."""

    ranks: Sequence[RankTrace]
    loading: RankTrace
    stacks: tuple[tuple[str, ...], ...]


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
    if kind == "S":
        own = int(rest[0])
        if own >= len(numbers):
            numbers = np.concatenate([numbers, np.zeros(own + 1, np.int32)])
        numbers[own] = stacks.setdefault(rest[1], len(stacks))
    elif kind == "C":
        peer, layer, notifies, shown = map(int, rest[:4])
        trace.channels.append(ChannelTrace(peer, layer, notifies, shown, stack(rest[4])))
    elif kind == "N":
        trace.threads.append((int(rest[0]), stack(rest[1])))
    elif kind == "E":
        trace.complaints.append(Complaint(rest[0], stack(rest[1]), int(rest[2]), rest[3]))
    elif kind == "G":
        trace.engine = _ENGINES.get(int(rest[0]), "")
    elif kind == "D":
        trace.device_bytes = int(rest[0])
    elif kind == "END":
        trace.result = int(rest[0])
    return numbers
