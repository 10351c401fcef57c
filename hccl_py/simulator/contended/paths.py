"""Which links the data of every task takes, numbered densely, and what they let through.

    read    over the route from the peer to the rank
    write   over the route from the rank to the peer
    copy    and reduce: over the link of a rank with itself, its memory, where that has a rate

Links that never fill are left out; a task without any other is alone on its way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hccl_py.enums import READS, TaskKind
from hccl_py.program.program import Program
from hccl_py.simulator.links import Links
from hccl_py.topology.networks import Routes
from hccl_py.values import IntArray

__all__ = ["TaskRoutes"]

Int32s = npt.NDArray[np.int32]

_BYTES_PER_US = 1e3
"""What 1 GB/s moves in a microsecond."""

_TABLE = 4
"""Pairs of nodes for each use of a link up to which a table of all pairs beats sorting."""

_LOCAL = (TaskKind.COPY, TaskKind.REDUCE)
_NONE, _OWN, _PEERS, _MEMORY = 0, 1, 2, 3


@dataclass(frozen=True, eq=False)
class TaskRoutes:
    """`of_row` is the route of every task, -1 for none; route k goes over links
    `link[first[k]] .. link[first[k + 1] - 1]`, which let `capacity` bytes through in a µs.
    """

    of_row: Int32s
    first: IntArray
    link: Int32s
    capacity: npt.NDArray[np.float64]

    @staticmethod
    def of(program: Program, links: Links) -> TaskRoutes:
        """Look up the routes of all data tasks."""
        of_row, used = _used_routes(program, links.cost.memory_gbps is not None)
        routes = _routes(program, links, used)
        numbers, link = _numbered(routes.link, links.network.nodes)
        capacity = links.capacities(numbers) * _BYTES_PER_US
        first, link = _without(routes.first, link, np.isinf(capacity))
        is_free = np.append(np.diff(first) == 0, True)  # the last is for rows that have none
        of_row[is_free[of_row]] = -1
        return TaskRoutes(of_row, first, link.astype(np.int32), capacity)


def _used_routes(program: Program, has_memory: bool) -> tuple[Int32s, IntArray]:
    """Number the routes that tasks use: return every task's, and what each stands for.

    The route of what transport end e sends stands as e, the memory of rank r as ends + r.
    """
    tasks, ends = program.tasks, len(program.transports)
    sort = np.full(len(TaskKind), _NONE, np.int8)
    sort[: TaskKind.NOTIFY_POST] = _OWN
    sort[list(READS)] = _PEERS
    sort[list(_LOCAL)] = _MEMORY if has_memory else _NONE
    of_row = np.full(len(tasks), ends + program.ranks, np.int32)
    sorts = sort[tasks.kind]
    at = np.flatnonzero(sorts == _OWN)
    of_row[at] = tasks.end[at]
    at = np.flatnonzero(sorts == _PEERS)
    of_row[at] = program.transports.far[tasks.end[at]]
    at = np.flatnonzero(sorts == _MEMORY)
    of_row[at] = ends + tasks.rank[at]
    is_used = np.zeros(ends + program.ranks + 1, np.bool_)
    is_used[of_row] = True
    used = np.flatnonzero(is_used[:-1])
    number = np.full(len(is_used), -1, np.int32)
    number[used] = np.arange(len(used), dtype=np.int32)
    return number[of_row], used


def _routes(program: Program, links: Links, used: IntArray) -> Routes:
    """Return the routes that tasks use, those of transports before those of memory."""
    ends = len(program.transports)
    node = links.network.rank_nodes[used[used >= ends] - ends]
    routes = links.routes(program.transports, used[used < ends])
    memory = routes.first[-1] + np.arange(1, len(node) + 1)
    return Routes(
        np.concatenate([routes.first, memory]),
        np.concatenate([routes.link, links.network.number(node, node)]),
    )


def _numbered(link: IntArray, nodes: int) -> tuple[IntArray, IntArray]:
    """Return the links that are used, in order, and for each entry its place among them."""
    if nodes * nodes > _TABLE * len(link):
        numbers, place = np.unique(link, return_inverse=True)
        return numbers, place.reshape(-1)
    table = np.zeros(nodes * nodes, np.int64)
    table[link] = 1
    numbers = np.flatnonzero(table)
    table[numbers] = np.arange(len(numbers))
    return numbers, table[link]


def _without(
    first: IntArray, link: IntArray, is_endless: npt.NDArray[np.bool_]
) -> tuple[IntArray, IntArray]:
    """Leave out links that never fill."""
    if not is_endless.any():
        return first, link
    kept = ~is_endless[link]
    before = np.concatenate([[0], np.cumsum(kept)])
    return before[first], link[kept]
