"""Vector clocks: for every chain, the last place of every other chain that it knows to be over.

A clock has a dense part, one entry per main stream, and a sparse one for the other chains. When a
main stream learns of a chain of its own rank (a sub stream that it joins, a DataAck), that
knowledge is folded into the main's place: a clock that knows the main from there on knows the
chain, too. So sparse parts hold only chains under way, and there is no clock per task: a post
carries a copy until its wait has merged it.
"""

from __future__ import annotations

from hccl_py.verifier.analysis.clocks.arrays import (
    STATUS,
    WIDTH,
    ClockState,
    DependencyGraph,
    Int32s,
)


def last_up_to(values: Int32s, first: int, stop: int, limit: int) -> int:
    """Return the index of the last of sorted values[first:stop] up to `limit`; first - 1 for
    none.
    """
    low, high = first, stop
    while low < high:
        middle = (low + high) // 2
        if values[middle] <= limit:
            low = middle + 1
        else:
            high = middle
    return int(low - 1)


def _folded_place(g: DependencyGraph, s: ClockState, chain: int, main: int, is_prior: bool) -> int:
    """Return the place of a chain that follows from knowing its main stream up to `main`, by the
    folds of this pass or of the one before; -1 for none.
    """
    first = g.record_first[chain]
    if is_prior:
        at = last_up_to(s.prior_main, first, first + s.prior_records[chain], main)
        return int(s.prior_upto[at]) if at >= first else -1
    at = last_up_to(s.record_main, first, first + s.records[chain], main)
    return int(s.record_upto[at]) if at >= first else -1


def _is_prior(g: DependencyGraph, s: ClockState, holder: int) -> bool:
    """True if a clock is of the pass before: of a shared cell's post that this pass has not met."""
    at = holder - g.shared_base
    return 0 <= at < len(g.shared_posts) and s.has_clock[at] < 2


def known_place(g: DependencyGraph, s: ClockState, holder: int, chain: int) -> int:
    """Return the last place of a chain that a clock knows to be over, -1 for none."""
    main = s.dense[holder, g.home[chain]]
    if g.is_main[chain]:
        return int(main)
    first = s.sparse_first[holder]
    at = last_up_to(s.sparse_chain, first, first + s.width[holder], chain)
    is_there = at >= first and s.sparse_chain[at] == chain
    known = int(s.sparse_place[at]) if is_there else -1
    return max(known, _folded_place(g, s, chain, main, _is_prior(g, s, holder)))


def knows(g: DependencyGraph, s: ClockState, holder: int, chain: int, place: int) -> bool:
    """True if a clock knows that a chain is over up to a place."""
    return known_place(g, s, holder, chain) >= place


def is_before(g: DependencyGraph, s: ClockState, early: int, holder: int) -> bool:
    """True if a node's access is over before the holder's current one."""
    chain = s.event_chain[early]
    return chain == holder or knows(g, s, holder, chain, s.event_place[early])


def knows_node(g: DependencyGraph, s: ClockState, holder: int, node: int) -> bool:
    """True if the holder knows that a node's stream has got past it."""
    return g.chain[node] == holder or knows(g, s, holder, g.chain[node], g.place[node])


def learn(g: DependencyGraph, s: ClockState, holder: int, chain: int, place: int) -> None:
    """Add one entry to the sparse part of a clock."""
    first = s.sparse_first[holder]
    end = first + s.width[holder]
    at = end
    while at > first and s.sparse_chain[at - 1] > chain:
        at -= 1
    if at > first and s.sparse_chain[at - 1] == chain:
        s.sparse_place[at - 1] = max(s.sparse_place[at - 1], place)
        return
    if end == s.sparse_first[holder + 1]:
        s.counts[STATUS] = WIDTH
        return
    for k in range(end, at, -1):
        s.sparse_chain[k] = s.sparse_chain[k - 1]
        s.sparse_place[k] = s.sparse_place[k - 1]
    s.sparse_chain[at] = chain
    s.sparse_place[at] = place
    s.width[holder] += 1


def merge(g: DependencyGraph, s: ClockState, into: int, other: int, rank: int) -> None:
    """Raise a clock to the maximum of itself and another; `rank` >= 0 makes it that rank's main,
    which folds entries of its own rank. Costs the dense part and both sparse parts.
    """
    mains, others = s.dense[into], s.dense[other]
    for k in range(g.mains):
        mains[k] = max(mains[k], others[k])
    if s.width[other] == 0:
        return
    chains, places = s.sparse_chain, s.sparse_place
    # Both sparse parts are sorted by chain: merge them into `scratch`, then copy back. i and j
    # run over the two parts, up to n and m; k entries are kept so far.
    first = s.sparse_first[into]
    i, j, k = first, s.sparse_first[other], 0
    n, m = i + s.width[into], j + s.width[other]
    while i < n or j < m:
        if j >= m or (i < n and chains[i] < chains[j]):
            chain, place = chains[i], places[i]
            i += 1
        else:
            chain, place = chains[j], places[j]
            if i < n and chains[i] == chain:
                place = max(place, places[i])
                i += 1
            j += 1
        if g.home[chain] == rank:
            fold(g, s, chain, place, mains[rank])
        elif _folded_place(g, s, chain, mains[g.home[chain]], False) < place:
            # An entry that the dense part implies through a fold is dropped.
            s.scratch[0, k] = chain
            s.scratch[1, k] = place
            k += 1
    if k > s.sparse_first[into + 1] - first:
        s.counts[STATUS] = WIDTH
        return
    for at in range(k):
        s.sparse_chain[first + at] = s.scratch[0, at]
        s.sparse_place[first + at] = s.scratch[1, at]
    s.width[into] = k


def fold(g: DependencyGraph, s: ClockState, chain: int, place: int, main: int) -> None:
    """Record that a main stream knows a chain of its rank up to `place` from place `main` on."""
    last = g.record_first[chain] + s.records[chain] - 1
    if s.records[chain] and s.record_upto[last] >= place:
        return
    s.record_upto[last + 1] = place
    s.record_main[last + 1] = main
    s.records[chain] += 1


def copy_clock(s: ClockState, into: int, other: int) -> None:
    """Overwrite a clock with another."""
    for k in range(s.dense.shape[1]):
        s.dense[into, k] = s.dense[other, k]
    first, end, there = s.sparse_first[into], s.sparse_first[into + 1], s.sparse_first[other]
    n = s.width[other]
    if n > end - first:
        s.counts[STATUS] = WIDTH
        return
    for k in range(n):
        s.sparse_chain[first + k] = s.sparse_chain[there + k]
        s.sparse_place[first + k] = s.sparse_place[there + k]
    s.width[into] = n


HELPERS = (
    last_up_to,
    _folded_place,
    _is_prior,
    known_place,
    knows,
    is_before,
    knows_node,
    learn,
    merge,
    fold,
    copy_clock,
)
