"""Events in the order of their times: a heap of numbered things by key.

Invariant: item[0] .. item[size - 1] are the things in the heap, none sooner than the one above it,
item[(at - 1) >> 1]; place[item[at]] is `at`, and -1 for things that are not in it; key[thing] is
its time. `put`, `take` and `drop` cost O(log size), and are parts of one compiled loop (engine.py).
"""

from __future__ import annotations

from hccl_py.simulator.contended.state import Heap


def is_sooner(heap: Heap, one: int, other: int) -> bool:
    """True if `one` comes out first: the smaller key, then the smaller number."""
    a, b = heap.key[one], heap.key[other]
    return bool(a < b or (a == b and one < other))


def rise(heap: Heap, at: int, thing: int) -> int:
    """Move a hole up from `at` to where the thing may stand; return that place."""
    while at > 0:
        above = (at - 1) >> 1
        other = heap.item[above]
        if not is_sooner(heap, thing, other):
            break
        heap.item[at] = other
        heap.place[other] = at
        at = above
    return at


def sink(heap: Heap, at: int, thing: int) -> int:
    """Move a hole down from `at` to where the thing may stand; return that place."""
    size = heap.size[0]
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and is_sooner(heap, heap.item[below + 1], heap.item[below]):
            below += 1
        other = heap.item[below]
        if not is_sooner(heap, other, thing):
            break
        heap.item[at] = other
        heap.place[other] = at
        at = below
    return at


def put(heap: Heap, thing: int, key: float) -> None:
    """Give a thing a key, whether it is in the heap or not."""
    at = heap.place[thing]
    if at < 0:
        at = heap.size[0]
        heap.size[0] += 1
    heap.key[thing] = key
    at = rise(heap, at, thing)
    at = sink(heap, at, thing)
    heap.item[at] = thing
    heap.place[thing] = at


def take(heap: Heap) -> int:
    """Remove the first thing."""
    thing = heap.item[0]
    heap.place[thing] = -1
    heap.size[0] -= 1
    if heap.size[0] > 0:
        last = heap.item[heap.size[0]]
        at = sink(heap, 0, last)
        heap.item[at] = last
        heap.place[last] = at
    return int(thing)


def drop(heap: Heap, thing: int) -> None:
    """Remove a thing, if it is there."""
    at = heap.place[thing]
    if at < 0:
        return
    heap.place[thing] = -1
    heap.size[0] -= 1
    last = heap.item[heap.size[0]]
    if last != thing:
        at = rise(heap, at, last)
        at = sink(heap, at, last)
        heap.item[at] = last
        heap.place[last] = at


HELPERS = (is_sooner, rise, sink, put, take, drop)
