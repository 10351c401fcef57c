"""Pairs of links that are on a route together."""

from __future__ import annotations

import numpy as np

from hccl_py.program.kernels import kernel, reading
from hccl_py.simulator.contended.members import SCATTER
from hccl_py.simulator.contended.state import Coupling, Int32s, Int64s, Uint32s
from hccl_py.values import IntArray


def coupling(first: IntArray, link: Int32s, links: int, slots: int, *, weighs: bool) -> Coupling:
    """Return the pairs of links that routes have, none of which any member makes yet; state
    whether flows weigh something other than 1.
    """
    begins = np.zeros(links + 1, np.int64)
    np.cumsum(np.bincount(link, minlength=links), out=begins[1:])
    route = np.zeros(len(link), np.int32)
    _list_routes.sized(len(link))(reading(first), reading(link), begins[:-1].copy(), route)
    columns = reading(first), reading(link), reading(begins), reading(route)
    hops = np.diff(first)
    others = np.bincount(link, np.repeat(hops - 1, hops), links)
    most = int(np.minimum(others, links - 1).sum())
    pair_first, room = np.zeros(links + 1, np.int64), np.empty(most, np.uint32)
    _find_pairs.sized(len(link))(*columns, pair_first, room)
    end = room[: pair_first[-1]].copy()
    pairs = np.arange(len(end), dtype=np.int32)
    table = np.full(2 << (len(end) * 3 // 4).bit_length(), -1, np.int32)
    _fill_table.sized(len(end))(pair_first, end, table)
    return Coupling(
        first=reading(pair_first),
        end=reading(end),
        link=end.copy(),
        flows=np.zeros(len(end)),
        weight=np.zeros(len(end) if weighs else 0),
        pair=pairs,
        place=pairs.copy(),
        active=np.zeros(links, np.int32),
        table=reading(table),
        of_slot=np.full(slots, -1, np.int32),
    )


@kernel
def _list_routes(first: Int64s, link: Int32s, behind: Int64s, route: Int32s) -> None:
    """List the routes of each link, one link's behind the other's."""
    for one in range(len(first) - 1):
        for hop in range(first[one], first[one + 1]):
            route[behind[link[hop]]] = one
            behind[link[hop]] += 1


@kernel
def _find_pairs(
    first: Int64s, link: Int32s, begins: Int64s, route: Int32s, pair_first: Int64s, end: Uint32s
) -> None:
    """Go over the routes of each link, and list the others that these have."""
    links, found = len(begins) - 1, 0
    seen = np.full(links, -1, np.int32)
    for one in range(links):
        seen[one] = one
        for k in range(begins[one], begins[one + 1]):
            for hop in range(first[route[k]], first[route[k] + 1]):
                other = link[hop]
                if seen[other] != one:
                    seen[other] = one
                    end[found] = other
                    found += 1
        pair_first[one + 1] = found


@kernel
def _fill_table(pair_first: Int64s, end: Uint32s, table: Int32s) -> None:
    """Put every pair into the table, behind those that share its place."""
    last = len(table) - 1
    for one in range(len(pair_first) - 1):
        for pair in range(pair_first[one], pair_first[one + 1]):
            at = (one * SCATTER + int(end[pair])) & last
            while table[at] >= 0:
                at = (at + 1) & last
            table[at] = pair
