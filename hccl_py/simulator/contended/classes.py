"""Ranks that do the same over links that carry the same, found from the batches.

In an all-to-all of equal sizes on a torus, ranks of one column do the same, only elsewhere. Ranks
that are alike do everything at the same times: max-min fair rates are unique, so flows that look
the same from everywhere have the same rates. One rank of each class then stands for all of it.

Classes are found by refining colours until they split no more:

    rank    at first its batch, and the columns in which times of its tasks differ from those of
            other ranks; then the links of its routes and the notifies that it posts and waits for,
            each with the place in the batch that names it
    link    its capacity, and the colours of the ranks that use it, with the stream and peer
    notify  the colours of those that post it and wait for it, with the place in the batch

So in the end every rank of a class has the same instructions, which take the same time alone; the
links that it uses are of the same classes, as many of each; and the ranks that it waits for are of
the same class at the same instruction. A colour is a hash of 64 bits, sums of which stand for sets.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from hccl_py.clocks.durations import BatchColumns, Durations, identity
from hccl_py.enums import POST, RDMA_WRITES, WAIT
from hccl_py.program.instruction import Batch
from hccl_py.program.kernels import kernel, reading
from hccl_py.program.program import Program
from hccl_py.simulator.contended.paths import SharedLinks
from hccl_py.simulator.contended.state import Int32s, Int64s
from hccl_py.values import IntArray, values_of

Colours: TypeAlias = npt.NDArray[np.uint64]

_WORTH = 2
"""Ranks that one stands for, on average, from which classes are worth it."""

_FACTORS = np.array([0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64)
_SHIFTS = np.array([30, 27, 31], np.uint64)
"""What SplitMix64 mixes with."""


class Classes(NamedTuple):
    """The class of every rank and link, numbered from 0, and the colour of every notify's cell."""

    of_rank: IntArray
    of_link: IntArray
    of_cell: Colours


def classes_of(program: Program, durations: Durations, shared: SharedLinks) -> Classes | None:
    """Return classes of ranks; None where they are hardly fewer than the ranks are, where notifies
    count posts, where there is jitter, where data is spread over several ways, and where streams of
    a rank share an RDMA connection.
    """
    if program.counts_posts or durations.jitter.spread or len(shared.weight):
        return None
    if _streams_meet(program):
        return None
    colour = _at_first(program, durations)
    colour, link, _ = _refined(program, shared, [], colour)  # mostly ranks differ by now, or never
    if _are_many(colour):
        return None
    notifies = [_Notifies.of(batch, number) for number, batch in enumerate(program.batches)]
    colour, link, cell = _refined(program, shared, notifies, colour)
    if _are_many(colour):
        return None
    ranks, links = (np.unique(one, return_inverse=True)[1].reshape(-1) for one in (colour, link))
    return Classes(ranks, links, cell)


def _streams_meet(program: Program) -> bool:
    """Return True if several streams send over one RDMA connection, which carries one write after
    the other: of two that set out at once only the number of the stream says which is first.
    """
    is_rdma = np.append(program.transports.is_rdma, False)  # behind the last end: none, -1
    stream = np.full(len(is_rdma), -1)
    for batch in program.batches if is_rdma.any() else ():
        sends = {
            (i.stream, identity(i.end)): i
            for i in batch.instructions
            if i.kind == POST or i.kind in RDMA_WRITES
        }
        for i in sends.values():
            end = np.atleast_1d(values_of(i.end))
            end = end[is_rdma[end]]
            if ((stream[end] >= 0) & (stream[end] != i.stream)).any():
                return True
            stream[end] = i.stream
    return False


def _are_many(colour: Colours) -> bool:
    return _count(colour) * _WORTH > len(colour)


def _refined(
    program: Program, shared: SharedLinks, notifies: list[_Notifies], colour: Colours
) -> tuple[Colours, Colours, Colours]:
    """Return colours of ranks, links and cells that split no more, or of too many ranks."""
    link = cell = np.zeros(0, np.uint64)
    count = 0
    while count < _count(colour) and not _are_many(colour):
        count = _count(colour)
        link, seen = _through_links(shared, colour)
        cell = _of_cells(program, notifies, colour)
        for some in notifies:
            seen[some.ranks] += _mixed(cell[some.cell], some.name[:, None]).sum(axis=0)
        colour = _mixed(colour, seen)
    return colour, link, cell


