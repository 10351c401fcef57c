"""Links that data may have to share, numbered densely, and their capacities.

    read    over the route from the peer to the rank
    write   over the route from the rank to the peer
    copy    and reduce: over the link of a rank with itself, its memory, where that has a rate

Where memory is for all users, reads and writes go over that of both ranks, too.

It is found from the batches, without expanding them. A stream of a rank and an RDMA connection have
one flow at most at a time. So links that have room for all that may ever be on them at once are
left out, and a program none of whose links is left takes as long as uncontended.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_py.clocks.durations import Durations
from hccl_py.clocks.links import Links, numbered
from hccl_py.enums import RDMA_WRITES, READS, TaskKind
from hccl_py.program.instruction import Batch, Instruction
from hccl_py.program.kernels import kernel, reading
from hccl_py.program.program import Program
from hccl_py.program.transports import Transports
from hccl_py.simulator.contended.dirty import ENOUGH
from hccl_py.topology.networks import Routes
from hccl_py.values import Floats, IntArray, PerRank, values_of

Int32s = npt.NDArray[np.int32]

_BYTES_PER_US = 1e3
"""What 1 GB/s moves in a microsecond."""

_LOCAL = (TaskKind.COPY, TaskKind.REDUCE)
_NONE, _OWN, _PEERS, _MEMORY = 0, 1, 2, 3


@dataclass(frozen=True, eq=False)
class SharedLinks:
    """Route k goes over links `link[first[k]] .. link[first[k + 1] - 1]`, which let `capacity`
    bytes through in a µs and have at most `flows` at once. On each of them, data takes `weight`
    times its rate; the column is empty where all of them are 1.

    Ways of data are numbered: what transport end e sends goes way e, what is in the memory of rank
    r goes way ends + r. `of_way` has their routes, -1 where nothing is shared, which is also the
    route of the last way, the one of no data. An entity, a queue or behind those a connection, uses
    routes of at most `hops` links. `users` has the users of each route.
    """

    of_way: Int32s
    first: IntArray
    link: Int32s
    weight: Floats
    capacity: Floats
    flows: IntArray
    hops: IntArray
    users: Users

    @staticmethod
    def of(program: Program, durations: Durations) -> SharedLinks:
        """Find them for what a program's batches move."""
        links = durations.links
        found = _users(program, durations)
        ways = len(program.transports) + program.ranks + 1
        used = np.flatnonzero(np.bincount(found.way, minlength=ways))
        number = np.full(ways, -1, np.int32)
        number[used] = np.arange(len(used), dtype=np.int32)
        route = number[found.way]
        users = Users(found.entity, found.rank, route, found.group)
        routes = _routes(program, links, used)
        numbers, link = numbered(routes.link, links.network.nodes)
        capacity = links.capacities(numbers) * _BYTES_PER_US
        rates = np.bincount(route, found.rate, len(used)).astype(np.float64, copy=False)
        flows = np.bincount(route, minlength=len(used))
        most, at_once = np.zeros(len(numbers)), np.zeros(len(numbers), np.int64)
        add_up = _add_up.sized(len(link))
        weight = np.ones(len(link)) if routes.share is None else routes.share
        routed = reading(routes.first), reading(link), reading(weight)
        add_up(*routed, reading(rates), reading(flows), most, at_once)
        kept = most > capacity * (1 + ENOUGH)
        first, kept_links, weight = _of_kept(routes.first, link, weight, kept)
        if (weight == 1).all():
            weight = np.zeros(0)
        hops = np.diff(first)
        number[used[hops == 0]] = -1
        longest = np.zeros(program.ranks * program.streams + len(program.transports), np.int64)
        np.maximum.at(longest, users.entity, hops[route])
        columns = first, kept_links, weight, capacity[kept], at_once[kept], longest, users
        return SharedLinks(number, *columns)

    def of_rows(self, program: Program) -> Int32s:
        """Return the route of every task's data, -1 for what shares no link."""
        tasks, ends = program.tasks, len(program.transports)
        way = np.full(len(tasks), ends + program.ranks, np.int32)
        sorts = _sorts(has_memory=True)[tasks.kind]
        at = np.flatnonzero(sorts == _OWN)
        way[at] = tasks.end[at]
        at = np.flatnonzero(sorts == _PEERS)
        way[at] = program.transports.far[tasks.end[at]]
        at = np.flatnonzero(sorts == _MEMORY)
        way[at] = ends + tasks.rank[at]
        return self.of_way[way]


class Users(NamedTuple):
    """Entities, whose ranks they are, the routes that they use, and numbers that all ranks of a
    batch have for the same stream and column of ends.
    """

    entity: IntArray
    rank: IntArray
    route: Int32s
    group: IntArray


class _Uses(NamedTuple):
    """Entities and the ways that they use, with the largest rate in bytes a µs; rank and group as
    in Users.
    """

    entity: IntArray
    way: IntArray
    rate: Floats
    rank: IntArray
    group: IntArray


