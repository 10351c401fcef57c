"""The transport end that a task of a JSON file names.

The short form has one link between any two ranks, all alike. The general form lists links with ids,
any number between two ranks. A task may reach out to a rank to which no link leads, for the
verifier to judge: over a link without notifies that exports nothing.

Both forms name ends by keys, whole columns at a time. Keys become sides of links when all of them
are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from hccl_py.documents.checks import a_list, a_text, at, defect, format_value
from hccl_py.documents.models import checked
from hccl_py.enums import LinkKind
from hccl_py.errors import FileError, did_you_mean
from hccl_py.formats.checks import Where, numbered, whole
from hccl_py.formats.memory import BufferTable, a_buffer
from hccl_py.formats.models import FileModel, TransportModel
from hccl_py.program.builder.columns import LinkColumns
from hccl_py.program.limits import MAX_BUFFERS, MAX_NUMBER
from hccl_py.topology.planes import PLANES
from hccl_py.values import IntArray


class Ends(Protocol):
    """Ends of links by keys, in the short or the general form."""

    def keys(self, rank: IntArray, references: Sequence[object], where: Where) -> IntArray:
        """Return the key of the end that each rank means by a peer's rank or `link:ID`."""

    def requested(self, rank: IntArray, references: Sequence[object], where: Where) -> IntArray:
        """Return the same for ends that ranks request: the file must have the links."""

    def peers(self, keys: IntArray) -> IntArray:
        """Return the rank at the other side of each end."""

    def links(self, keys: IntArray) -> tuple[LinkColumns, IntArray]:
        """Return all links of the file and those over which these ends reach; and the sides of
        links that the keys are.
        """


@dataclass(frozen=True, eq=False)
class PairEnds:
    """The short form: all links are alike. A key is rank·ranks + peer."""

    ranks: int
    kind: LinkKind
    exports: list[int]
    plane: str

    def keys(self, rank: IntArray, references: Sequence[object], where: Where) -> IntArray:
        """Return the key of every pair."""
        peers = whole(references, where, "the rank of a peer", 0, self.ranks - 1)
        check_other(rank, peers, where)
        return rank * self.ranks + peers

    def requested(self, rank: IntArray, references: Sequence[object], where: Where) -> IntArray:
        """Return the key of every pair: there is a link between any two ranks."""
        return self.keys(rank, references, where)

    def peers(self, keys: IntArray) -> IntArray:
        """Return the rank at the other side of each end."""
        return keys % self.ranks

    def links(self, keys: IntArray) -> tuple[LinkColumns, IntArray]:
        """Return a link for every two ranks that occur, and the sides."""
        rank, peer = np.divmod(keys, self.ranks)
        pair = np.minimum(rank, peer) * self.ranks + np.maximum(rank, peer)
        pairs, number = np.unique(pair, return_inverse=True)
        planes = planes_of([self.plane])
        links = LinkColumns(
            planes=planes,
            ranks=np.stack(np.divmod(pairs, self.ranks), axis=1),
            plane=np.full(len(pairs), planes.index(self.plane)),
            kind=np.full(len(pairs), self.kind, np.int8),
            exports=[self.exports] * (2 * len(pairs)),
            notifies=np.full((len(pairs), 2), -1),
        )
        return links, 2 * number + (rank > peer)


def check_other(rank: IntArray, peers: IntArray, where: Where) -> None:
    """Refuse a rank that names itself as its peer."""
    for k in np.flatnonzero(rank == peers)[:1].tolist():
        hint = "Inside a rank, use copy, local_post and local_wait."
        raise defect(where(k), "another rank", f"rank {rank[k]} itself", hint)


def planes_of(names: Sequence[str]) -> tuple[str, ...]:
    """Return the planes that every program has, then others in the order of their appearance."""
    return tuple(dict.fromkeys([*PLANES, *names]))


def exported_by(names: Sequence[object], memory: BufferTable, path: str) -> list[int]:
    """Return the numbers of the buffers that an end exports, each once; a name that no rank has is
    no buffer that a peer could reach.
    """
    if len(names) > MAX_BUFFERS:
        hint = "Name each exported buffer once."
        raise defect(path, f"at most {MAX_BUFFERS} buffers", str(len(names)), hint)
    known = [a_buffer(name, at(path, k)) for k, name in enumerate(names)]
    return list(dict.fromkeys(memory.numbers[name] for name in known if name in memory.numbers))


