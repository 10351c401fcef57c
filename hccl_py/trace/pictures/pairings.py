"""The pairs of a step in words: rules that are tried on the pairs of ranks, in turn.

A step is described for all ranks together where a pair joins devices of different servers and
different places; else the pairs inside servers and those between them are described apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from hccl_py.values import IntArray


class Clause(NamedTuple):
    """A part of a sentence by its `key`: `scope` says for which pairs, `who` the nodes' noun."""

    scope: str
    key: str
    who: str
    values: Mapping[str, int]

    @property
    def text(self) -> str:
        """The clause in English."""
        values = {**self.values, "who": self.who}
        return SCOPES[self.scope].format(rule=RULES[self.key].format(**values))


SCOPES = {
    "all": "{rule}",
    "inside": "in every server, {rule}",
    "between": "between servers, {rule}",
    "alike": "between servers, each device with its like: {rule}",
}

RULES = {
    "everyone": "every {who} sends to every other",
    "two_swap": "the two {who}s swap",
    "swap": "pairs of {who}s {by} apart swap",
    "next": "every {who} sends to the next",
    "previous": "every {who} sends to the one before",
    "on": "every {who} sends to the one {by} on",
    "back": "every {who} sends to the one {by} back",
    "neighbours": "every {who} sends to both neighbours on a ring",
    "others": "every {who} sends to {count} others",
    "one_pair": "{who} {rank} sends to {who} {to}",
    "one_other": "every {who} sends to one other",
    "from_one": "{who} {rank} sends to {count} others",
    "to_one": "{count} {who}s send to {who} {rank}",
    "some_swap": "{count} pairs swap",
    "some": "{count} pairs transfer",
}

ENDINGS = {
    "": "",
    "reads": "the receiver reads it",
    "adds": "the receiver adds it to its own",
    "reads_adds": "the receiver reads it and adds it to its own",
    "then_adds": "the receiver adds it up afterwards",
}


class ServerPlaces(NamedTuple):
    """The server of every rank, and its place there, from 0 on."""

    server: IntArray
    place: IntArray

    @staticmethod
    def of(server: IntArray) -> ServerPlaces:
        """Number the ranks of every server in rank order."""
        server = np.asarray(server, np.int64)
        order = np.argsort(server, kind="stable")
        first = np.searchsorted(server[order], server[order])
        place = np.empty(len(server), np.int64)
        place[order] = np.arange(len(server)) - first
        return ServerPlaces(server, place)

    @property
    def servers(self) -> int:
        """The number of servers."""
        return int(self.server.max(initial=0)) + 1


class _NodePairs(NamedTuple):
    """Pairs of nodes, each once, of as many `nodes`; `who` is their noun."""

    source: IntArray
    target: IntArray
    nodes: int
    who: str

    @property
    def number(self) -> int:
        """The number of pairs."""
        return len(self.source)


def clauses_of(source: IntArray, target: IntArray, places: ServerPlaces) -> tuple[Clause, ...]:
    """Describe the pairs of a step, each given once; () for none."""
    if not len(source):
        return ()
    everyone = _NodePairs(source, target, len(places.server), "rank")
    apart = places.server[source] != places.server[target]
    crosses = apart & (places.place[source] != places.place[target])
    if places.servers in (1, len(places.server)):
        return (_described("all", everyone),)
    if crosses.any() and (clause := _described("all", everyone)).key not in ("some", "others"):
        return (clause,)
    parts = [_inside(source[~apart], target[~apart], places)] if not apart.all() else []
    if apart.any():
        parts.append(_between(source[apart], target[apart], places))
    return tuple(parts)


