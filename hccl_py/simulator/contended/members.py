"""The flows on a link: its members, as a heap by the bytes at which they are due, before all
others; and the other links that its members are on.

Invariants: slots slot[first[l]] .. of link l are those of its flows, the first size[l] of them its
members, none due before the one above it; place[slot[first[l] + k]] is k. In Coupling, the pairs of
l that members make stand at first[l] .. first[l] + active[l] - 1, in any order.
"""

from __future__ import annotations

from hccl_py.simulator.contended.state import Coupling, Members

SCATTER = 40503
"""Sets the pairs of links apart in the table that finds them."""


def move_slot(m: Members, link: int, origin: int, at: int) -> None:
    """Let what stands at one place of a link stand at another one."""
    source, target = m.first[link] + origin, m.first[link] + at
    slot = m.slot[source]
    m.slot[target], m.bottleneck[target], m.place[slot] = slot, m.bottleneck[source], at


def set_slot(m: Members, link: int, at: int, slot: int, bottleneck: int) -> None:
    """Let a slot stand at a place of its link."""
    target = m.first[link] + at
    m.slot[target], m.bottleneck[target], m.place[slot] = slot, bottleneck, at


def sift(m: Members, link: int, at: int, slot: int, size: int) -> None:
    """Put a slot into the heap of a link's first `size` slots, in which there is a hole."""
    first, due = m.first[link], m.due[m.owner[slot]]
    while at > 0:
        above = (at - 1) >> 1
        if m.due[m.owner[m.slot[first + above]]] <= due:
            break
        move_slot(m, link, above, at)
        at = above
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        least = m.due[m.owner[m.slot[first + below]]]
        if below + 1 < size:
            right = m.due[m.owner[m.slot[first + below + 1]]]
            if right < least:
                below, least = below + 1, right
        if least >= due:
            break
        move_slot(m, link, below, at)
        at = below
    set_slot(m, link, at, slot, link)
    m.soonest[link] = m.due[m.owner[m.slot[first]]]


def admit(m: Members, link: int, slot: int, weight: float) -> None:
    """Make a flow on a link a member."""
    size = m.size[link]
    move_slot(m, link, size, m.place[slot])
    m.size[link] = size + 1
    if len(m.own):
        m.weight[link] += weight
    sift(m, link, size, slot, size + 1)


def dismiss(m: Members, link: int, slot: int, weight: float, bottleneck: int) -> None:
    """Let a member be one of the others."""
    size = m.size[link] - 1
    m.size[link] = size
    if len(m.own):
        m.weight[link] = m.weight[link] - weight if size else 0.0
    last = m.slot[m.first[link] + size]
    if last != slot:
        sift(m, link, m.place[slot], last, size)
    set_slot(m, link, size, slot, bottleneck)


def pair_of(c: Coupling, link: int, other: int) -> int:
    """Return the pair of two links."""
    last = len(c.table) - 1
    at = (int(link) * SCATTER + int(other)) & last
    while True:
        pair = c.table[at]
        if c.end[pair] == other and c.first[link] <= pair < c.first[link + 1]:
            return int(pair)
        at = (at + 1) & last


def swap(c: Coupling, pair: int, at: int) -> None:
    """Let a pair stand at a place, and what stood there at the pair's."""
    was, other = c.place[pair], c.pair[at]
    c.link[was], c.flows[was], c.pair[was], c.place[other] = c.link[at], c.flows[at], other, was
    if len(c.weight):
        c.weight[was] = c.weight[at]
    c.pair[at], c.place[pair], c.link[at] = pair, at, c.end[pair]


def couple(c: Coupling, link: int, other: int, slot: int, weight: float) -> None:
    """Note that a member of a link is on another one, too, and what it weighs there."""
    pair = pair_of(c, link, other)
    c.of_slot[slot] = pair
    behind = c.first[link] + c.active[link]
    if c.place[pair] >= behind:
        swap(c, pair, behind)
        c.flows[behind] = 0.0
        if len(c.weight):
            c.weight[behind] = 0.0
        c.active[link] += 1
    c.flows[c.place[pair]] += 1.0
    if len(c.weight):
        c.weight[c.place[pair]] += weight


def uncouple(c: Coupling, link: int, slot: int, weight: float) -> None:
    """Note that a flow is no member of a link any more."""
    pair = c.of_slot[slot]
    at = c.place[pair]
    c.flows[at] -= 1.0
    if len(c.weight):
        c.weight[at] -= weight
    if c.flows[at] == 0:
        c.active[link] -= 1
        swap(c, pair, c.first[link] + c.active[link])


HELPERS = (move_slot, set_slot, sift, admit, dismiss, pair_of, swap, couple, uncouple)
