"""Which transport end a task means.

The short form has one link between any two ranks, all alike. The general form lists links with ids,
any number between two ranks. Two ranks without a link have none by right; a task may reach out all
the same, for the verifier to judge: over a transport that nobody requested and that exports
nothing.

Both forms name ends by keys, whole columns at a time, and lay the ends out as recording does:
sorted by plane, rank and peer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from hccl_py.documents.checks import a_list, a_text, at, defect, format_value
from hccl_py.documents.models import checked
from hccl_py.enums import LinkKind
from hccl_py.errors import FileError, did_you_mean
from hccl_py.formats.checks import MAX_BUFFERS, MAX_NUMBER, Where, numbered, whole
from hccl_py.formats.memory import BufferTable, a_buffer
from hccl_py.formats.models import FileModel, TransportModel
from hccl_py.topology.planes import PLANES
from hccl_py.values import IntArray


@dataclass(frozen=True, eq=False)
class LinkColumns:
    """The columns of Transports, one row per end. `notifies` has what the links themselves state,
    -1 where the file says nothing.
    """

    planes: tuple[str, ...]
    keys: IntArray
    rank: IntArray
    peer: IntArray
    plane: IntArray
    kind: npt.NDArray[np.int8]
    far: IntArray
    exports: npt.NDArray[np.int8]
    notifies: IntArray

    def rows(self, keys: IntArray) -> IntArray:
        """Return the end of every key."""
        order = np.argsort(self.keys)
        return order[np.searchsorted(self.keys, keys, sorter=order)]


class HasLinks(Protocol):
    """Whatever knows the ends of links by keys."""

    def link_columns(self, keys: IntArray) -> LinkColumns:
        """Return the ends of all links, and those whose keys are given, with their other sides."""


class Ends(HasLinks, Protocol):
    """What the short and the general form have in common.

    `states_notifies` says whether the links themselves say how many notifies they have.
    """

    states_notifies: ClassVar[bool]

    def keys(self, rank: IntArray, references: Sequence[object], where: Where) -> IntArray:
        """Return the key of the end that each rank means by a peer's rank or `link:ID`."""

    def requested(self, rank: IntArray, references: Sequence[object], where: Where) -> IntArray:
        """Return the same for ends that ranks request: the file must have the links."""

    def peers(self, keys: IntArray) -> IntArray:
        """Return the rank at the other side of each end."""


