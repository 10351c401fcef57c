"""The order in which links have their levels found anew: dirty ones, the lowest level first.

Links stand in the order of their levels. Few of them change places at an event, so that is cheaper
than a heap, and dirty ones are found by looking along the line.

Invariants: link[place[l]] is l for every link l; block[b] is the number of dirty links among places
b·2^BLOCK and further; counts[LEFT] is the number of all dirty links, none of which stands before
place counts[AT] unless a search took very many turns. `note` collects links between two searches,
`mark` adds them to the one under way. `next_dirty` skips clean blocks; `settle` costs the places by
which a link moves, `sort_links` O(links^1.3).
"""

from __future__ import annotations

from hccl_py.simulator.contended.state import Dirty, Members, Sharing

ENOUGH = 1e-11
"""A link that lacks less than this share of its capacity does not bind."""

TURNS = 4
"""How often each link has its turn, on average, in order of levels; after that in order of time,
in which every search for rates comes to an end.
"""

NOTED, LEFT, TAKEN, AT = 0, 1, 2, 3
"""Places in Dirty.counts: how many links are noted for the next search, have a turn left in the one
under way, and had one; where to look for the next.
"""

FEW = 8
"""Links of which one is not few: where so many move, all are sorted."""

BLOCK = 6
"""Blocks of links have 2^6 of them."""


def may_change(s: Sharing, m: Members, link: int) -> bool:
    """True if a link may get another level: it has members, or must get some."""
    return bool(m.size[link] > 0 or s.room[link] < -ENOUGH * s.capacity[link])


def note(s: Sharing, m: Members, dirty: Dirty, link: int) -> None:
    """Note a link for the next search."""
    if not dirty.is_dirty[link] and may_change(s, m, link):
        dirty.is_dirty[link] = 1
        dirty.noted[dirty.counts[NOTED]] = link
        dirty.counts[NOTED] += 1


def mark(s: Sharing, m: Members, dirty: Dirty, link: int) -> None:
    """Give a link another turn in the search under way."""
    if may_change(s, m, link):
        place = dirty.place[link]
        dirty.is_dirty[link] = 1
        dirty.block[place >> BLOCK] += 1
        dirty.counts[LEFT] += 1
        if place < dirty.counts[AT] and dirty.counts[TAKEN] <= TURNS * len(s.level):
            dirty.counts[AT] = place


def next_dirty(dirty: Dirty) -> int:
    """Take the lowest link that has a turn, after very many turns the next one."""
    at = dirty.counts[AT]
    while dirty.block[at >> BLOCK] == 0 or not dirty.is_dirty[dirty.link[at]]:
        at = at + 1 if dirty.block[at >> BLOCK] else ((at >> BLOCK) + 1) << BLOCK
        if at >= len(dirty.link):
            at = 0
    dirty.counts[AT] = at
    link = dirty.link[at]
    dirty.is_dirty[link] = 0
    dirty.block[at >> BLOCK] -= 1
    dirty.counts[LEFT] -= 1
    dirty.counts[TAKEN] += 1
    return int(link)


def step(dirty: Dirty, origin: int, at: int) -> None:
    """Let the link at one place stand at the place beside it."""
    link = dirty.link[origin]
    dirty.link[at], dirty.place[link] = link, at
    if origin >> BLOCK != at >> BLOCK and dirty.is_dirty[link]:
        dirty.block[origin >> BLOCK] -= 1
        dirty.block[at >> BLOCK] += 1


def settle(s: Sharing, dirty: Dirty, link: int) -> None:
    """Put a link that is not dirty where it belongs by its level."""
    level, at, last = s.level[link], dirty.place[link], len(dirty.link) - 1
    while at > 0 and s.level[dirty.link[at - 1]] > level:
        step(dirty, at - 1, at)
        at -= 1
    while at < last and s.level[dirty.link[at + 1]] < level:
        step(dirty, at + 1, at)
        at += 1
    dirty.link[at], dirty.place[link] = link, at


def sort_links(s: Sharing, dirty: Dirty) -> None:
    """Put all links in the order of their levels, by Shell's sort."""
    count = len(dirty.link)
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for begin in range(gap, count):
            link, at = dirty.link[begin], begin
            while at >= gap and s.level[dirty.link[at - gap]] > s.level[link]:
                dirty.link[at] = dirty.link[at - gap]
                at -= gap
            dirty.link[at] = link
        gap //= 3
    for at in range(count):
        dirty.place[dirty.link[at]] = at


def start_search(s: Sharing, m: Members, dirty: Dirty) -> None:
    """Give all links that were noted a turn; those without members by what each flow may get."""
    noted, empty = dirty.counts[NOTED], 0
    dirty.counts[TAKEN] = dirty.counts[NOTED] = 0
    for k in range(noted):
        link = dirty.noted[k]
        dirty.is_dirty[link] = 0
        if m.size[link] == 0 and m.flows[link]:
            load = m.load[link] if len(m.own) else float(m.flows[link])
            s.level[link] = s.capacity[link] / load
            dirty.noted[k], dirty.noted[empty] = dirty.noted[empty], link
            empty += 1
    if FEW * empty > len(s.level):
        sort_links(s, dirty)
    else:
        for k in range(empty):
            settle(s, dirty, dirty.noted[k])
    dirty.counts[AT], dirty.counts[LEFT] = len(dirty.link), noted
    for k in range(noted):
        dirty.is_dirty[dirty.noted[k]] = 1
        place = dirty.place[dirty.noted[k]]
        dirty.block[place >> BLOCK] += 1
        dirty.counts[AT] = min(dirty.counts[AT], place)


HELPERS = (may_change, note, mark, next_dirty, step, settle, sort_links, start_search)
