"""The channels of a plane, as host code acquires them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hccl_interop.cpp.export.fitting import Fitter
from hccl_interop.cpp.export.text import camel_case, comment, listed
from hccl_py.enums import POST, WAIT
from hccl_py.errors import NotSupportedError
from hccl_py.program.program import Program
from hccl_py.values import IntArray, values_of

_OUTER = ("level1", "level2", "level12")
"""Planes between servers: their channels use layer 1, even between ranks of one server."""

_NEAR = 4
"""Distances that a condition names one by one."""


@dataclass(frozen=True)
class JoinedPlane:
    """A plane whose channels a program uses, and their notifies. `joins`, [ranks, ranks], is True
    where a rank has a channel to a peer; `name` is that of the array of peers in C++.
    """

    title: str
    name: str
    joins: npt.NDArray[np.bool_]
    notifies: int
    first_layer: int

    @property
    def function(self) -> str:
        """The name of the function that is true for two joined ranks."""
        return (
            f"{self.name[0].upper()}{self.name[1:]}AreJoined"
            if self.name != "peers"
            else "AreJoined"
        )

    @property
    def constant(self) -> str:
        """The name of the constant with the number of notifies."""
        return "kChannelNotifies" if self.name == "peers" else f"k{camel_case(self.name)}Notifies"

    def predicate(self, fitter: Fitter) -> str:
        """Return the C++ function that is true for two joined ranks."""
        own = "" if self.name == "peers" else camel_case(self.name)
        table, body = _join_test(self.joins, fitter, own)
        title = comment(self.title)
        text = "\n".join(body)
        given = [f"uint32_t {name}" if name in text else "uint32_t" for name in ("rank", "peer")]
        lines = [f"// True if a rank has a channel to another one, on the plane {title}."]
        lines += [*table, f"bool {self.function}({', '.join(given)})", "{", *body, "}", ""]
        return "\n".join(lines)


@dataclass(frozen=True)
class ChannelGroups:
    """The array of peers of every transport end: `number` by end, `titles` and `planes` by number.

    An array holds one channel for each peer. So the second channel of a pair on a plane is in
    another array than the first; channels that one instruction uses are in one array, even if they
    are of several planes.
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
    """Return the planes whose channels are acquired or used."""
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
    """Return a name in C++ for the peers on a plane, unlike those of other planes."""
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


def _join_test(
    joins: npt.NDArray[np.bool_], fitter: Fitter, own: str
) -> tuple[list[str], list[str]]:
    """Return the lines of a table, or none, and of the body of a function that is true for joined
    ranks; `own` distinguishes the table's name.
    """
    ranks = np.arange(fitter.ranks)
    rank, peer = np.meshgrid(ranks, ranks, indexing="ij")
    for condition, holds in _conditions(joins, fitter, rank, peer):
        if (holds == joins).all():
            return [], [f"    return {condition};"]
    body = _by_distance(joins, (peer - rank) % fitter.ranks) or _by_bits(joins, rank ^ peer)
    if body is not None:
        return [], body
    rows = ["{" + ", ".join(str(int(flag)) for flag in row) + "}" for row in joins]
    table = f"k{own}Joined"
    lines = listed(f"constexpr bool {table}[kRanks][kRanks] = {{", rows, "};", 4)
    return lines, [f"    return {table}[rank][peer];"]


def _conditions(
    joins: npt.NDArray[np.bool_], fitter: Fitter, rank: IntArray, peer: IntArray
) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
    """Yield conditions, each with the pairs of ranks for which it holds."""
    other = rank != peer
    yield "peer != rank", other
    if fitter.has_servers:
        d = fitter.devices
        yield (
            "peer != rank && peer / kDevices == rank / kDevices",
            other & (rank // d == peer // d),
        )
        yield "peer != rank && peer % kDevices == rank % kDevices", other & (rank % d == peer % d)
    for root in np.flatnonzero(joins.sum(axis=1) == len(rank) - 1)[:1].tolist():
        condition = f"peer != rank && (peer == {root} || rank == {root})"
        yield condition, other & ((rank == root) | (peer == root))


def _by_distance(joins: npt.NDArray[np.bool_], distance: IntArray) -> list[str] | None:
    """Return a body by the distance around all ranks: a few distances, or all powers of two."""
    ranks = len(joins)
    near = sorted(set(distance[joins].tolist()))
    if (np.isin(distance, near) != joins).any():
        return None
    first = "    const uint32_t distance = (peer + kRanks - rank) % kRanks;"
    if len(near) <= _NEAR:
        tests = [f"distance == {_from_end(n, ranks)}" for n in near]
        return [first, f"    return {' || '.join(tests)};"]
    powers = {1 << k for k in range(ranks.bit_length()) if 1 << k < ranks}
    if set(near) != powers | {ranks - power for power in powers}:
        return None
    return [
        first,
        "    const uint32_t back = kRanks - distance;",
        "    const bool isPower = (distance & (distance - 1)) == 0;",
        "    return distance != 0 && (isPower || (back & (back - 1)) == 0);",
    ]


def _by_bits(joins: npt.NDArray[np.bool_], swap: IntArray) -> list[str] | None:
    """Return a body for ranks that differ in one of the lower bits."""
    found = sorted(set(swap[joins].tolist()))
    is_right = len(found) > 1 and found == [1 << k for k in range(len(found))]
    if not is_right or (np.isin(swap, found) != joins).any():
        return None
    most = f" && bit <= {found[-1]}" if found[-1] * 2 < len(joins) else ""
    return [
        "    const uint32_t bit = rank ^ peer;",
        f"    return bit != 0 && (bit & (bit - 1)) == 0{most};",
    ]


def _from_end(number: int, ranks: int) -> str:
    return str(number) if number * 2 <= ranks else f"kRanks - {ranks - number}"
