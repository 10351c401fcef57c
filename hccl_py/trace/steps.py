"""A timed program, and its tasks one by one in the form that people look at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_py.enums import TaskKind
from hccl_py.printable import brief
from hccl_py.program.describe import ByteRange, notify_name, ranges_of
from hccl_py.program.program import Program
from hccl_py.simulator import CostModel, Stragglers, Timeline, simulate
from hccl_py.stragglers import EVEN
from hccl_py.topology import Topology
from hccl_py.trace.scene import Scene
from hccl_py.values import IntArray

__all__ = ["ByteRange", "Step", "TaskPlace", "Trace", "bars_in_time", "steps_of"]


class TaskPlace(NamedTuple):
    """Where a task is: the `number`-th on a stream of a rank, from 0; stream 0 is main."""

    rank: int
    stream: int
    number: int


class Step(NamedTuple):
    """One task. `at_us` is when it shows: a wait at its end, anything else at its start.

    `effect_us` is when a post has set its notify, and an RDMA write has arrived.
    `partner` is the post that a wait consumes, or the wait that consumes a post.
    """

    place: TaskPlace
    kind: TaskKind
    size: int
    peer: int | None
    start_us: float
    end_us: float
    effect_us: float
    at_us: float
    round: int
    label: str
    source: str
    src: ByteRange | None
    dst: ByteRange | None
    notify: str
    partner: TaskPlace | None


def steps_of(scene: Scene, bars: Iterable[int]) -> list[Step]:
    """Return what a scene says of some bars, its texts made printable."""
    return [_step_of(scene, int(bar)) for bar in bars]


def bars_in_time(scene: Scene, rank: int) -> IntArray:
    """Return the bars of a rank in the order in which they happen; what never does comes last."""
    lanes, columns = scene.lanes_of(rank), scene.bars
    bars = np.arange(scene.lanes.first[lanes.start], scene.lanes.first[lanes.stop])
    is_wait = columns.kind[bars] == TaskKind.NOTIFY_WAIT
    at = np.where(is_wait, columns.end_us[bars], columns.start_us[bars])
    order = scene.program.linked.order
    position = np.full(len(scene.program.tasks), len(order))
    position[order] = np.arange(len(order))
    found: IntArray = bars[np.lexsort((position[columns.row[bars]], at, columns.state[bars]))]
    return found


def _step_of(scene: Scene, bar: int) -> Step:
    bars = scene.bars
    kind, peer = TaskKind(int(bars.kind[bar])), int(bars.peer[bar])
    label, source, notify = int(bars.label[bar]), int(bars.source[bar]), int(bars.notify[bar])
    start, end = float(bars.start_us[bar]), float(bars.end_us[bar])
    partner, size, into = int(bars.partner[bar]), int(bars.size[bar]), int(bars.dst_size[bar])
    src = dst = None
    if kind.moves_data:
        from_, to = int(bars.src_offset[bar]), int(bars.dst_offset[bar])
        stop = to + (size if into < 0 else into)
        src = ByteRange(int(bars.src_rank[bar]), int(bars.src_buffer[bar]), from_, from_ + size)
        dst = ByteRange(int(bars.dst_rank[bar]), int(bars.dst_buffer[bar]), to, stop)
    return Step(
        place=_place_of(scene, bar),
        kind=kind,
        size=size,
        peer=peer if peer >= 0 else None,
        start_us=start,
        end_us=end,
        effect_us=float(bars.effect_us[bar]),
        at_us=end if kind is TaskKind.NOTIFY_WAIT else start,
        round=int(bars.round[bar]),
        label=brief(scene.labels[label]) if label >= 0 else "",
        source=brief(scene.sources[source]) if source >= 0 else "",
        src=src,
        dst=dst,
        notify=brief(scene.notifies[notify]) if notify >= 0 else "",
        partner=_place_of(scene, partner) if partner >= 0 else None,
    )


def _place_of(scene: Scene, bar: int) -> TaskPlace:
    lane = int(scene.bars.lane[bar])
    rank, stream = int(scene.lanes.rank[lane]), int(scene.lanes.stream[lane])
    return TaskPlace(rank, stream, int(scene.bars.number[bar]))


@dataclass(frozen=True, eq=False)
class Trace:
    """A program and the model's times for its tasks."""

    program: Program
    timeline: Timeline

    @staticmethod
    def of(
        program: Program,
        topology: Topology,
        cost: CostModel | None = None,
        *,
        network: Literal["uncontended", "contended"] = "uncontended",
        slow: Stragglers = EVEN,
    ) -> Trace:
        """Time a program, as `simulate` does."""
        return Trace(program, simulate(program, topology, cost, network=network, slow=slow))

    @cached_property
    def partner(self) -> npt.NDArray[np.int32]:
        """For every wait the row of its post, for every post that of its wait; -1 elsewhere."""
        found = self.program.linked.post_of.copy()
        waits = np.flatnonzero(found >= 0)
        found[found[waits]] = waits
        return found

    def rows(self, rank: int) -> npt.NDArray[np.int64]:
        """Return the rows of a rank's tasks in the order in which they happen."""
        tasks = self.program.tasks
        rows = np.arange(tasks.first[rank], tasks.first[rank + 1])
        return rows[np.lexsort((self._position[rows], self._at[rows]))]

    def steps(self, rows: Sequence[int]) -> list[Step]:
        """Return tasks by their rows."""
        return [self._step(row) for row in rows]

    @cached_property
    def _position(self) -> npt.NDArray[np.int32]:
        order = self.program.linked.order
        found = np.empty(len(order), np.int32)
        found[order] = np.arange(len(order), dtype=np.int32)
        return found

    @cached_property
    def _at(self) -> npt.NDArray[np.float64]:
        is_wait = self.program.tasks.kind == TaskKind.NOTIFY_WAIT
        return np.where(is_wait, self.timeline.end_us, self.timeline.start_us)

    @cached_property
    def _kinds(self) -> npt.NDArray[np.int8]:
        return self.program.tasks.kind

    def _place(self, row: int) -> TaskPlace:
        tasks = self.program.tasks
        stream = int(tasks.table.stream[tasks.instruction[row]])
        return TaskPlace(int(tasks.rank[row]), stream, int(tasks.index[row]))

    def _step(self, row: int) -> Step:
        program, tasks, timeline = self.program, self.program.tasks, self.timeline
        table, at = tasks.table, int(tasks.instruction[row])
        kind, peer = TaskKind(int(table.kind[at])), int(tasks.peer[row])
        is_sync = kind in (TaskKind.NOTIFY_POST, TaskKind.NOTIFY_WAIT)
        label, line, partner = int(table.label[at]), int(table.line[at]), int(self.partner[row])
        src, dst = ranges_of(program, row) if kind.moves_data else (None, None)
        return Step(
            place=self._place(row),
            kind=kind,
            size=int(tasks.size[row]),
            peer=peer if peer >= 0 else None,
            start_us=float(timeline.start_us[row]),
            end_us=float(timeline.end_us[row]),
            effect_us=float(timeline.effect_us[row]),
            at_us=float(self._at[row]),
            round=int(table.round[at]),
            label=program.labels[label] if label >= 0 else "",
            source=program.lines[line] if line >= 0 else "",
            src=src,
            dst=dst,
            notify=notify_name(program, int(tasks.cell[row])) if is_sync else "",
            partner=self._place(partner) if partner >= 0 else None,
        )
