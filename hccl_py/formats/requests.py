"""Requests of the ranks of a file: streams, notifies between them, notifies of their ends.

Each part may be left out, for all ranks or for some: then what the tasks use is what was requested.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from hccl_py.documents.checks import at
from hccl_py.documents.models import checked
from hccl_py.formats.checks import numbered, whole
from hccl_py.formats.links import Ends
from hccl_py.formats.models import ResourceModel
from hccl_py.program.builder.columns import RequestColumns
from hccl_py.program.limits import MAX_NUMBER
from hccl_py.values import IntArray


def requests_from(value: object, ranks: int, ends: Ends) -> RequestColumns:
    """Return the requests of the object `resources`, for sides of links by the keys of `ends`."""
    models = [
        (rank, checked(ResourceModel, part, at("resources", str(rank))))
        for rank, part in numbered("resources", value or {}, ranks, "rank")
    ]
    stating = [(rank, model) for rank, model in models if model.streams is not None]
    streams = np.full(ranks, -1)
    streams[[rank for rank, _ in stating]] = whole(
        [model.streams for _, model in stating],
        lambda k: at("resources", str(stating[k][0]), "streams"),
        "streams (main is one)",
        1,
        MAX_NUMBER,
    )
    local = [(r, m.local_notifies) for r, m in models if m.local_notifies is not None]
    channels = [(r, m.channel_notifies) for r, m in models if m.channel_notifies is not None]
    return RequestColumns(
        streams=streams,
        states_local=_mask(ranks, [rank for rank, _ in local]),
        local=_local(local),
        states_ends=_mask(ranks, [rank for rank, _ in channels]),
        ends=_channels(channels, ends),
    )


def _mask(ranks: int, having: list[int]) -> npt.NDArray[np.bool_]:
    mask = np.zeros(ranks, bool)
    mask[having] = True
    return mask


def _local(parts: Iterable[tuple[int, dict[str, object]]]) -> tuple[IntArray, IntArray, IntArray]:
    rows = [
        (rank, stream, count)
        for rank, counts in parts
        for stream, count in numbered(_path(rank, "local_notifies"), counts, MAX_NUMBER, "stream")
    ]
    where = lambda k: at(_path(rows[k][0], "local_notifies"), str(rows[k][1]))  # noqa: E731
    count = whole([row[2] for row in rows], where, "a number of notifies", 0, MAX_NUMBER)
    return _column(row[0] for row in rows), _column(row[1] for row in rows), count


def _channels(
    parts: Iterable[tuple[int, dict[str, object]]], ends: Ends
) -> tuple[IntArray, IntArray]:
    rows = [(rank, peer, count) for rank, counts in parts for peer, count in counts.items()]
    where = lambda k: at(_path(rows[k][0], "channel_notifies"), rows[k][1])  # noqa: E731
    rank = _column(row[0] for row in rows)
    count = whole([row[2] for row in rows], where, "a number of notifies", 0, MAX_NUMBER)
    keys = ends.requested(rank, [_reference(row[1]) for row in rows], where)
    return keys[count > 0], count[count > 0]


def _reference(key: str) -> int | str:
    """Return a peer as tasks name it: its rank, or the text as it is."""
    plain = key.isascii() and key.isdigit() and len(key) < 10 and str(int(key)) == key
    return int(key) if plain else key


def _path(rank: int, part: str) -> str:
    return at("resources", str(rank), part)


def _column(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, np.int64)