@dataclass(frozen=True, eq=False)
class PairEnds:
    """The short form: all links are alike. A key is rank·ranks + peer."""

    states_notifies: ClassVar[bool] = False

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

    def link_columns(self, keys: IntArray) -> LinkColumns:
        """Return both ends of every pair that occurs."""
        keys = np.unique(np.concatenate([keys, self._twins(keys)]))
        planes = planes_of([self.plane])
        return LinkColumns(
            planes=planes,
            keys=keys,
            rank=keys // self.ranks,
            peer=keys % self.ranks,
            plane=np.full(len(keys), planes.index(self.plane)),
            kind=np.full(len(keys), self.kind, np.int8),
            far=np.searchsorted(keys, self._twins(keys)),
            exports=export_table([self.exports] * len(keys)),
            notifies=np.full(len(keys), -1),
        )

    def _twins(self, keys: IntArray) -> IntArray:
        return keys % self.ranks * self.ranks + keys // self.ranks


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
    no buffer that anybody could reach.
    """
    if len(names) > MAX_BUFFERS:
        hint = "Name each exported buffer once."
        raise defect(path, f"at most {MAX_BUFFERS} buffers", str(len(names)), hint)
    known = [a_buffer(name, at(path, k)) for k, name in enumerate(names)]
    return list(dict.fromkeys(memory.numbers[name] for name in known if name in memory.numbers))


def export_table(rows: Sequence[list[int]]) -> npt.NDArray[np.int8]:
    """Return Transports.exports, two columns or more: the last buffer repeats, -1 for none."""
    width = max([2, *map(len, rows)])
    padded = [row + (row[-1:] or [-1]) * (width - len(row)) for row in rows]
    return np.array(padded, np.int8).reshape(len(rows), width)


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
    """The general form. A key is the row of an end; behind those, that of two ranks without a link
    as in the short form.
    """

    states_notifies: ClassVar[bool] = True

    def __init__(self, links: Sequence[TransportModel], ranks: int, memory: BufferTable) -> None:
        self._ranks = ranks
        self._numbers = _numbers(links)
        self._columns, self._rows = _laid_out(links, _pairs(links, ranks), memory)
        pairs = self._columns.rank * ranks + self._columns.peer
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
        for k in np.flatnonzero(keys >= len(self._columns.keys))[:1].tolist():
            raise self._not_one(rank[k], int(self.peers(keys[k : k + 1])[0]), 0, where(k))
        return keys

    def peers(self, keys: IntArray) -> IntArray:
        """Return the rank at the other side of each end."""
        links = len(self._columns.keys)
        peers = self._absent.peers(keys - links)
        peers[keys < links] = self._columns.peer[keys[keys < links]]
        return peers

    def link_columns(self, keys: IntArray) -> LinkColumns:
        """Return the ends of all links, and those that no link has."""
        links = len(self._columns.keys)
        absent = keys[keys >= links] - links
        if not len(absent):
            return self._columns
        return _joined(self._columns, self._absent.link_columns(absent))

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
        rows = self._rows[numbers]
        mine = self._columns.rank[rows] == rank[:, None]
        for k in np.flatnonzero(~mine.any(axis=1))[:1].tolist():
            a, b = self._columns.rank[rows[k]].tolist()
            hint = f"{references[k]} connects ranks {a} and {b}."
            raise defect(where(k), f"a link of rank {rank[k]}", format_value(references[k]), hint)
        return np.where(mine[:, 0], rows[:, 0], rows[:, 1])

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


def _laid_out(
    links: Sequence[TransportModel], pairs: IntArray, memory: BufferTable
) -> tuple[LinkColumns, IntArray]:
    """Return the ends sorted by plane, rank, peer and link, and the two rows of every link."""
    planes = planes_of([a_text(at("links", k, "plane"), v.plane) for k, v in enumerate(links)])
    plane = np.repeat(np.array([planes.index(link.plane) for link in links], np.int64), 2)
    notifies = [link.notifies for link in links]
    count = whole(
        notifies, lambda k: at("links", k, "notifies"), "a number of notifies", 0, MAX_NUMBER
    )
    kind = np.array([LinkKind[link.kind.upper()] for link in links], np.int8)
    rank, peer = pairs.ravel(), pairs[:, ::-1].ravel()
    order = np.lexsort((peer, rank, plane))
    row = np.empty(len(order), np.int64)
    row[order] = np.arange(len(order))
    exports = [e for k, link in enumerate(links) for e in _exports(link, pairs[k], memory, k)]
    link_columns = LinkColumns(
        planes=planes,
        keys=np.arange(len(order)),
        rank=rank[order],
        peer=peer[order],
        plane=plane[order],
        kind=np.repeat(kind, 2)[order],
        far=row.reshape(-1, 2)[:, ::-1].ravel()[order],
        exports=export_table(exports)[order],
        notifies=np.repeat(count, 2)[order],
    )
    return link_columns, row.reshape(-1, 2)


def _joined(links: LinkColumns, absent: LinkColumns) -> LinkColumns:
    """Return all ends, sorted by plane, rank and peer; nobody requests those that no link has."""
    columns = {
        name: np.concatenate([getattr(links, name), getattr(absent, name)])
        for name in ("rank", "peer", "plane", "kind")
    }
    order = np.lexsort((columns["peer"], columns["rank"], columns["plane"]))
    row = np.empty(len(order), np.int64)
    row[order] = np.arange(len(order))
    count = len(links.keys)
    exports = np.full((len(order), links.exports.shape[1]), -1, np.int8)
    exports[:count] = links.exports
    return LinkColumns(
        planes=links.planes,
        keys=np.concatenate([links.keys, count + absent.keys])[order],
        far=row[np.concatenate([links.far, count + absent.far])][order],
        exports=exports[order],
        notifies=np.concatenate([links.notifies, np.zeros_like(absent.keys)])[order],
        **{name: column[order] for name, column in columns.items()},
    )


def _exports(
    link: TransportModel, pair: IntArray, memory: BufferTable, number: int
) -> list[list[int]]:
    """Return what each of the two ranks exports; nothing where it is left out."""
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