def _sorts(has_memory: bool) -> npt.NDArray[np.int8]:
    """Return over what the data of each kind of task goes."""
    sort = np.full(len(TaskKind), _NONE, np.int8)
    sort[: TaskKind.NOTIFY_POST] = _OWN
    sort[list(READS)] = _PEERS
    sort[list(_LOCAL)] = _MEMORY if has_memory else _NONE
    return sort


def _users(program: Program, durations: Durations) -> _Uses:
    """Look through the batches; what takes no time uses nothing."""
    sort = _sorts(durations.links.cost.memory_gbps is not None)
    used = [(batch.ranks, uses) for batch in program.batches for uses in _distinct(batch, sort)]
    parts = [
        _users_of(program, durations, ranks, sort, group, *uses)
        for group, (ranks, uses) in enumerate(used)
    ]
    if not parts:
        none = np.zeros(0, np.int64)
        return _Uses(none, none, np.zeros(0), none, none)
    return _Uses(*map(np.concatenate, zip(*parts, strict=True)))


def _distinct(
    batch: Batch, sort: npt.NDArray[np.int8]
) -> Iterable[tuple[Instruction, set[TaskKind]]]:
    """Return an instruction for each stream and column of transport ends of a batch, and all kinds
    of tasks that move data there, those apart that keep a connection busy in the stream's place.
    """
    found: dict[tuple[object, ...], tuple[Instruction, set[TaskKind]]] = {}
    for i in batch.instructions:
        if sort[i.kind] != _NONE:
            end = i.end.key() if isinstance(i.end, PerRank) else i.end
            key = i.stream, end, sort[i.kind], i.kind in RDMA_WRITES
            found.setdefault(key, (i, set()))[1].add(i.kind)
    return found.values()


def _users_of(
    program: Program,
    durations: Durations,
    ranks: IntArray,
    sorts: npt.NDArray[np.int8],
    group: int,
    i: Instruction,
    kinds: set[TaskKind],
) -> _Uses:
    transports, sort = program.transports, sorts[i.kind]
    end = np.broadcast_to(values_of(i.end), ranks.shape)
    of = durations.classes(ranks, end)
    entity, way = ranks * program.streams + i.stream, len(transports) + ranks
    if i.kind in RDMA_WRITES:
        entity = program.ranks * program.streams + end
    if sort != _MEMORY:
        way = (transports.far[end] if sort == _PEERS else end).astype(np.int64)
    us = np.broadcast_to(_least([durations.per_byte(kind, of) for kind in kinds]), ranks.shape)
    moves = us < np.inf
    same = np.full(len(ranks), group)
    return _Uses(entity[moves], way[moves], 1 / us[moves], ranks[moves], same[moves])


def _least(us: list[Floats]) -> Floats:
    """Return the smallest number that is not 0, inf where there is none."""
    least: Floats = np.min([np.where(one > 0, one, np.inf) for one in us], axis=0)
    return least


def _routes(program: Program, links: Links, used: IntArray) -> Routes:
    """Return the routes of ways, those of transports before those of memory."""
    ends = len(program.transports)
    node = links.network.rank_nodes[used[used >= ends] - ends]
    routes = _between(program.transports, links, used[used < ends])
    memory = routes.first[-1] + np.arange(1, len(node) + 1)
    return Routes(
        np.concatenate([routes.first, memory]),
        np.concatenate([routes.link, links.network.number(node, node)]),
        None if routes.share is None else np.append(routes.share, np.ones(len(node))),
    )


def _between(transports: Transports, links: Links, ends: IntArray) -> Routes:
    """Return the routes of what transport ends send, with the memory of both ranks if that is for
    all users.
    """
    routes, network, cost = links.routes(transports, ends), links.network, links.cost
    if cost.memory_gbps is None or cost.memory_users == "local":
        return routes
    both = network.rank_nodes[np.stack([transports.rank[ends], transports.peer[ends]], axis=1)]
    behind = np.repeat(routes.first[1:], 2)
    return Routes(
        routes.first + 2 * np.arange(len(routes.first)),
        np.insert(routes.link, behind, network.number(both, both).ravel()),
        None if routes.share is None else np.insert(routes.share, behind, 1.0),
    )


@kernel
def _add_up(
    first: IntArray,
    link: IntArray,
    weight: Floats,
    rates: Floats,
    flows: IntArray,
    most: Floats,
    at_once: IntArray,
) -> None:
    """Add up what routes ask of their links, and how many flows they have at once."""
    for route in range(len(first) - 1):
        for hop in range(first[route], first[route + 1]):
            most[link[hop]] += rates[route] * weight[hop]
            at_once[link[hop]] += flows[route]


def _of_kept(
    first: IntArray, link: IntArray, weight: Floats, kept: npt.NDArray[np.bool_]
) -> tuple[IntArray, Int32s, Floats]:
    """Leave out the other links of routes, and number those that are kept anew."""
    if kept.all():
        return first, link.astype(np.int32), weight
    number = np.cumsum(kept, dtype=np.int32) - 1
    is_there = kept[link]
    before = np.concatenate([[0], np.cumsum(is_there)])
    return before[first], number[link[is_there]], weight[is_there]
