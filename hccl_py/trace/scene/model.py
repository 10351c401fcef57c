"""A scene: the lanes, bars, dependencies, phases, links, memory and findings of a program.

All outputs draw a Scene and compute nothing about the program themselves. All that occurs in
numbers is a column; texts stand once, and columns number them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_py.enums import TaskKind
from hccl_py.program.program import Program
from hccl_py.topology import Topology
from hccl_py.values import Floats, IntArray
from hccl_py.verifier.finding import Finding

Int32s = npt.NDArray[np.int32]

DONE, STUCK, UNREACHED = 0, 1, 2
"""States of a bar: it ended, it began and never ends, it never begins."""

CONNECTION = -1
"""Stands for a stream in lanes of what is under way on the RDMA connections of a rank."""


class Lanes(NamedTuple):
    """Rows of a picture: the streams of every rank, and its connections (`stream` is
    CONNECTION) where it writes over RDMA. Bars first[k] .. first[k + 1] - 1 are on lane k;
    connections have none of their own.
    """

    rank: Int32s
    stream: Int32s
    names: tuple[str, ...]
    first: IntArray

    def __len__(self) -> int:
        return len(self.rank)


class Bars(NamedTuple):
    """One bar per task, by lane, then as they stand on the stream. Times are microseconds, sizes
    and offsets bytes; -1 stands for none.

    `effect_us` is when a post has set its notify, and when an RDMA write has arrived: that travels
    on lane `connection` from `end_us` to `effect_us`. `partner` is the bar of the post that a wait
    consumes, or of the wait that consumes a post. A wait that never ends is STUCK and lasts until
    the end of the scene; UNREACHED bars have no length and lie there.
    """

    row: IntArray
    lane: Int32s
    kind: npt.NDArray[np.int8]
    start_us: Floats
    end_us: Floats
    effect_us: Floats
    size: IntArray
    peer: Int32s
    round: Int32s
    label: Int32s
    source: Int32s
    number: Int32s
    notify: Int32s
    partner: Int32s
    src_rank: Int32s
    src_buffer: Int32s
    src_offset: IntArray
    dst_rank: Int32s
    dst_buffer: Int32s
    dst_offset: IntArray
    dst_size: IntArray
    connection: Int32s
    state: npt.NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.row)


class Phases(NamedTuple):
    """Runs of bars of one lane that bear one label in one round; bars first .. stop - 1."""

    lane: Int32s
    start_us: Floats
    end_us: Floats
    label: Int32s
    round: Int32s
    first: IntArray
    stop: IntArray

    def __len__(self) -> int:
        return len(self.lane)


class Critical(NamedTuple):
    """The critical path from first to last: bars, and the span that each adds; the spans join."""

    bar: IntArray
    begin_us: Floats
    end_us: Floats

    def __len__(self) -> int:
        return len(self.bar)


class Traffic(NamedTuple):
    """Bytes that ranks send each other; `share` is the part of the total in which what joins the
    two is busy with them.
    """

    source: Int32s
    target: Int32s
    bytes: IntArray
    share: Floats

    def __len__(self) -> int:
        return len(self.source)


class LinkLoad(NamedTuple):
    """The load of the network's links. `gbps` is their capacity in GB/s, inf for links that
    never fill; `share` what they carry in the total of what they could. `load` is the same by
    equal spans of time, [links, spans]: bytes over capacity, above 1 where flows that are timed
    alone meet; 0 for links that never fill. `left_out` links that carry less are not here.
    """

    ends: tuple[tuple[str, str], ...]
    gbps: Floats
    bytes: IntArray
    share: Floats
    load: npt.NDArray[np.float32]
    left_out: int

    def __len__(self) -> int:
        return len(self.ends)


class MemorySegment(NamedTuple):
    """Bytes start .. stop of a buffer of a rank, and whose data they hold: the input of `origins`
    from byte `offset` on, all of them added up; none for data without a meaning.
    """

    rank: int
    buffer: int
    start: int
    stop: int
    origins: tuple[int, ...]
    offset: int


@dataclass(frozen=True, eq=False)
class MemoryStates:
    """The origin of all data in memory, as changes in the order in which they take effect.

    Change k puts content `content[k]` into bytes start .. stop of buffer `buffer` of `rank`; `bar`
    did it (-1: it was there before). `origins[content]` are the ranks whose inputs it is made of,
    from byte `offset` of the first one's on; content -1 means nothing. `sizes` has the bytes of
    every buffer, [ranks, buffers].
    """

    sizes: IntArray
    bar: IntArray
    at_us: Floats
    rank: Int32s
    buffer: Int32s
    start: IntArray
    stop: IntArray
    content: Int32s
    offset: IntArray
    origins: tuple[tuple[int, ...], ...]

    def __len__(self) -> int:
        return len(self.bar)

    @property
    def begin(self) -> int:
        """Number of changes that stand for the contents before the first task."""
        return int((self.bar < 0).sum())

    def state(self, changes: int) -> list[MemorySegment]:
        """Return the contents of memory after `changes` changes, sorted, without overlaps."""
        held: dict[tuple[int, int], list[MemorySegment]] = {}
        for k in range(changes):
            new = self._segment(k)
            place = new.rank, new.buffer
            held[place] = [*_around(held.get(place, ()), new.start, new.stop), new]
        return sorted(
            segment
            for segments in held.values()
            for segment in segments
            if segment.stop > segment.start
        )

    def _segment(self, k: int) -> MemorySegment:
        content = int(self.content[k])
        return MemorySegment(
            int(self.rank[k]),
            int(self.buffer[k]),
            int(self.start[k]),
            int(self.stop[k]),
            self.origins[content] if content >= 0 else (),
            int(self.offset[k]),
        )


def _around(
    held: tuple[MemorySegment, ...] | list[MemorySegment], start: int, stop: int
) -> list[MemorySegment]:
    """Return the segments without start .. stop."""
    found = []
    for segment in held:
        if segment.start < start:
            found.append(segment._replace(stop=min(segment.stop, start)))
        if segment.stop > stop:
            moved = max(stop - segment.start, 0)
            found.append(
                segment._replace(start=max(segment.start, stop), offset=segment.offset + moved)
            )
    return found


class SceneFinding(NamedTuple):
    """A finding of the verifier and the bars that it is about, the culprit first."""

    finding: Finding
    bars: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Scene:
    """A program with times, as it is drawn. Texts may come from files: outputs escape them.

    `ranks` are those that are shown, `twins` has for each the first that does the same at the same
    times; `left_out` says in a sentence what is not shown, "" for nothing: then `program` is the
    part of the program that is shown, with all of its ranks in number. `usage` are busy,
    waiting and idle µs of every shown rank, the mean of its streams. `memory_left_out` says why
    there is no `memory`. `bar_of` gives bars by task rows.
    """

    program: Program
    topology: Topology | None
    title: str
    facts: tuple[tuple[str, str], ...]
    clock: Literal["model", "measured"]
    total_us: float
    ranks: IntArray
    left_out: str
    twins: IntArray
    lanes: Lanes
    bars: Bars
    phases: Phases
    labels: tuple[str, ...]
    sources: tuple[str, ...]
    notifies: tuple[str, ...]
    buffers: tuple[str, ...]
    critical: Critical
    usage: Floats
    traffic: Traffic
    links: LinkLoad | None
    memory: MemoryStates | None
    memory_left_out: str
    findings: tuple[SceneFinding, ...]
    is_verified: bool

    @cached_property
    def groups(self) -> list[tuple[int, ...]]:
        """Shown ranks that do the same at the same times, by the first of each group."""
        found: dict[int, list[int]] = {}
        for rank, twin in zip(self.ranks.tolist(), self.twins.tolist(), strict=True):
            found.setdefault(twin, []).append(rank)
        return [tuple(ranks) for ranks in found.values()]

    @cached_property
    def on_connections(self) -> dict[int, IntArray]:
        """The bars that travel on each connection, by its lane."""
        found = np.flatnonzero(self.bars.connection >= 0)
        found = found[np.argsort(self.bars.connection[found], kind="stable")]
        connections, first = np.unique(self.bars.connection[found], return_index=True)
        parts = np.split(found, first[1:])
        return dict(zip(connections.tolist(), parts, strict=False))

    @cached_property
    def never_ends(self) -> bool:
        """True if a task that is shown never ends."""
        return bool((self.bars.state == STUCK).any())

    def waits_for(self, bar: int) -> int:
        """Return the bar of the post that a wait consumes; -1 for anything else."""
        is_wait = self.bars.kind[bar] == TaskKind.NOTIFY_WAIT
        return int(self.bars.partner[bar]) if is_wait else -1

    def lanes_of(self, rank: int) -> range:
        """Return the lanes of a rank."""
        first, stop = np.searchsorted(self.lanes.rank, [rank, rank + 1])
        return range(int(first), int(stop))
