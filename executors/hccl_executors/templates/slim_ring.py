"""Slim ring: a ring with one signal per step, for small data over SDMA links.

The steps are those of ring.py, without its Acks: every step has a notify of its own on each
transport, so that "my chunk is ready" of one step is never taken for that of another. A rank posts
notify s to the right before step s, waits for notify s from the left, and reads. A chunk that is
still read is not overwritten, because no chunk changes after it was let go; in the end every rank
tells its left neighbour that it has read all.

Cost for p ranks and n bytes, that last signal's α included: reduce-scatter pα + (p-1)/p·n(β+γ),
all-gather pα + (p-1)/p·nβ; two tasks per step besides the data, where a ring has four. Source:
HCCL's ReduceScatterSlimRing and AllGatherSlimRing (hcomm 8958adb, alg_template).
"""

from hccl_py.orchestration import Chunks, Plane, Stream

NOTIFIES = 8
"""Notifies of a transport besides its own: HCCL asks for as many with any number of ranks."""

MOST = NOTIFIES
"""Ranks: p - 1 steps and the end take a notify each."""


def slim_ring_all_gather(stream: Stream, plane: Plane, chunks: Chunks) -> None:
    """Leave in every rank all chunks; rank r starts with chunk r."""
    for step in stream.steps("all-gather", plane.size - 1):
        theirs = chunks[(plane.id - 1 - step) % plane.size]
        _meet(stream, plane, step)
        stream.copy(theirs, plane.left.remote(theirs))
    _end(stream, plane)


def slim_ring_reduce_scatter(stream: Stream, plane: Plane, chunks: Chunks) -> None:
    """Leave in chunk r of rank r the reduction of all ranks' chunk r; other chunks hold partial
    results.
    """
    for step in stream.steps("reduce-scatter", plane.size - 1):
        mine = chunks[(plane.id - 2 - step) % plane.size]
        theirs = plane.left.remote(mine)
        _meet(stream, plane, step)
        if plane.left.rank.inline_reduce:
            stream.reduce(mine, theirs)
        else:
            beside = plane.left.rank.landing(mine)
            stream.copy(beside, theirs)
            stream.reduce(mine, beside)
    _end(stream, plane)


def _meet(stream: Stream, plane: Plane, step: int) -> None:
    """Let the right one read, and hear that this rank may."""
    plane.right.post(stream, step)
    plane.left.wait(stream, step)


def _end(stream: Stream, plane: Plane) -> None:
    """Tell the left one that all has been read, and hear it from the right one."""
    if plane.size == 1:
        return
    last = int(plane.size) - 1
    with stream.phase("end"):
        plane.left.post(stream, last)
        plane.right.wait(stream, last)
