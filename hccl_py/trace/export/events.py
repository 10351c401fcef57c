"""A scene as other viewers see it: processes with tracks, slices on tracks, flows, counters.

Ranks are processes. Their tracks are the streams, one for every connection that RDMA writes travel
on (as many as overlap), and one of phases per stream. In front stands a process for the program as
a whole (what it is, findings, the critical path), at the end one for the links. Several scenes of
one program stand rank by rank beside each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hccl_py.enums import TaskKind
from hccl_py.program.describe import BUFFER_WORDS, NAMED
from hccl_py.trace.export.limits import FLOWS, MOST_LINKS, flows_of, left_out_of
from hccl_py.trace.export.slices import Arg, Counter, Process, Slice, Track, brief
from hccl_py.trace.scene import CONNECTION, STUCK, UNREACHED, LinkLoad, Scene
from hccl_py.values import IntArray

_MOST_KEPT = 1 << 16
"""What many events share is kept for so many sorts of them."""


class Section(NamedTuple):
    """A process with its tracks, whose events come one by one, and its counters."""

    process: Process
    tracks: Iterator[tuple[Track, Iterator[Slice]]]
    counters: Iterator[Counter]


def sections(scenes: Mapping[str, Scene], flows: int = FLOWS) -> Iterator[Section]:
    """Yield the processes of scenes by their names, "" for a single one."""
    count = len(scenes)
    views = [
        _View.of(name, k, count, scene, flows) for k, (name, scene) in enumerate(scenes.items())
    ]
    ranks = sorted({rank for view in views for rank in view.scene.ranks.tolist()})
    last = 1 + max(ranks, default=0)

    def process(group: int, view: _View, name: str) -> Process:
        return Process(
            1 + count * group + view.number, f"{name}, {view.name}" if view.name else name
        )

    for view in views:
        yield Section(process(0, view, "program"), view.program(), iter(()))
    for rank in ranks:
        for view in views:
            if rank in view.shown:
                yield Section(process(1 + rank, view, f"rank {rank}"), view.rank(rank), iter(()))
    for view in views:
        if view.links is not None:
            yield Section(process(1 + last, view, "links"), iter(()), view.counters(view.links))


@dataclass(frozen=True, eq=False)
class _View:
    """One scene, and what is looked up for every event of it."""

    name: str
    number: int
    count: int
    scene: Scene
    shown: frozenset[int]
    flow: IntArray
    links: LinkLoad | None
    kinds: dict[int, str]
    texts: dict[str, list[str]]
    sentences: list[str]

    @staticmethod
    def of(name: str, number: int, count: int, scene: Scene, flows: int) -> _View:
        texts = {
            "phase": scene.labels,
            "source": scene.sources,
            "notify": scene.notifies,
            "buffer": [BUFFER_WORDS.get(buffer, buffer) for buffer in scene.buffers],
        }
        return _View(
            name=name,
            number=number,
            count=count,
            scene=scene,
            shown=frozenset(scene.ranks.tolist()),
            flow=flows_of(scene, flows),
            links=scene.links if scene.links is not None and len(scene.links) else None,
            kinds={int(kind): kind.spelling for kind in TaskKind},
            texts={key: [brief(text) for text in some] for key, some in texts.items()},
            sentences=list(left_out_of(scene, flows)),
        )

    def program(self) -> Iterator[tuple[Track, Iterator[Slice]]]:
        """Yield the tracks of the program as a whole."""
        yield Track("about"), iter([self._about()])
        if self.scene.findings:
            yield Track("findings"), (self._finding(k) for k in self._by_time())
        if len(self.scene.critical):
            yield Track("critical path"), self._critical()

    def rank(self, rank: int) -> Iterator[tuple[Track, Iterator[Slice]]]:
        """Yield the tracks of a rank."""
        lanes = self.scene.lanes
        for lane in self.scene.lanes_of(rank):
            if lanes.stream[lane] == CONNECTION:
                yield from self._connections(rank)
            else:
                name = brief(lanes.names[lane])
                yield Track(name, is_stream=True), self._tasks(lane)
                first, stop = np.searchsorted(self.scene.phases.lane, [lane, lane + 1])
                if stop > first:
                    phases = range(int(first), int(stop))
                    yield Track(f"phases of {name}"), self._phases(phases)

    def counters(self, links: LinkLoad) -> Iterator[Counter]:
        """Yield the load of links, the busiest first."""
        width = self.scene.total_us / links.load.shape[1]
        busiest = np.lexsort((np.arange(len(links)), -links.bytes, -links.share))[:MOST_LINKS]
        for link in busiest.tolist():
            load = np.append(links.load[link], 0.0)
            changes = np.flatnonzero(np.diff(load, prepend=-1.0))
            source, target = (brief(end) for end in links.ends[link])
            rate = f"{links.gbps[link]:g} GB/s" if np.isfinite(links.gbps[link]) else "never full"
            yield Counter(
                f"{source} to {target}, % of {rate}", changes * width, load[changes] * 100.0
            )

    def _about(self) -> Slice:
        scene = self.scene
        facts = [("title", brief(scene.title)), ("clock", scene.clock)]
        facts += [(brief(name), brief(value)) for name, value in scene.facts]
        facts += [("left out", sentence) for sentence in self.sentences]
        return Slice("about", "about", 0.0, 0.0, own=tuple(facts))

    def _by_time(self) -> list[int]:
        return sorted(range(len(self.scene.findings)), key=self._moment)

    def _moment(self, k: int) -> float:
        bars = self.scene.findings[k].bars
        return float(self.scene.bars.start_us[bars[0]]) if bars else 0.0

    def _finding(self, k: int, at_us: float | None = None) -> Slice:
        finding, bars = self.scene.findings[k]
        at = self._moment(k) if at_us is None else at_us
        args = [
            ("severity", finding.severity.value),
            ("message", brief(finding.message)),
            ("hint", brief(finding.hint)),
            ("source", brief(finding.source or "")),
            ("tasks", brief(", ".join(map(self._place, bars[:NAMED])))),
            ("more", finding.more),
        ]
        return Slice(finding.name, "finding", at, at, own=tuple(a for a in args if a[1]))

    def _place(self, bar: int) -> str:
        lane = int(self.scene.bars.lane[bar])
        rank, name = self.scene.lanes.rank[lane], brief(self.scene.lanes.names[lane])
        return f"rank {rank} {name} task {self.scene.bars.number[bar]}"

    def _critical(self) -> Iterator[Slice]:
        path = self.scene.critical
        columns = (path.bar.tolist(), path.begin_us.tolist(), path.end_us.tolist())
        for bar, begin, end in zip(*columns, strict=True):
            kind = self.kinds[int(self.scene.bars.kind[bar])]
            yield Slice(kind, "critical", begin, end, own=(("task", self._place(bar)),))

    def _phases(self, numbers: range) -> Iterator[Slice]:
        phases, words = self.scene.phases, self.texts["phase"]
        for k in numbers:
            yield Slice(
                words[phases.label[k]],
                "phase",
                float(phases.start_us[k]),
                float(phases.end_us[k]),
                own=(("round", int(phases.round[k])),),
            )

    @cached_property
    def _of_finding(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for k, finding in enumerate(self.scene.findings):
            for bar in finding.bars:
                found.setdefault(bar, []).append(k)
        return found

    def _tasks(self, lane: int) -> Iterator[Slice]:
        """Yield the tasks of a stream, each behind the findings about it."""
        first, stop = self.scene.lanes.first[lane : lane + 2].tolist()
        bars = self.scene.bars
        rank = int(self.scene.lanes.rank[lane])
        times = (bars.start_us, bars.end_us, self.flow, bars.partner, bars.state)
        columns = (column[first:stop].tolist() for column in times)
        words = self._words(rank, first, stop)
        known = self._of_finding
        for k, begin, end, flow, partner, state in zip(range(first, stop), *columns, strict=True):
            name, shared, own = next(words)
            for finding in known.get(k, ()):
                yield self._finding(finding, begin)
            if state == UNREACHED:
                continue
            leads = flow >= 0
            comes = leads and flow == partner
            number = flow * self.count + self.number
            yield Slice(
                name,
                "task",
                begin,
                end,
                shared,
                own,
                number if leads and not comes else -1,
                number if comes else -1,
            )

    @cached_property
    def _known(self) -> dict[object, tuple[Arg, ...]]:
        """Arguments that events share, kept so that all of them have the very same tuple."""
        return {}

    def _words(
        self, rank: int, first: int, stop: int
    ) -> Iterator[tuple[str, tuple[Arg, ...], tuple[Arg, ...]]]:
        """Yield name and arguments of the bars first .. stop - 1, which are of one rank."""
        bars, buffers = self.scene.bars, self.texts["buffer"]
        shared = (
            bars.kind,
            bars.peer,
            bars.round,
            bars.label,
            bars.source,
            bars.notify,
            bars.state,
        )
        moved = (bars.number, bars.size, bars.dst_size, bars.src_rank, bars.src_buffer)
        places = (bars.src_offset, bars.dst_rank, bars.dst_buffer, bars.dst_offset)
        keys = zip(*(column[first:stop].tolist() for column in shared), strict=True)
        values = zip(*(column[first:stop].tolist() for column in (*moved, *places)), strict=True)
        known = self._known
        for key, value in zip(keys, values, strict=True):
            found = known.get(key)
            if found is None:
                if len(known) >= _MOST_KEPT:
                    known.clear()
                found = known[key] = tuple(self._shared(*key))
            number, size, into, source, src, src_at, target, dst, dst_at = value
            if src < 0 or dst < 0:
                yield self.kinds[key[0]], found, (("task", number),)
                continue
            whose = f"rank {source} " if source != rank else ""
            to = f"rank {target} " if target != rank else ""
            own = (
                ("task", number),
                ("bytes", size),
                ("from", f"{whose}{buffers[src]}[{src_at}:{src_at + size}]"),
                ("to", f"{to}{buffers[dst]}[{dst_at}:{dst_at + into}]"),
            )
            yield self.kinds[key[0]], found, own

    def _shared(
        self, kind: int, peer: int, turn: int, label: int, source: int, notify: int, state: int
    ) -> Iterator[Arg]:
        if peer >= 0:
            yield "peer", peer
        if notify >= 0:
            yield "notify", self.texts["notify"][notify]
        if label >= 0:
            yield "phase", self.texts["phase"][label]
        yield "round", turn
        if source >= 0:
            yield "source", self.texts["source"][source]
        if state == STUCK:
            yield "state", "never ends"

    def _connections(self, rank: int) -> Iterator[tuple[Track, Iterator[Slice]]]:
        """Yield the tracks of a rank's RDMA writes: as many to a peer as writes overlap."""
        bars, lanes = self.scene.bars, self.scene.lanes
        mine = self.scene.lanes_of(rank)
        first, stop = int(lanes.first[mine.start]), int(lanes.first[mine.stop])
        writes = np.flatnonzero(
            (bars.connection[first:stop] >= 0) & (bars.state[first:stop] != UNREACHED)
        )
        writes += first
        writes = writes[np.lexsort((bars.end_us[writes], bars.peer[writes]))]
        rows: dict[int, list[list[int]]] = {}
        for write in writes.tolist():
            of_peer = rows.setdefault(int(bars.peer[write]), [])
            begin = bars.end_us[write]
            row = next((row for row in of_peer if bars.effect_us[row[-1]] <= begin), None)
            if row is None:
                of_peer.append([write])
            else:
                row.append(write)
        for peer, of_peer in rows.items():
            for row in of_peer:
                yield Track(f"RDMA to rank {peer}"), self._under_way(rank, row)

    def _under_way(self, rank: int, row: list[int]) -> Iterator[Slice]:
        bars = self.scene.bars
        for bar in row:
            name, shared, own = next(self._words(rank, bar, bar + 1))
            begin, end = float(bars.end_us[bar]), float(bars.effect_us[bar])
            yield Slice(
                name, "under way", begin, end, shared, (("from", self._place(bar)), *own[1:2])
            )
