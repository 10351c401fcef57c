"""Which ranks are joined on a plane, as host code asks for channels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hccl_interop.cpp.export.fitting import Fitter
from hccl_interop.cpp.export.text import camel_case, comment, listed
from hccl_py.enums import POST, WAIT
from hccl_py.errors import NotSupportedError
from hccl_py.program.program import Program
from hccl_py.values import IntArray, values_of

_OUTER = ("level1", "level2", "level12")
"""Planes between servers: their channels take the layer of the network between servers, inside a
server, too.
"""

_NEAR = 4
"""Distances that a condition names one by one."""


@dataclass(frozen=True)
class JoinedPlane:
    """A plane whose channels a program uses: which rank has one to which, and their notifies.

    `joins` has the shape [ranks, ranks]; `name` is that of the array with the peers.
    """

    title: str
    name: str
    joins: npt.NDArray[np.bool_]
    notifies: int
    first_layer: int

    @property
    def function(self) -> str:
        """The name of the function that says which ranks are joined."""
        return (
            f"{self.name[0].upper()}{self.name[1:]}AreJoined"
            if self.name != "peers"
            else "AreJoined"
        )

    @property
    def constant(self) -> str:
        """The name of the number of notifies."""
        return "kChannelNotifies" if self.name == "peers" else f"k{camel_case(self.name)}Notifies"

    def predicate(self, fitter: Fitter) -> str:
        """Return the C++ function that says which ranks are joined."""
        own = "" if self.name == "peers" else camel_case(self.name)
        text = _Joins(self.joins, fitter, own)
        title = comment(self.title)
        lines = [f"// Whether a rank has a channel to another one, on the plane {title}."]
        head = f"bool {self.function}("
        given = [
            f"uint32_t {name}" if name in text.body else "uint32_t" for name in ("rank", "peer")
        ]
        lines += [*text.table, f"{head}{', '.join(given)})", "{", *text.lines, "}", ""]
        return "\n".join(lines)


@dataclass(frozen=True)
class ChannelGroups:
    """Which array of peers every end of a transport is in: `number` by end, `titles` by number.

    An array holds one channel for each peer. So the second channel of a pair on a plane is in
    another array than the first; and what one instruction uses, whatever the planes, is in one.
    """

    number: IntArray
    titles: tuple[str, ...]
    planes: tuple[tuple[str, ...], ...]

    @staticmethod
    def of(program: Program) -> ChannelGroups:
        """Return the groups of a program; NotSupportedError where an instruction uses several
        channels of a pair.
        """
        t = program.transports
        turn = t.turns
        turns = int(turn.max(initial=0)) + 1
        kind = t.plane * turns + turn
        home = np.arange(len(t.planes) * turns)
        for batch in program.batches:
            for one in batch.instructions:
                ends = np.atleast_1d(np.asarray(values_of(one.end)))
                used = np.unique(home[kind[ends[ends >= 0]]])
                home[np.isin(home, used)] = used.min(initial=len(home))
        kinds = np.unique(home[kind])
        members = [np.flatnonzero(home == k).tolist() for k in kinds.tolist()]
        present = set(kind.tolist())
        members = [[k for k in group if k in present] for group in members]
        number = np.searchsorted(kinds, home[kind])
        _check_pairs(program, number)
        planes = tuple(
            tuple(dict.fromkeys(t.planes[k // turns] for k in group)) for group in members
        )
        titles = tuple(
            " and ".join(t.planes[k // turns] + _ordinal(k % turns) for k in group)
            for group in members
        )
        return ChannelGroups(number, titles, planes)


def _ordinal(turn: int) -> str:
    return f" channel {turn + 1}" if turn else ""


def _check_pairs(program: Program, number: IntArray) -> None:
    """Refuse groups in which a rank has several channels to a peer."""
    t = program.transports
    keys = (number * program.ranks + t.rank) * program.ranks + t.peer
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    for end in first[counts > 1][:1].tolist():
        raise NotSupportedError(
            f"One step uses several channels of rank {t.rank[end]} to rank {t.peer[end]}.",
            "Ask for them in the same order at every rank, so that a step uses one of them.",
        )


def planes_of(program: Program) -> list[JoinedPlane]:
    """Return the planes whose channels are asked for or used."""
    t = program.transports
    used = t.notifies > 0
    tasks = program.tasks
    used[np.unique(tasks.end[tasks.end >= 0])] = True
    used |= used[t.far]
    indices = _indices(program)
    groups = ChannelGroups.of(program)
    found: list[JoinedPlane] = []
    numbers = [k for k in range(len(groups.titles)) if (used & (groups.number == k)).any()]
    for number in numbers:
        mine = used & (groups.number == number)
        joins = np.zeros((program.ranks, program.ranks), bool)
        joins[t.rank[mine], t.peer[mine]] = True
        title = groups.titles[number]
        name = "peers" if len(numbers) == 1 else _identifier(title, number, found)
        notifies = max(int(t.notifies[mine].max()), int(indices[mine].max(initial=-1)) + 1)
        layer = int(set(groups.planes[number]) <= set(_OUTER))
        found.append(JoinedPlane(title, name, joins, notifies, layer))
    return found


def _identifier(title: str, number: int, others: Sequence[JoinedPlane]) -> str:
    """Return a name in C++ for the peers on a plane, whatever it and the other ones are called."""
    word = camel_case(title) if re.search("[A-Za-z]", title) else f"Plane{number}"
    taken = {plane.name for plane in others}
    names = (f"peers{word}{more}" for more in ("", *range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)


def _indices(program: Program) -> IntArray:
    """Return the largest notify that tasks use of every end; -1 for none."""
    t, tasks = program.transports, program.tasks
    most = np.full(len(t), -1)
    mine = (tasks.end >= 0) & np.isin(tasks.kind, (POST, WAIT))
    cells = tasks.cell[mine]
    np.maximum.at(most, cells // t.stride, cells % t.stride)
    return most


class _Joins:
    """The condition under which two ranks are joined; `own` makes the name of its table one of its
    own.
    """

    def __init__(self, joins: npt.NDArray[np.bool_], fitter: Fitter, own: str) -> None:
        self._joins, self._fitter, self._own = joins, fitter, own
        self.table: list[str] = []
        self.lines = self._found()

    @cached_property
    def body(self) -> str:
        """The lines of the function."""
        return "\n".join(self.lines)

    def _found(self) -> list[str]:
        ranks = np.arange(self._fitter.ranks)
        rank, peer = np.meshgrid(ranks, ranks, indexing="ij")
        for condition, holds in self._known(rank, peer):
            if (holds == self._joins).all():
                return [f"    return {condition};"]
        return self._distances() or self._bits() or self._table()

    def _known(self, rank: IntArray, peer: IntArray) -> list[tuple[str, npt.NDArray[np.bool_]]]:
        other = rank != peer
        found = [("peer != rank", other)]
        if self._fitter.has_servers:
            d = self._fitter.devices
            same = rank // d == peer // d
            equal = rank % d == peer % d
            found += [
                ("peer != rank && peer / kDevices == rank / kDevices", other & same),
                ("peer != rank && peer % kDevices == rank % kDevices", other & equal),
                ("peer / kDevices != rank / kDevices", ~same),
            ]
        for root in np.flatnonzero(self._joins.sum(axis=1) == len(rank) - 1)[:1].tolist():
            star = other & ((rank == root) | (peer == root))
            found.append((f"peer != rank && (peer == {root} || rank == {root})", star))
        return found

    def _distances(self) -> list[str] | None:
        ranks = self._fitter.ranks
        distance = (np.arange(ranks) - np.arange(ranks)[:, None]) % ranks
        near = sorted(set(distance[self._joins].tolist()))
        if (np.isin(distance, near) != self._joins).any():
            return None
        first = "    const uint32_t distance = (peer + kRanks - rank) % kRanks;"
        if len(near) <= _NEAR:
            tests = [f"distance == {_from_end(n, ranks)}" for n in near]
            return [first, f"    return {' || '.join(tests)};"]
        powers = {1 << k for k in range(ranks.bit_length()) if 1 << k < ranks}
        if set(near) == powers | {ranks - power for power in powers}:
            return [
                first,
                "    const uint32_t back = kRanks - distance;",
                "    const bool isPower = (distance & (distance - 1)) == 0;",
                "    return distance != 0 && (isPower || (back & (back - 1)) == 0);",
            ]
        flags = [str(int(d in near)) for d in range(ranks)]
        table = f"k{self._own}AtDistance"
        self.table = listed(f"constexpr bool {table}[kRanks] = {{", flags, "};", 4)
        return [first, f"    return {table}[distance];"]

    def _bits(self) -> list[str] | None:
        ranks = self._fitter.ranks
        swap = np.arange(ranks) ^ np.arange(ranks)[:, None]
        found = sorted(set(swap[self._joins].tolist()))
        if (np.isin(swap, found) != self._joins).any():
            return None
        if found == [1 << k for k in range(len(found))] and len(found) > 1:
            most = f" && bit <= {found[-1]}" if found[-1] * 2 < ranks else ""
            return [
                "    const uint32_t bit = rank ^ peer;",
                f"    return bit != 0 && (bit & (bit - 1)) == 0{most};",
            ]
        return None

    def _table(self) -> list[str]:
        rows = ["{" + ", ".join(str(int(flag)) for flag in row) + "}" for row in self._joins]
        table = f"k{self._own}Joined"
        self.table = listed(f"constexpr bool {table}[kRanks][kRanks] = {{", rows, "};", 4)
        return [f"    return {table}[rank][peer];"]


def _from_end(number: int, ranks: int) -> str:
    return str(number) if number * 2 <= ranks else f"kRanks - {ranks - number}"
