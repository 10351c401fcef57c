"""Tasks of a scene one by one, in a form for people."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import NamedTuple

import numpy as np

from hccl_py.enums import TaskKind
from hccl_py.printable import brief
from hccl_py.program.describe import ByteRange
from hccl_py.trace.scene import Scene
from hccl_py.values import IntArray


class TaskPlace(NamedTuple):
    """The place of a task: the `number`-th on a stream of a rank, from 0; stream 0 is main."""

    rank: int
    stream: int
    number: int


class TraceStep(NamedTuple):
    """One task. `at_us` is when it shows: a wait at its end, anything else at its start; inf for a
    task that never ends. `state` is that of its bar.

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
    state: int


def steps_of(scene: Scene, bars: Iterable[int]) -> list[TraceStep]:
    """Return the tasks of some bars, with texts made printable."""
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


def _step_of(scene: Scene, bar: int) -> TraceStep:
    bars = scene.bars
    kind, peer = TaskKind(int(bars.kind[bar])), int(bars.peer[bar])
    label, source, notify = int(bars.label[bar]), int(bars.source[bar]), int(bars.notify[bar])
    start, end = float(bars.start_us[bar]), float(bars.end_us[bar])
    partner, size, into = int(bars.partner[bar]), int(bars.size[bar]), int(bars.dst_size[bar])
    state, src, dst = int(bars.state[bar]), None, None
    if kind.moves_data:
        from_, to = int(bars.src_offset[bar]), int(bars.dst_offset[bar])
        stop = to + (size if into < 0 else into)
        src = ByteRange(int(bars.src_rank[bar]), int(bars.src_buffer[bar]), from_, from_ + size)
        dst = ByteRange(int(bars.dst_rank[bar]), int(bars.dst_buffer[bar]), to, stop)
    return TraceStep(
        place=_place_of(scene, bar),
        kind=kind,
        size=size,
        peer=peer if peer >= 0 else None,
        start_us=start,
        end_us=end,
        effect_us=float(bars.effect_us[bar]),
        at_us=inf if state else end if kind is TaskKind.NOTIFY_WAIT else start,
        round=int(bars.round[bar]),
        label=brief(scene.labels[label]) if label >= 0 else "",
        source=brief(scene.sources[source]) if source >= 0 else "",
        src=src,
        dst=dst,
        notify=brief(scene.notifies[notify]) if notify >= 0 else "",
        partner=_place_of(scene, partner) if partner >= 0 else None,
        state=state,
    )


def _place_of(scene: Scene, bar: int) -> TaskPlace:
    lane = int(scene.bars.lane[bar])
    rank, stream = int(scene.lanes.rank[lane]), int(scene.lanes.stream[lane])
    return TaskPlace(rank, stream, int(scene.bars.number[bar]))