def ends_from(file: FileModel, memory: BufferTable) -> Ends:
    """Return the ends of the short or the general form, whichever the file has."""
    if file.links is None:
        exports = exported_by(file.exported or [], memory, "exported")
        kind = LinkKind.RDMA if file.link == "rdma" else LinkKind.SDMA
        plane = "flat" if file.plane is None else a_text("plane", file.plane)
        return PairEnds(file.ranks, kind, exports, plane)
    for name in ("link", "exported", "plane"):
        if getattr(file, name) is not None:
            hint = "Links state kind, exports and plane themselves; keep one of the two forms."
            raise defect(name, "nothing beside links", format_value(getattr(file, name)), hint)
    links = [checked(TransportModel, v, at("links", k)) for k, v in enumerate(file.links)]
    return LinkEnds(links, file.ranks, memory)


class LinkEnds:
    """The general form. A key is the side of a link; behind those, that of two ranks without a link
    as in the short form.
    """

    def __init__(self, links: Sequence[TransportModel], ranks: int, memory: BufferTable) -> None:
        self._ranks = ranks
        self._numbers = _numbers(links)
        self._links = _link_columns(links, _pairs(links, ranks), memory)
        self._rank = self._links.ranks.ravel()
        pairs = self._rank * ranks + self._links.ranks[:, ::-1].ravel()
        self._by_pair = np.argsort(pairs, kind="stable")
        self._pairs = pairs[self._by_pair]
        self._absent = PairEnds(ranks, LinkKind.SDMA, [], "flat")

    def keys(self, rank: IntArray, references: Sequence[object], where: Where) -> IntArray:
        """Return the end of every reference; a peer's rank will do where one link leads there, or
        none.
        """
        is_name = np.array([type(reference) is str for reference in references], bool)
        keys = np.empty(len(is_name), np.int64)
        for find, mine in ((self._by_rank, ~is_name), (self._by_name, is_name)):
            rows = np.flatnonzero(mine).tolist()
            picked = [references[row] for row in rows]
            keys[mine] = find(rank[mine], picked, _Picked(where, rows))
        return keys

    def requested(self, rank: IntArray, references: Sequence[object], where: Where) -> IntArray:
        """Return the same; a request says nothing of a link that is not listed."""
        keys = self.keys(rank, references, where)
        for k in np.flatnonzero(keys >= len(self._rank))[:1].tolist():
            raise self._not_one(rank[k], int(self.peers(keys[k : k + 1])[0]), 0, where(k))
        return keys

    def peers(self, keys: IntArray) -> IntArray:
        """Return the rank at the other side of each end."""
        sides = len(self._rank)
        peers = self._absent.peers(keys - sides)
        peers[keys < sides] = self._rank[keys[keys < sides] ^ 1]
        return peers

    def links(self, keys: IntArray) -> tuple[LinkColumns, IntArray]:
        """Return the links of the file, then those that it lacks: without notifies and exports."""
        listed, sides = self._links, len(self._rank)
        is_absent = keys >= sides
        if not is_absent.any():
            return listed, keys
        absent, absent_sides = self._absent.links(keys[is_absent] - sides)
        found = keys.copy()
        found[is_absent] = sides + absent_sides
        links = LinkColumns(
            planes=listed.planes,
            ranks=np.concatenate([listed.ranks, absent.ranks]),
            plane=np.concatenate([listed.plane, absent.plane]),
            kind=np.concatenate([listed.kind, absent.kind]),
            exports=[*listed.exports, *absent.exports],
            notifies=np.concatenate([listed.notifies, np.zeros_like(absent.notifies)]),
        )
        return links, found

    def _by_rank(self, rank: IntArray, references: Sequence[object], where: Where) -> IntArray:
        peers = whole(references, where, "a peer's rank (or link:ID)", 0, self._ranks - 1)
        check_other(rank, peers, where)
        pairs = rank * self._ranks + peers
        first = np.searchsorted(self._pairs, pairs)
        count = np.searchsorted(self._pairs, pairs, "right") - first
        for k in np.flatnonzero(count > 1)[:1].tolist():
            raise self._not_one(rank[k], peers[k], count[k], where(k))
        keys = len(self._pairs) + pairs
        keys[count == 1] = self._by_pair[first[count == 1]]
        return keys

    def _by_name(self, rank: IntArray, references: Sequence[Any], where: Where) -> IntArray:
        numbers = np.array([self._numbers.get(name, -1) for name in references], np.int64)
        for k in np.flatnonzero(numbers < 0)[:1].tolist():
            hint = did_you_mean(references[k][:40], list(self._numbers)[:1000])
            raise defect(where(k), "a peer's rank or link:ID", format_value(references[k]), hint)
        mine = self._links.ranks[numbers] == rank[:, None]
        for k in np.flatnonzero(~mine.any(axis=1))[:1].tolist():
            a, b = self._links.ranks[numbers[k]].tolist()
            hint = f"{references[k]} connects ranks {a} and {b}."
            raise defect(where(k), f"a link of rank {rank[k]}", format_value(references[k]), hint)
        sides: IntArray = 2 * numbers + ~mine[:, 0]
        return sides

    @staticmethod
    def _not_one(rank: int, peer: int, count: int, place: str) -> FileError:
        expected = f"one link between ranks {rank} and {peer}"
        hint = "Say which one: link:ID." if count else "Add the link to links."
        return defect(place, expected, f"{count} of them", hint)