def _count(colour: Colours) -> int:
    return len(np.unique(colour))


def _mixed(*columns: npt.NDArray[Any]) -> Colours:
    """Return hashes of rows of columns, which may be broadcast."""
    found = np.zeros(1, np.uint64)
    for column in columns:
        found = found * _FACTORS[0] + column.astype(np.uint64)
        found = (found ^ (found >> _SHIFTS[0])) * _FACTORS[0]
        found = (found ^ (found >> _SHIFTS[1])) * _FACTORS[1]
        found = found ^ (found >> _SHIFTS[2])
    return found


def _at_first(program: Program, durations: Durations) -> Colours:
    """Return the colours of ranks by their batch, and by the times of their tasks alone."""
    colour = np.zeros(program.ranks, np.uint64)
    for number, batch in enumerate(program.batches):
        found = _mixed(np.full(len(batch.ranks), number))
        for column in BatchColumns(durations, batch.ranks).differing(batch.instructions):
            found = _mixed(found, column.view(np.uint64) if column.dtype.kind == "f" else column)
        colour[batch.ranks] = found
    return colour


class _Notifies(NamedTuple):
    """The cells that a batch's ranks post or wait for, [columns, ranks], and names of columns."""

    ranks: IntArray
    cell: IntArray
    name: Colours

    @staticmethod
    def of(batch: Batch, number: int) -> _Notifies:
        columns: dict[object, Any] = {}
        for i in batch.instructions:
            if i.kind in (POST, WAIT):
                columns.setdefault((i.kind, identity(i.cell)), i.cell)
        cell = np.empty((len(columns), len(batch.ranks)), np.int64)
        for row, column in zip(cell, columns.values(), strict=True):
            row[:] = values_of(column)
        return _Notifies(
            batch.ranks, cell, _mixed(np.full(len(cell), number), np.arange(len(cell)))
        )


def _of_cells(program: Program, notifies: list[_Notifies], colour: Colours) -> Colours:
    """Return the colours of notifies by the ranks that name them, of none if none are given."""
    found = np.zeros(program.cells if notifies else 0, np.uint64)
    for some in notifies:
        np.add.at(found, some.cell, _mixed(colour[some.ranks], some.name[:, None]))
    return found


def _through_links(shared: SharedLinks, colour: Colours) -> tuple[Colours, Colours]:
    """Return the colours of links by their users, and of ranks by the links that they use."""
    users, routes = shared.users, len(shared.first) - 1
    hops = reading(shared.first), reading(shared.link)
    of_route = np.zeros(routes, np.uint64)
    np.add.at(of_route, users.route, _mixed(colour[users.rank], users.group))
    of_link = np.zeros(len(shared.capacity), np.uint64)
    with np.errstate(over="ignore"):  # sums of hashes wrap; without numba, Python would warn
        _add_to_links.compiled(*hops, of_route, of_link)
        of_link = _mixed(of_link, shared.capacity.view(np.uint64))
        of_route[:] = 0
        _add_to_routes.compiled(*hops, _mixed(of_link), of_route)
    of_rank = np.zeros(len(colour), np.uint64)
    np.add.at(of_rank, users.rank, _mixed(of_route[users.route], users.group))
    return of_link, of_rank


@kernel
def _add_to_links(first: Int64s, link: Int32s, of_route: Colours, found: Colours) -> None:
    """Add up the numbers of all routes of a link; they are more than Python adds in silence."""
    for route in range(len(first) - 1):
        for hop in range(first[route], first[route + 1]):
            found[link[hop]] += of_route[route]


@kernel
def _add_to_routes(first: Int64s, link: Int32s, of_link: Colours, found: Colours) -> None:
    """Add up the numbers of all links of a route."""
    for route in range(len(first) - 1):
        for hop in range(first[route], first[route + 1]):
            found[route] += of_link[link[hop]]