def _inside(source: IntArray, target: IntArray, places: ServerPlaces) -> Clause:
    """Describe pairs inside servers, by devices where all servers do the same."""
    width = int(places.place.max()) + 1
    pair = places.place[source] * width + places.place[target]
    alike, times = np.unique(pair, return_counts=True)
    if not (times == places.servers).all():
        return _described("all", _NodePairs(source, target, len(places.server), "rank"))
    pairs = _NodePairs(alike // width, alike % width, width, "device")
    return _described("inside", pairs)


def _between(source: IntArray, target: IntArray, places: ServerPlaces) -> Clause:
    """Describe pairs between servers, by servers where all devices do the same."""
    by, devices = places.servers, int(places.place.max()) + 1
    pair = places.server[source] * by + places.server[target]
    alike, times = np.unique(pair, return_counts=True)
    are_likes = (places.place[source] == places.place[target]).all()
    if not (are_likes and (times == devices).all()):
        return _described("between", _NodePairs(source, target, len(places.server), "rank"))
    return _described("alike", _NodePairs(alike // by, alike % by, by, "server"))


def _described(scope: str, pairs: _NodePairs) -> Clause:
    key, values = next(_matches(pairs))
    return Clause(scope, key, pairs.who, values)


def _matches(pairs: _NodePairs) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield the rules that fit, the one that says most first."""
    source, target, count, _ = pairs
    out = np.bincount(source, minlength=count)
    into = np.bincount(target, minlength=count)
    if pairs.number == count * (count - 1) and count > 2:
        yield "everyone", {}
    by = np.unique((target - source) % count)
    apart = np.unique(source ^ target)
    all_once = bool((out == 1).all() and (into == 1).all())
    if all_once and count == 2:
        yield "two_swap", {}
    if all_once and len(apart) == 1 and len(by) > 1 and _is_power(int(apart[0])):
        yield "swap", {"by": int(apart[0])}
    if all_once and len(by) == 1:
        yield _shift(int(by[0]), count)
    mutual = bool(np.isin(target * count + source, source * count + target).all())
    if mutual and bool((out == 2).all()) and _is_one_ring(source, target, count):
        yield "neighbours", {}
    if pairs.number == 1:
        yield "one_pair", {"rank": int(source[0]), "to": int(target[0])}
    if (out == out[0]).all() and out[0]:
        yield ("one_other", {}) if out[0] == 1 else ("others", {"count": int(out[0])})
    if (out > 0).sum() == 1 and pairs.number > 1:
        yield "from_one", {"rank": int(source[0]), "count": pairs.number}
    if (into > 0).sum() == 1 and pairs.number > 1:
        yield "to_one", {"rank": int(target[0]), "count": pairs.number}
    if mutual and out.max() == 1:
        yield "some_swap", {"count": pairs.number // 2}
    yield "some", {"count": pairs.number}


def _shift(by: int, count: int) -> tuple[str, dict[str, int]]:
    """Return the rule for a step of `by` nodes on a ring of `count`."""
    if by == 1:
        return "next", {}
    if by == count - 1:
        return "previous", {}
    return ("on", {"by": by}) if by <= count // 2 else ("back", {"by": count - by})


def _is_one_ring(source: IntArray, target: IntArray, count: int) -> bool:
    """Return True if neighbours, two for each node, lead round all nodes."""
    around = target[np.argsort(source, kind="stable")].reshape(count, 2)
    last, node = 0, int(around[0, 0])
    length = 1
    while node != 0 and length <= count:
        ways = around[node]
        last, node = node, int(ways[1] if ways[0] == last else ways[0])
        length += 1
    return length == count


def sentence(clauses: tuple[Clause, ...], ending: str) -> str:
    """Return a step in one English sentence; "" where nothing travels."""
    parts = [clause.text for clause in clauses]
    if not parts:
        return ""
    text = "; ".join([*parts, ENDINGS[ending]] if ending else parts)
    return f"{text[0].upper()}{text[1:]}."


def ending_of(*, reads: bool, reduces: bool, adds: bool) -> str:
    """Return the key of what receivers do: of moves that all read or all reduce, or whose data are
    added up by tasks behind them.
    """
    if reduces:
        return "reads_adds" if reads else "adds"
    return "then_adds" if adds else "reads" if reads else ""


def _is_power(number: int) -> bool:
    """Return True for a power of two."""
    return number > 0 and not number & (number - 1)