class _Picked:
    """Paths of some rows of a column."""

    def __init__(self, where: Where, rows: list[int]) -> None:
        self._where = where
        self._rows = rows

    def __call__(self, position: int) -> str:
        return self._where(self._rows[position])


def _numbers(links: Sequence[TransportModel]) -> dict[str, int]:
    whole([link.id for link in links], lambda k: at("links", k, "id"), "the number of a link")
    numbers: dict[str, int] = {}
    for number, link in enumerate(links):
        if numbers.setdefault(f"link:{link.id}", number) != number:
            hint = "Number the links from 0."
            raise defect(at("links", number, "id"), "an id of its own", f"{link.id} again", hint)
    return numbers


def _pairs(links: Sequence[TransportModel], ranks: int) -> IntArray:
    """Return the two ranks of every link, [links, 2]."""
    for number, link in enumerate(links):
        if len(link.ranks) != 2:
            raise defect(
                at("links", number, "ranks"), "two ranks", format_value(link.ranks), "[0, 1]"
            )
    both = [rank for link in links for rank in link.ranks]
    column = whole(both, lambda k: at("links", k // 2, "ranks", k % 2), "a rank", 0, ranks - 1)
    pairs = column.reshape(-1, 2)
    check_other(pairs[:, 0], pairs[:, 1], lambda k: at("links", k, "ranks"))
    return pairs


def _link_columns(
    links: Sequence[TransportModel], pairs: IntArray, memory: BufferTable
) -> LinkColumns:
    """Return the links of a file, whose two ranks are `pairs`."""
    planes = planes_of([a_text(at("links", k, "plane"), v.plane) for k, v in enumerate(links)])
    notifies = [link.notifies for link in links]
    count = whole(
        notifies, lambda k: at("links", k, "notifies"), "a number of notifies", 0, MAX_NUMBER
    )
    return LinkColumns(
        planes=planes,
        ranks=pairs,
        plane=np.array([planes.index(link.plane) for link in links], np.int64),
        kind=np.array([LinkKind[link.kind.upper()] for link in links], np.int8),
        exports=[e for k, link in enumerate(links) for e in _exports(link, pairs[k], memory, k)],
        notifies=np.stack([count, count], axis=1),
    )


def _exports(
    link: TransportModel, pair: IntArray, memory: BufferTable, number: int
) -> list[list[int]]:
    """Return the buffers that each of the two ranks exports; none where it is left out."""
    path = at("links", number, "exports")
    found: dict[int, list[int]] = {}
    for rank, names in numbered(path, link.exports, len(memory.sizes), "rank"):
        place = at(path, str(rank))
        if rank not in pair:
            raise _no_side(place, link)
        found[rank] = exported_by(a_list(place, names), memory, place)
    return [found.get(rank, []) for rank in pair.tolist()]


def _no_side(place: str, link: TransportModel) -> FileError:
    a, b = link.ranks
    return defect(place, f"rank {a} or {b}", "another one", "A link exports memory of its ranks.")
