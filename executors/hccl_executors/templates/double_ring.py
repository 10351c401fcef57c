"""Several rings over the ranks of a server: every slot is cut, each part goes its own way round.

    ring 0:  0 → 1 → 2 → 3 → 0      first half of every slot, on sub stream 0
    ring 1:  0 → 3 → 2 → 1 → 0      second half, on main

Two rings the two ways round use both directions of every link (A3's `ring0`, `ring1`); four rings
use all links between the two meshes of an Atlas 800 (model 9000). One ring is the plain one. k
rings over p ranks take as many steps as one, p - 1, and each moves 1/k of the data: all-gather and
reduce-scatter cost (p-1)α + (p-1)/(pk)·n(β [+ γ]).

There are two forms.

- `rings_*`: in place, in exported memory, each ring on a stream of its own; k - 1 sub streams.
- `aligned_*`, as on A3: the rings begin each read together, so that both directions of a link are
  busy at the same time. Where user memory is given, k helper streams move data between it and the
  exported memory meanwhile, and the last step ends in user memory itself: 2k - 1 sub streams, else
  k - 1. All links are SDMA.

Main runs the last ring, sub stream q ring q, and sub stream k - 1 + q helps ring q.
"""

from collections.abc import Callable, Sequence
from typing import Any

from hccl_executors.templates.ring import ring_all_gather, ring_reduce_scatter
from hccl_py.orchestration import Chunks, Plane, Rank, Region, Stream
from hccl_py.values import RankInt

__all__ = [
    "aligned_all_gather",
    "aligned_reduce_scatter",
    "rings_all_gather",
    "rings_reduce_scatter",
]


def rings_all_gather(rank: Rank[Any, Any], rings: Sequence[Plane], slots: Chunks) -> None:
    """Leave in every rank all slots; member i of level0 starts with slot i."""
    with rank.fork(len(rings) - 1) as subs:
        streams = (*subs, rank.main)
        for stream, ring, part in zip(streams, rings, _parts(rings, slots), strict=True):
            ring_all_gather(stream, ring, part)


def rings_reduce_scatter(rank: Rank[Any, Any], rings: Sequence[Plane], slots: Chunks) -> None:
    """Leave in slot i of member i of level0 the reduction of all slots i; others are clobbered."""
    with rank.fork(len(rings) - 1) as subs:
        streams = (*subs, rank.main)
        for stream, ring, part in zip(streams, rings, _parts(rings, slots), strict=True):
            ring_reduce_scatter(stream, ring, part)


def aligned_all_gather(
    rank: Rank[Any, Any], rings: Sequence[Plane], work: Chunks, out: Chunks
) -> None:
    """Leave all slots in `out`, which may be `work`; member i of level0 starts with slot i of
    `work`, exported memory at the same place of every rank.
    """
    places, ends = _parts(rings, work), _parts(rings, out)
    steps = int(rings[0].size) - 1
    if not steps and out is not work:
        rank.main.copy(out, work)

    def read(q: int, step: int, stream: Stream) -> None:
        ring, slot = rings[q], (rings[q].id - 1 - step) % (steps + 1)
        into = ends[q] if step == steps - 1 else places[q]
        stream.copy(into[slot], ring.left.remote(places[q][slot]))
        ring.left.tx_data_signal(stream)  # I have read yours

    def deliver(q: int, step: int, stream: Stream) -> None:
        slot = (rings[q].id - step) % (steps + 1)
        stream.copy(ends[q][slot], places[q][slot])

    _run(rank, rings, "aligned all-gather", read, deliver, 0 if out is work else steps)


def aligned_reduce_scatter(
    rank: Rank[Any, Any],
    rings: Sequence[Plane],
    inputs: Chunks,
    work: Chunks,
    out: Region | None = None,
) -> None:
    """Reduce slot i of all `inputs` at member i of level0: in `out`, or in slot i of `work`.

    `work` is exported memory at the same place of every rank. `inputs` may be `work`, and is left
    as it is where it is not. `out` needs other inputs than `work`.
    """
    sources, places = _parts(rings, inputs), _parts(rings, work)
    ends = None if out is None else out.split(len(rings))
    steps = int(rings[0].size) - 1

    def place(q: int, step: int) -> tuple[RankInt, Region]:
        """Return the slot that a step receives, and where."""
        slot = (rings[q].id - 2 - step) % (steps + 1)
        return slot, places[q][slot] if ends is None or step < steps - 1 else ends[q]

    def fetch(q: int, step: int, stream: Stream) -> None:
        slot, into = place(q, step + 1)
        stream.copy(into, sources[q][slot])

    def read(q: int, step: int, stream: Stream) -> None:
        (slot, into), left = place(q, step), rings[q].left
        if rank.inline_reduce:
            stream.reduce(into, left.remote(places[q][slot]))
            left.tx_data_signal(stream)
        else:
            beside = rank.landing(places[q][slot])
            stream.copy(beside, left.remote(places[q][slot]))
            left.tx_data_signal(stream)
            stream.reduce(into, beside)

    if inputs is not work:  # what is sent first, and what is received first
        for q in range(len(rings)):
            for step in range(-2, min(steps, 1) - 1):
                fetch(q, step, rank.main)
    helped = 0 if inputs is work else steps - 1
    _run(rank, rings, "aligned reduce-scatter", read, fetch, helped)


Act = Callable[[int, int, Stream], None]


def _run(
    rank: Rank[Any, Any], rings: Sequence[Plane], name: str, read: Act, help: Act, helped: int
) -> None:
    """Run `read(ring, step, stream)` of all rings step by step, and `help` in the first `helped`
    steps; main sees to it that all begin when every ring has its Ack.
    """
    k, main = len(rings), rank.main
    helpers = range(k - 1, 2 * k - 1)
    done, wake = rank.notifies[: len(rank.subs)], rank.notifies[len(rank.subs) :]
    with rank.fork(k - 1) as subs:
        streams = (*subs, main)
        for step in main.steps(name, rings[0].size - 1):
            for ring, stream in zip(rings, streams, strict=True):
                ring.right.tx_ack(stream)  # what I have got so far you may read
                ring.left.rx_ack(stream)
            starting = [*range(k - 1), *(helpers if step < helped else ())]
            for q in range(k - 1):
                subs[q].post(done[q])
                main.wait(done[q])
            for index in starting:
                main.post(wake[index])
                rank.subs[index].wait(wake[index])
            for q, stream in enumerate(streams):
                read(q, step, stream)
                rings[q].right.rx_data_signal(stream)  # you have read mine
            if step < helped:
                for q, index in enumerate(helpers):
                    help(q, step, rank.subs[index])
                    rank.subs[index].post(done[index])
                    main.wait(done[index])


def _parts(rings: Sequence[Plane], slots: Chunks) -> list[Chunks]:
    """Return each ring's part of every slot, numbered by the ring's members."""
    parts = zip(rings, slots.parts(len(rings)), strict=True)
    return [part.renumbered(ring.order) for ring, part in parts]
